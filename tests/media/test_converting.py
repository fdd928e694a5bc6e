"""What becomes of a video: its container, its codecs, its size, and nothing that its sender did not mean to send."""

import contextlib
import os
import random
import socket
import struct
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import av
import pytest
from PIL import Image

from accounts.models import User
from media import actions, converter
from media.converter import ConvertedVideo, VideoLimits, convert, probe
from media.decoder import DecoderError, JobProgram
from tests.support.pictures import box, element, jpeg, upload
from tests.support.videos import film

LIMITS = VideoLimits()
SECRET = "+52.5200+013.4050/"
QUIET = (("x265-params", "log-level=none"),)
SAMPLES = Path(__file__).parent / "samples"


class Result(NamedTuple):
    """A conversion, as FFmpeg reads it again."""

    facts: ConvertedVideo
    data: bytes
    codecs: str
    sides: tuple[int, int]
    frames: int
    turn: int
    reports: list[int]
    poster: Image.Image


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def converted(folder: Path, data: bytes, limits: VideoLimits = LIMITS) -> Result:
    source, draft = folder / "given", f"{folder / 'made'}."
    source.write_bytes(data)
    for old in folder.glob("made.*"):
        old.unlink()
    reports: list[int] = []
    facts = convert(source, draft, limits, reports.append)
    made = Path(f"{draft}video").read_bytes()
    assert facts.size == len(made)
    with av.open(f"{draft}video") as again:
        shown = list(again.decode(video=0))
        codecs = " ".join(stream.codec_context.name for stream in again.streams)
        sides = shown[0].width, shown[0].height
    with Image.open(f"{draft}poster") as poster:
        poster.load()
    return Result(facts, made, codecs, sides, len(shown), shown[0].rotation, reports, poster)


def refused(folder: Path, data: bytes, limits: VideoLimits = LIMITS) -> str:
    with pytest.raises(DecoderError) as error:
        converted(folder, data, limits)
    return error.value.reason


# --- What comes out --------------------------------------------------------------------------------------
class Row(NamedTuple):
    """A video, what becomes of it, and whether pictures or sound are encoded."""

    made: dict[str, Any]
    ext: str = "mp4"
    codecs: str = "h264 aac"
    size: tuple[int, int] = (64, 48)
    encodes: bool = True
    frames: int = 10
    turn: int = 0


def hevc(**fields: Any) -> dict[str, Any]:
    return {"codec": "libx265", "options": QUIET, **fields}


