"""Probes and converts videos in children of media.converting."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from media.decoder import JobProgram, Report, decoder_slot
from runtime.loaded_programs import LoadedProgram

PROGRAM = LoadedProgram("media.converting", "media.forking")

MOST_PIXELS = 4096 * 2304
"""Most pixels of a video, as in media.converting."""
PROBE_SECONDS = 5.0
"""Most processor seconds of a probe."""


class VideoLimits(NamedTuple):
    """Most seconds of a video, processor seconds of its conversion, and bytes of the result."""

    longest: float = 600.0
    seconds: float = 900.0
    bytes: int = 80 * 2**20


class ProbedVideo(msgspec.Struct):
    """What a conversion would give. `needs_work`: it encodes, which may take longer than the video. Else it copies. The
    `duration` may be unknown.
    """

    ext: str
    width: int
    height: int
    duration: float | None
    has_sound: bool
    needs_work: bool


class ConvertedVideo(msgspec.Struct):
    """Facts of a finished video. `seconds`: of the processor. `duration`: the greatest time of pictures and sound."""

    ext: str
    width: int
    height: int
    duration: float
    size: int
    has_sound: bool
    seconds: float


converter = JobProgram(PROGRAM)


def takes_videos() -> bool:
    """Whether PyAV is installed."""
    return find_spec("av") is not None


def probe(source: Path, limits: VideoLimits) -> ProbedVideo:
    """Read a video's header and first frame. Raises DecoderError and DecoderBusyError."""
    with decoder_slot():
        return converter.run_job(_job(source, "", limits._replace(seconds=PROBE_SECONDS)), ProbedVideo)


def convert(source: Path, draft: str, limits: VideoLimits, report: Report | None = None) -> ConvertedVideo:
    """Write `<draft>video` and `<draft>poster`, a JPEG, which are new. `report` takes the percent that is done. If it
    raises, the child ends. Raises DecoderError and DecoderBusyError.
    """
    with decoder_slot("video-"):
        return converter.run_job(_job(source, draft, limits), ConvertedVideo, report)


def _job(source: Path, draft: str, limits: VideoLimits) -> dict[str, Any]:
    return {"source": str(source), "target": draft, **limits._asdict()}
