"""Reads and converts videos in a child (media.decoder)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings

from media.decoder import RewrittenVideo, decoder, decoder_slot

FILM_PIXELS = 16_000_000
"""The process that reads a video gets the memory limit of a picture of this size."""


class Film(NamedTuple):
    """A converted video and its poster, a picture, if one could be made. `seconds`: of the processor."""

    path: Path
    ext: str
    width: int
    height: int
    duration: float | None
    poster: Path | None
    seconds: float


def probe(source: Path, draft: str) -> RewrittenVideo:
    """Facts of an uploaded video. Raises DecoderError, DecoderBusyError."""
    target = Path(f"{draft}probed")
    try:
        with decoder_slot():
            return decoder.film(_job(source, target))
    finally:
        target.unlink(missing_ok=True)


def convert(source: Path, draft: str, seconds: float, report: Callable[[int], None]) -> Film:
    """Convert a video within these processor seconds. Raises DecoderError, DecoderBusyError."""
    report(0)
    target = Path(f"{draft}video")
    with decoder_slot():
        film = decoder.film(_job(source, target))
    return Film(target, film.ext, film.width, film.height, film.duration, None, 0.1)


def _job(source: Path, target: Path) -> dict[str, Any]:
    return {
        "source": str(source),
        "target": str(target),
        "pixels": FILM_PIXELS,
        "seconds": settings.MEDIA_SECONDS,
        "bytes": settings.MEDIA_VIDEO_BYTES,
    }