COPIED = {
    "H.264 and AAC in MP4": Row({}, encodes=False),
    "in MOV": Row({"container": "mov"}, encodes=False),
    "in MKV": Row({"container": "matroska"}, encodes=False),
    "in fragments": Row({"movflags": "frag_keyframe+empty_moov"}, encodes=False),
    "without sound": Row({"sound": ""}, codecs="h264", encodes=False),
    "with two channels": Row({"layout": "stereo"}, encodes=False),
    "turned": Row({"turned": 90}, size=(48, 64), encodes=False, turn=90),
    "turned the other way": Row({"turned": -90}, size=(48, 64), encodes=False, turn=-90),
    "upside down": Row({"turned": 180}, encodes=False, turn=-180),
    "of changing rate": Row({"times": (0, 1, 2, 7, 8, 20)}, encodes=False, frames=6),
    "of 60 frames a second": Row({"rate": 60}, encodes=False),
    "of wide pixels": Row({"ratio": Fraction(4, 3)}, size=(85, 48), encodes=False),
    "with B-frames": Row({"options": (("bf", "2"), ("preset", "slow"))}, encodes=False),
    "with an index in front": Row({"movflags": "faststart"}, encodes=False),
    "VP8 and Opus": Row(
        {"codec": "libvpx", "sound": "libopus", "container": "webm"}, "webm", "vp8 opus", encodes=False
    ),
    "VP9 and Opus": Row(
        {"codec": "libvpx-vp9", "sound": "libopus", "container": "webm"}, "webm", "vp9 opus", encodes=False
    ),
    "VP9 in MKV": Row(
        {"codec": "libvpx-vp9", "sound": "libopus", "container": "matroska"}, "webm", "vp9 opus", encodes=False
    ),
    "VP9 alone": Row({"codec": "libvpx-vp9", "sound": "", "container": "webm"}, "webm", "vp9", encodes=False),
}
ENCODED = {
    "HEVC": Row(hevc()),
    "HEVC in MOV": Row(hevc(container="mov")),
    "HEVC in MKV": Row(hevc(container="matroska")),
    "HEVC without sound": Row(hevc(sound=""), codecs="h264"),
    "HEVC of 10 bits": Row(hevc(pixels="yuv420p10le")),
    "HEVC of a telephone": Row(hevc(size=(64, 48), turned=-90, pixels="yuv420p10le", container="mov"), size=(48, 64)),
    "HEVC, turned": Row(hevc(turned=90), size=(48, 64)),
    "HEVC, upside down": Row(hevc(turned=180)),
    "HEVC of odd sides": Row(hevc(size=(63, 47), pixels="yuv444p"), size=(62, 46)),
    "HEVC of changing rate": Row(hevc(times=(0, 1, 2, 7, 8, 20)), frames=6),
    "HEVC of 60 frames a second": Row(hevc(rate=60, frames=20)),
    "HEVC of 24 frames a second": Row(hevc(rate=24)),
    "H.264 of 10 bits": Row({"pixels": "yuv420p10le"}),
    "H.264 in 4:4:4": Row({"pixels": "yuv444p"}),
    "H.264 in 4:2:2": Row({"pixels": "yuv422p"}),
    "H.264 of 120 frames a second": Row({"rate": 120, "frames": 40}),
    "µ-law": Row({"sound": "pcm_mulaw", "container": "mov"}),
    "A-law": Row({"sound": "pcm_alaw", "container": "mov"}),
    "PCM": Row({"sound": "pcm_s16le", "container": "mov"}),
    "PCM of the other end": Row({"sound": "pcm_s16be", "container": "mov", "layout": "stereo"}),
    "MP3": Row({"sound": "libmp3lame"}),
    "Opus in MP4": Row({"sound": "libopus"}),
    "Vorbis in MKV": Row({"sound": "vorbis", "container": "matroska", "layout": "stereo"}),
    "six channels": Row({"sound": "pcm_s16le", "container": "mov", "layout": "5.1"}),
    "AAC beside VP9": Row({"codec": "libvpx-vp9", "container": "matroska"}, "webm", "vp9 opus"),
    "VP9 in MP4": Row({"codec": "libvpx-vp9"}, "webm", "vp9 opus"),
    "VP9 in 4:4:4": Row({"codec": "libvpx-vp9", "pixels": "yuv444p", "sound": "libopus", "container": "webm"}),
    "AV1": Row({"codec": "libsvtav1", "sound": "libopus", "container": "webm", "size": (64, 64)}, size=(64, 64)),
}
LARGE = {
    "4K": Row({"size": (3840, 2160), "frames": 2}, size=(1920, 1080), frames=2),
    "a high telephone": Row({"size": (1440, 2560), "frames": 2}, size=(1080, 1920), frames=2),
    "a long strip": Row({"size": (2560, 64), "frames": 2}, size=(1920, 48), frames=2),
    "1080p": Row({"size": (1920, 1080), "frames": 2}, size=(1920, 1080), frames=2, encodes=False),
}
DAILY = ("H.264 and AAC in MP4", "turned", "VP9 and Opus", "HEVC of a telephone", "HEVC of 60 frames a second", "µ-law")
ROWS = COPIED | ENCODED | LARGE


@pytest.mark.parametrize(
    "name", [name if name in DAILY else pytest.param(name, marks=pytest.mark.long) for name in ROWS]
)
def test_what_becomes_of_a_video(folder: Path, name: str) -> None:
    row = ROWS[name]
    data = film(**row.made)
    found = converted(folder, data)
    stored = (row.size[1], row.size[0]) if abs(row.turn) == 90 else row.size
    assert (found.facts.ext, found.codecs, found.frames) == (row.ext, row.codecs, row.frames)
    assert (found.facts.width, found.facts.height) == row.size
    assert found.turn == row.turn
    assert found.sides == (stored if not row.made.get("ratio") else (64, 48))
    length = (row.made.get("times") or (row.made.get("frames", 10) - 1,))[-1] + 1
    assert found.facts.duration == pytest.approx(length / row.made.get("rate", 30), abs=0.08)
    assert found.facts.has_sound == (row.made.get("sound") != "")
    assert found.reports == sorted(set(found.reports))
    assert all(0 < percent < 100 for percent in found.reports)
    asked = probe(folder / "given", VideoLimits())
    assert (asked.ext, (asked.width, asked.height), asked.needs_work) == (row.ext, row.size, row.encodes)
    if row.ext == "mp4":
        assert found.data.index(b"moov") < found.data.index(b"mdat")
        assert b"x264 - core" not in found.data or row.encodes
    else:
        assert found.data.index(b"\x1c\x53\xbb\x6b") < found.data.index(b"\x1f\x43\xb6\x75")


def test_to_make_av1_leaves_this_process_its_priority() -> None:
    film.__wrapped__(**ENCODED["AV1"].made)
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


@pytest.mark.parametrize(("codec", "options"), [("libx264", ()), ("libx265", QUIET)], ids=["copied", "encoded"])
@pytest.mark.parametrize(("turned", "red"), [(0, (8, 24)), (90, (24, 56)), (-90, (24, 8)), (180, (56, 24))], ids=str)
def test_a_turned_video_is_shown_upright(
    folder: Path, codec: str, options: Any, turned: int, red: tuple[int, int]
) -> None:
    """The left half is red. By ISO/IEC 14496-12, a turn by 90 degrees against the clock puts it below."""
    found = converted(folder, film(codec, options=options, turned=turned))
    assert found.poster.size == ((64, 48) if abs(turned) != 90 else (48, 64))
    pixel: Any = found.poster.getpixel(red)
    assert pixel[0] > 150
    assert pixel[2] < 100


# --- What is not kept ------------------------------------------------------------------------------------
def in_moov(data: bytes, *boxes: bytes) -> bytes:
    """More boxes at the end of the movie, which is the last box."""
    at = data.rindex(b"moov") - 4
    (length,) = struct.unpack(">I", data[at : at + 4])
    more = b"".join(boxes)
    return data[:at] + struct.pack(">I", length + len(more)) + data[at + 4 :] + more


HIDDEN = SECRET.encode()
USER = box(b"udta", box(b"\xa9xyz", struct.pack(">HH", len(HIDDEN), 0), HIDDEN), box(b"name", HIDDEN))
PRIVATE = {
    "tags": film(secret=SECRET),
    "tags of a MOV": film(container="mov", secret=SECRET),
    "tags, chapters and a file of an MKV": film(container="matroska", secret=SECRET),
    "tags and chapters of a WebM": film("libvpx-vp9", "libopus", "webm", secret=SECRET),
    "user data": in_moov(film(), USER),
    "metadata": in_moov(film(), box(b"meta", bytes(4), box(b"ilst", box(b"\xa9too", HIDDEN)))),
    "a box of one's own": in_moov(film(), box(b"uuid", bytes(16), HIDDEN)) + box(b"uuid", bytes(16), HIDDEN),
    "free space": in_moov(film(), box(b"free", HIDDEN), box(b"skip", HIDDEN)) + box(b"free", HIDDEN),
    "data that no sample names": film() + box(b"mdat", HIDDEN),
    "an unknown box": film() + box(b"gps ", HIDDEN),
    "bytes behind the end": film() + b"\0\0" + HIDDEN,
    "an encoded one": in_moov(film("libx265", options=QUIET, secret=SECRET), USER),
    "elements behind the end": film("libvpx-vp9", "libopus", "webm") + element(b"\x12\x54\xc3\x67", HIDDEN),
}


@pytest.mark.parametrize("name", PRIVATE)
def test_what_a_player_does_not_need_is_not_kept(folder: Path, name: str) -> None:
    assert HIDDEN in PRIVATE[name]
    found = converted(folder, PRIVATE[name])
    assert not [word for word in (b"52.52", b"2020", b"x264 - core 1", b"eng") if word in found.data] or (
        name == "an encoded one" and b"52.52" not in found.data
    )
    assert b"SECRET" not in found.data
    assert found.codecs.count(" ") == 1
    if found.facts.ext == "mp4":
        at = found.data.index(b"mvhd") + 8
        assert found.data[at : at + 8] == bytes(8)


@pytest.mark.parametrize("name", ["small.mov", "small.webm", "fragmented.mp4"])
def test_what_real_programs_write_about_a_video_is_not_kept(folder: Path, name: str) -> None:
    data = (SAMPLES / name).read_bytes()
    assert b"SECRET" in data or name == "fragmented.mp4"
    found = converted(folder, data)
    assert not [word for word in (b"SECRET", b"52.52", b"2020", b"text", b"Lavf6") if word in found.data]
    assert found.facts.duration == pytest.approx(1.0, abs=0.15)


# --- What is refused -------------------------------------------------------------------------------------
CUT = [film(), film(movflags="faststart"), film("libvpx-vp9", "libopus", "webm"), film(container="matroska")]
REFUSED = {
    "MPEG-4": (film("mpeg4"), "pictures"),
    "MPEG-2": (film("mpeg2video", container="matroska", sound=""), "pictures"),
    "ProRes": (film("prores_ks", container="mov", pixels="yuv422p10le"), "pictures"),
    "FLAC": (film(sound="flac", container="matroska"), "sound"),
    "AC-3": (film(sound="ac3"), "sound"),
    "8K": (film("libvpx-vp9", "", "webm", size=(7680, 64), frames=1), "sides"),
    "AVI": (film("libx264", "", "avi"), "broken"),
    "MPEG-TS": (film("libx264", "", "mpegts"), "broken"),
    "a playlist": (b"#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:9/a.mp4\n", "broken"),
    "a script": (b"ffconcat version 1.0\nfile /etc/passwd\n", "broken"),
    "nothing": (b"", "broken"),
    "a head": (box(b"ftyp", b"isom", bytes(4)), "broken"),
    "an endless head": (box(b"ftyp", b"isom", bytes(4)) + struct.pack(">I4sQ", 1, b"moov", 2**62), "whole"),
    "sound alone": (film()[:0] + box(b"ftyp", b"M4A ", bytes(4)), "broken"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_videos_are_refused_for_a_reason(folder: Path, name: str) -> None:
    data, reason = REFUSED[name]
    assert refused(folder, data) == reason


@pytest.mark.parametrize("whole", CUT, ids=["MP4", "an index in front", "WebM", "MKV"])
def test_a_cut_video_is_refused(folder: Path, whole: bytes) -> None:
    assert {refused(folder, whole[: len(whole) * tenth // 10]) for tenth in range(1, 10)} <= {"whole", "broken"}


def test_limits(folder: Path) -> None:
    long = film(frames=40)
    assert refused(folder, long, VideoLimits(longest=1.0)) == "minutes"
    assert refused(folder, long, VideoLimits(bytes=1500)) == "output"
    assert refused(folder, film("libx265", options=QUIET), VideoLimits(seconds=0)) == "time"
    with pytest.raises(DecoderError, match="minutes"):
        probe(folder / "given", VideoLimits(longest=0.1))


def test_a_length_that_no_header_tells_is_found(folder: Path) -> None:
    data = film("libvpx-vp9", "libopus", "webm", frames=20)
    at = data.index(b"\x44\x89")
    unknown = data[:at] + b"\xec\x89" + bytes(9) + data[at + 11 :]
    assert len(unknown) == len(data)
    (folder / "given").write_bytes(unknown)
    found = converted(folder, unknown)
    assert found.facts.duration == pytest.approx(20 / 30, abs=0.05)
    assert refused(folder, unknown, VideoLimits(longest=0.3)) == "minutes"


def test_a_report_that_raises_ends_the_child(folder: Path) -> None:
    def report(_percent: int) -> None:
        raise KeyError

    (folder / "given").write_bytes(film())
    with pytest.raises(KeyError):
        convert(folder / "given", f"{folder / 'made'}.", VideoLimits(), report)
    assert converted(folder, film()).frames == 10


DOORS = """
import socket, os
from media import converting, forking
forking.confine(memory=converting.MEMORY, seconds=9, size=1, wall=9)
converting._close_doors()
for knock in (lambda: open("/etc/passwd"), socket.socket, os.pipe):
    try:
        knock()
    except OSError as error:
        os.write(1, error.strerror.encode() + b"\\n")
"""


@pytest.mark.slow
def test_a_child_opens_nothing_once_it_reads() -> None:
    said = subprocess.run([sys.executable, "-c", DOORS], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == ["Too many open files"] * 3


class Liar(JobProgram):
    """A program that hostile bytes have taken over."""

    says = b""

    def _send_socket(self, line: socket.socket) -> None:
        with line:
            line.sendall(self.says)


LIES = [b"", b"{", b"[1]\n", b"{}\n", b'{"ext": 1}\n', b'{"percent": 101}\n', b'{"percent": "1"}\n']
LIES += [b'{"percent": 1}\n' * 10_000, b"x" * 100_000, b'{"reason": ["full"]}\n', b'{"reason": "passwords"}\n']


@pytest.mark.parametrize("says", LIES)
def test_whatever_a_child_says_it_is_refused(says: bytes) -> None:
    liar = Liar(converter.PROGRAM)
    liar.says = says
    with pytest.raises(DecoderError, match="broken"):
        liar.run_job({"seconds": 0.2}, ConvertedVideo)


@pytest.mark.django_db
def test_a_site_without_the_package_says_so(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converter, "find_spec", lambda _name: None)
    with pytest.raises(actions.UnknownKindError, match="takes no videos"):
        actions.upload(owner_id=ann.pk, file=upload(film()))
    assert actions.upload(owner_id=ann.pk, file=upload(jpeg())).kind == "image"


@pytest.mark.long
@pytest.mark.parametrize("whole", CUT, ids=["MP4", "an index in front", "WebM", "MKV"])
def test_a_damaged_video_is_converted_or_refused(folder: Path, whole: bytes) -> None:
    chance = random.Random(7)  # noqa: S311 (the same bytes each time)
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 12)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        (folder / "given").write_bytes(data)
        for old in folder.glob("made.*"):
            old.unlink()
        with contextlib.suppress(DecoderError):
            assert convert(folder / "given", f"{folder / 'made'}.", LIMITS).ext in ("mp4", "webm")
    assert converter.converter._program is not None
    assert converter.converter._program.poll() is None
