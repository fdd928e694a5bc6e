"""The program that makes what browsers play of videos, each in a forked child, by FFmpeg's libraries (PyAV).

A child opens its files, then may open nothing more: no file, no connection. FFmpeg gets them as they are, with the
names of two demuxers and of the decoders below, so that no byte of the file chooses another. One thread does all.

What plays in Chrome, Firefox and Safari (MDN: "Web video codec guide", "Media container formats"; caniuse: "mpeg4",
"webm", "av1", "hevc"): H.264 of 8 bits in 4:2:0 with AAC in MP4, everywhere; VP8 and VP9 with Vorbis or Opus in WebM,
in Safari since 16. Firefox and many devices lack HEVC, Apple's devices without a decoder in hardware lack AV1, and none
plays 10 bits of H.264. So HEVC, AV1 and the rest become H.264 with AAC. All honour the rotation of an MP4.
"""

import contextlib
import errno
import importlib
import os
import pkgutil
import resource
import struct
import sys
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import IO, Any

import av
from av import AudioFrame, AudioResampler, AudioStream, Packet, VideoFrame, VideoStream
from av.container import InputContainer, OutputContainer
from av.filter import Graph
from av.video.frame import PictureType
from PIL import Image

from media import forking
from media.forking import FULL

EBML_MAGIC = b"\x1a\x45\xdf\xa3"
DEMUXERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm"
PICTURES = frozenset({"h264", "hevc", "vp8", "vp9", "libdav1d"})
SOUNDS = frozenset({"aac", "mp3", "mp3float", "opus", "vorbis", "pcm_u8", "pcm_s8", "pcm_mulaw", "pcm_alaw"}) | {
    f"pcm_{kind}{end}" for kind in ("s16", "s24", "s32", "f32", "f64") for end in ("le", "be")
}
"""FFmpeg's decoders that may be opened."""
CONTAINERS = {"h264": "mp4", "vp8": "webm", "vp9": "webm"}
"""The container of pictures that are copied. All others become H.264 in MP4."""
MUXING = {
    "mp4": {"fflags": "+bitexact", "movflags": "+faststart"},
    "webm": {"fflags": "+bitexact", "cues_to_front": "1"},
}
"""The index stands in front. No date and no program is written."""
COPIED_SOUNDS = {"mp4": frozenset({"aac"}), "webm": frozenset({"opus", "vorbis"})}
ENCODED_SOUND = {"mp4": "aac", "webm": "libopus"}
PLAIN = frozenset({"yuv420p", "yuvj420p"})

MEMORY = 1280 * 2**20
"""Address space of a child. HEVC in 4K with 10 bits takes 550 MiB, and 25 for each frame more that it refers to."""
LONG_SIDE, SHORT_SIDE = 1920, 1080
"""Most pixels of what is served."""
LONGEST_SIDE, MOST_PIXELS = 4096, 4096 * 2304
"""Most pixels of what is taken."""
FASTEST = 61
"""Most frames a second of what is copied."""
FAST, LEAST_PAUSE = 45, 1 / 31
"""From so many frames a second on, some are left out of what is encoded, so that these seconds lie between two."""
TICKS = 90_000
"""Units of time a second of encoded pictures."""
PROBE_BYTES = 64 * 2**20
"""Most bytes that `probe` reads."""
STREAMS = 32
BOXES = 20_000
"""Most boxes whose ends are checked. A video in fragments has two for each."""
WHOLE = frozenset({b"moov", b"mdat", b"moof", b"\x18\x53\x80\x67"})
"""The boxes, and the element, that make a video."""
FAULTS = 50
"""Most damaged packets of a video."""
POSTER_SIDE = 1280
POSTER_AT = 1.0
"""Seconds at which a video's poster is taken, if it lasts ten times as long."""
SOUND_RATES = (44_100, 48_000)
BITS, SOUND_BITS = 6_000_000, 128_000
"""Most bits a second."""
LEAST_BITS = 200_000

MATRIX = struct.Struct("=9i")
UPRIGHT = (1, 0, 0, 1)
ROTATED: dict[tuple[int, ...], list[tuple[str, str]]] = {
    (0, 1, -1, 0): [("transpose", "clock")],
    (-1, 0, 0, -1): [("hflip", ""), ("vflip", "")],
    (0, -1, 1, 0): [("transpose", "cclock")],
}
"""Filters that turn pictures as the first four numbers of a display matrix say."""
TURNED = ROTATED | {
    (-1, 0, 0, 1): [("hflip", "")],
    (1, 0, 0, -1): [("vflip", "")],
    (0, 1, 1, 0): [("transpose", "cclock_flip")],
    (0, -1, -1, 0): [("transpose", "clock_flip")],
}


class VideoRefusedError(Exception):
    """The video is refused, for one of `REASONS` of media.decoder."""


# --- Reading ---------------------------------------------------------------------------------------------
class _Given:
    """A file for FFmpeg, of which it may read so many bytes."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self.file, self.left = file, most
        self.seek, self.tell = file.seek, file.tell

    def read(self, count: int) -> bytes:
        data = self.file.read(count)
        self.left -= len(data)
        if self.left < 0:
            raise VideoRefusedError("broken")
        return data


class _Made:
    """A file that FFmpeg writes, every byte or none: it does not see that a part was written."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.seek, self.tell = file.seek, file.tell

    def write(self, data: bytes) -> int:
        at = 0
        while at < len(data):
            at += self.file.write(data[at:])
        return at


def _check_end(file: IO[bytes], name: str) -> None:
    """Raise VideoRefusedError if the file ends before its parts do: FFmpeg would make a shorter video of it."""
    size, at = file.seek(0, os.SEEK_END), 0
    for _ in range(BOXES if name == "mov" else 2):
        file.seek(at)
        head = file.read(16)
        kind, length = _box(head) if name == "mov" else _element(head)
        if not length:
            break
        at += length
        if at > size and kind in WHOLE:
            raise VideoRefusedError("whole")
    file.seek(0)


def _box(head: bytes) -> tuple[bytes, int]:
    """The type and length of a box. 0: to the end, or none."""
    length, kind = int.from_bytes(head[:4], "big"), head[4:8]
    return kind, int.from_bytes(head[8:16], "big") if length == 1 else length


def _element(head: bytes) -> tuple[bytes, int]:
    """The identity, of four bytes, and the length of an element. 0: not known, or none."""
    if len(head) < 5 or not head[4]:
        return b"", 0
    width = 9 - head[4].bit_length()
    length = int.from_bytes(head[4 : 4 + width], "big") & ~(1 << 7 * width)
    return head[:4], 0 if length == (1 << 7 * width) - 1 else 4 + width + length


class Source:
    """A video that is read, from its beginning. `first`: its first frame, if it is known."""

    def __init__(self, container: InputContainer, longest: float, first: VideoFrame | None = None) -> None:
        self.container, self.longest = container, longest
        self.video: VideoStream = _first(container.streams.video, PICTURES, "pictures")
        sounds = container.streams.audio
        self.audio: AudioStream | None = _first(sounds, SOUNDS, "sound") if sounds else None
        for stream in self.streams:
            stream.codec_context.thread_count = 1
            stream.codec_context.options = {"max_pixels": str(MOST_PIXELS)}
        _check_size(self.video.width, self.video.height)
        self.start = (container.start_time or 0) / 1e6
        self.duration = (container.duration or 0) / 1e6 or None
        if self.duration is not None and self.duration > longest:
            raise VideoRefusedError("minutes")
        found = first or next(_decoded(self), None)
        if found is None:
            raise VideoRefusedError("whole")
        self.first = found
        self.turn = _turn(found)
        self.size = _displayed(found, self.video, is_sideways=self.turn[0] == 0)

    @property
    def streams(self) -> list[VideoStream | AudioStream]:
        """What is read."""
        return [self.video] if self.audio is None else [self.video, self.audio]

    @property
    def rate(self) -> float:
        """Frames a second."""
        return float(self.video.average_rate or self.video.guessed_rate or 30)

    @property
    def is_copied(self) -> bool:
        """Whether browsers play the pictures as they are."""
        name = self.video.codec_context.name
        fits = max(self.size) <= LONG_SIDE and min(self.size) <= SHORT_SIDE and self.rate <= FASTEST
        if name not in CONTAINERS or not fits or self.first.format.name not in PLAIN or self.first.interlaced_frame:
            return False
        if name == "h264":
            has_lengths = (self.video.codec_context.extradata or b"").startswith(b"\1")
            return has_lengths and (self.turn == UPRIGHT or self.turn in ROTATED)
        return self.turn == UPRIGHT

    @property
    def ext(self) -> str:
        """The container of the result."""
        return CONTAINERS[self.video.codec_context.name] if self.is_copied else "mp4"

    @property
    def is_sound_copied(self) -> bool:
        """Whether browsers play the sound as it is."""
        if self.audio is None:
            return True
        context = self.audio.codec_context
        return context.name in COPIED_SOUNDS[self.ext] and (context.name != "aac" or bool(context.extradata))

    def facts(self) -> dict[str, Any]:
        """Extension, displayed size, seconds, and whether pictures or sound are encoded anew."""
        width, height = self.size if self.is_copied else _fitted(self.size, LONG_SIDE, SHORT_SIDE)
        return {
            "ext": self.ext,
            "width": width,
            "height": height,
            "duration": self.duration and round(self.duration, 3),
            "has_sound": self.audio is not None,
            "needs_work": not (self.is_copied and self.is_sound_copied),
        }


def _first(streams: Any, decoders: frozenset[str], reason: str) -> Any:
    """The first stream that may be decoded. A cover picture is none."""
    for stream in streams:
        is_cover = bool(stream.disposition & av.stream.Disposition.attached_pic)
        if not is_cover and stream.codec_context is not None and stream.codec_context.codec.name in decoders:
            return stream
    raise VideoRefusedError(reason)


def _turn(frame: VideoFrame) -> tuple[int, ...]:
    side: Any = frame.side_data.get("DISPLAYMATRIX")
    if side is None or side.buffer_size < MATRIX.size:
        return UPRIGHT
    matrix = MATRIX.unpack(bytes(side)[: MATRIX.size])
    turn = tuple(round(matrix[at] / 65536) for at in (0, 1, 3, 4))
    return turn if turn in TURNED else UPRIGHT


def _check_size(width: int, height: int) -> None:
    if max(width, height) > LONGEST_SIDE or width * height > MOST_PIXELS:
        raise VideoRefusedError("sides")


def _displayed(frame: VideoFrame, video: VideoStream, *, is_sideways: bool) -> tuple[int, int]:
    """The size as players show it."""
    width, height = frame.width, frame.height
    _check_size(width, height)
    ratio = video.sample_aspect_ratio or Fraction(1)
    if Fraction(1, 4) <= ratio <= 4:
        width = max(1, round(width * ratio))
    return (height, width) if is_sideways else (width, height)


def _fitted(size: tuple[int, int], long: int, short: int) -> tuple[int, int]:
    """Scale down to these sides. Both are even, as H.264 wants it."""
    scale = min(1.0, long / max(size), short / min(size))
    return max(2, round(size[0] * scale) // 2 * 2), max(2, round(size[1] * scale) // 2 * 2)


@contextlib.contextmanager
def _opened(
    file: IO[bytes], longest: float, first: VideoFrame | None = None, most: int = sys.maxsize
) -> Iterator[Source]:
    file.seek(0)
    name = "matroska" if file.read(4) == EBML_MAGIC else "mov"
    _check_end(file, name)
    options = {
        "format_whitelist": DEMUXERS,
        "codec_whitelist": ",".join(sorted(PICTURES | SOUNDS)),
        "protocol_whitelist": "",
        "max_streams": str(STREAMS),
        "max_pixels": str(MOST_PIXELS),
        "threads": "1",
    }
    with av.open(_Given(file, most), "r", format=name, options=options, buffer_size=2**18) as container:
        yield Source(container, longest, first)


# --- Pictures --------------------------------------------------------------------------------------------
class Scaler:
    """Turns and scales frames to one size and format."""

    def __init__(self, source: Source, size: tuple[int, int], form: str) -> None:
        self.source, self.size, self.form = source, size, form
        self.range = "pc" if form == "rgb24" else "tv"
        self.graph: Graph | None = None
        self.given: tuple[int, int, str] | None = None

    def scale(self, frame: VideoFrame) -> Iterator[VideoFrame]:
        """The frames that are ready."""
        given = frame.width, frame.height, frame.format.name
        if self.graph is None or given != self.given:
            if self.graph is not None:
                yield from self.rest()
            self.graph, self.given = self._made(frame), given
        self.graph.vpush(frame)
        yield from self._ready()

    def rest(self) -> Iterator[VideoFrame]:
        """The last frames."""
        if self.graph is not None:
            self.graph.vpush(None)
            yield from self._ready()

    def _ready(self) -> Iterator[VideoFrame]:
        assert self.graph is not None  # noqa: S101 (for the type checker)
        with contextlib.suppress(av.BlockingIOError, av.EOFError):
            while True:
                yield self.graph.vpull()

    def _made(self, frame: VideoFrame) -> Graph:
        graph = Graph()
        graph.threads = 1
        source = graph.add(
            "buffer",
            video_size=f"{frame.width}x{frame.height}",
            pix_fmt=frame.format.name,
            time_base=str(frame.time_base),
            pixel_aspect="1/1",
            colorspace=str(int(frame.colorspace)),
            range=str(int(frame.color_range)),
        )
        width, height = self.size
        filters = [
            *([("bwdif", "deint=interlaced")] if self.source.first.interlaced_frame else []),
            *TURNED.get(self.source.turn, []),
            ("scale", f"{width}:{height}:flags=bicubic:out_range={self.range}"),
            ("format", self.form),
            ("setsar", "1"),
        ]
        graph.link_nodes(
            source, *(graph.add(name, options) for name, options in filters), graph.add("buffersink")
        ).configure()
        return graph


def poster_of(source: Source) -> Image.Image:
    """A frame of the beginning."""
    at = min(POSTER_AT, (source.duration or 0) / 10)
    chosen = source.first
    with contextlib.suppress(av.FFmpegError):
        source.container.seek(int((source.start + at) * 1e6))
        for frame in _decoded(source):
            chosen = frame
            if frame.time is None or frame.time >= source.start + at:
                break
    scaler = Scaler(source, _fitted(source.size, POSTER_SIDE, POSTER_SIDE), "rgb24")
    for ready in (*scaler.scale(chosen), *scaler.rest()):
        return Image.frombytes("RGB", (ready.width, ready.height), _rows(ready))
    raise VideoRefusedError("broken")


def _rows(frame: VideoFrame) -> bytes:
    """Pixels without the padding of lines."""
    plane = frame.planes[0]
    data, step = bytes(plane), plane.line_size
    return b"".join(data[at * step : at * step + frame.width * 3] for at in range(frame.height))


def _decoded(source: Source) -> Iterator[VideoFrame]:
    for packet in source.container.demux(source.video):
        with contextlib.suppress(av.InvalidDataError):
            yield from packet.decode()


# --- Writing ---------------------------------------------------------------------------------------------
class Track:
    """A stream of the result."""

    def __init__(self, source: Source, stream: Any) -> None:
        self.source, self.stream = source, stream
        self.packets = self.faults = 0
        self.end = 0.0
        self.last: int | None = None

    def take(self, packet: "Packet[Any]") -> "Iterator[Packet[Any]]":
        """The packets of the result that are ready. An empty packet ends the stream."""
        if packet.size:
            self.packets += 1
        if packet.is_corrupt:
            raise VideoRefusedError("whole")
        if packet.pts is not None:
            self.end = max(
                self.end, float((packet.pts + (packet.duration or 0)) * packet.time_base) - self.source.start
            )
            if self.end > self.source.longest:
                raise VideoRefusedError("minutes")
        for ready in self.made(packet):
            ready.stream = self.stream
            yield ready

    def made(self, packet: "Packet[Any]") -> "Iterator[Packet[Any]]":
        """A copy, which has no side data."""
        if not packet.size or (packet.dts is None and packet.pts is None):
            return
        copy = Packet(self.data(packet))
        copy.time_base, copy.duration, copy.is_keyframe = packet.time_base, packet.duration, packet.is_keyframe
        dts: int = packet.pts if packet.dts is None else packet.dts  # type: ignore[assignment]
        if self.last is not None:
            dts = max(dts, self.last + 1)
        self.last = dts
        copy.dts, copy.pts = dts, dts if packet.pts is None else max(packet.pts, dts)
        yield copy

    def data(self, packet: "Packet[Any]") -> bytes:
        return bytes(packet)

    def frames(self, packet: "Packet[Any]") -> Iterator[Any]:
        """Decoded frames. A few may be damaged."""
        try:
            yield from packet.decode()
        except av.InvalidDataError as error:
            self.faults += 1
            if self.faults > FAULTS:
                raise VideoRefusedError("broken") from error


class CopiedH264(Track):
    """H.264 without what cameras write between the pictures."""

    KEPT = frozenset({1, 2, 3, 4, 5, 7, 8, 9})
    """Units that players need: slices, parameter sets, delimiters."""

    def data(self, packet: "Packet[Any]") -> bytes:
        whole = bytes(packet)
        width = (self.source.video.codec_context.extradata or b"\1\0\0\0\3")[4] % 4 + 1
        kept, at = [], 0
        while at < len(whole):
            start = at + width
            end = start + int.from_bytes(whole[at:start], "big")
            if end > len(whole):
                raise VideoRefusedError("broken")
            if start < end and (whole[start] % 32 in self.KEPT or _is_plain_sei(whole[start:end])):
                kept.append(whole[at:end])
            at = end
        return b"".join(kept)


def _is_plain_sei(unit: bytes) -> bool:
    """Whether it holds one message with the time of a picture, or where decoding may begin."""
    return len(unit) > 1 and unit[0] % 32 == 6 and unit[1] in (0, 1, 6) and len(unit) < 64 and unit[2] + 4 >= len(unit)


class EncodedVideo(Track):
    """Pictures as H.264."""

    def __init__(self, source: Source, stream: VideoStream, size: tuple[int, int]) -> None:
        super().__init__(source, stream)
        self.scaler = Scaler(source, size, "yuv420p")
        self.pause = LEAST_PAUSE if source.rate > FAST else 0.0
        self.due = 0.0

    def made(self, packet: "Packet[Any]") -> "Iterator[Packet[Any]]":
        for frame in self.frames(packet):
            if frame.time is None or (seconds := frame.time - self.source.start) < self.due:
                continue
            self.due = seconds + max(self.pause, 1 / TICKS)
            frame.pts, frame.time_base = round(seconds * TICKS), Fraction(1, TICKS)
            yield from self.encoded(self.scaler.scale(frame))
        if not packet.size:
            yield from self.encoded(self.scaler.rest())
            yield from self.stream.encode(None)

    def encoded(self, frames: Iterator[VideoFrame]) -> "Iterator[Packet[Any]]":
        for frame in frames:
            frame.pict_type = PictureType.NONE
            yield from self.stream.encode(frame)


class EncodedAudio(Track):
    """Sound as AAC or Opus."""

    def __init__(self, source: Source, stream: AudioStream) -> None:
        super().__init__(source, stream)
        context = stream.codec_context
        self.resampler = AudioResampler(
            context.format, context.layout, context.sample_rate, frame_size=context.frame_size or None
        )

    def made(self, packet: "Packet[Any]") -> "Iterator[Packet[Any]]":
        for frame in self.frames(packet):
            if frame.pts is not None:
                frame.pts -= round(self.source.start / frame.time_base)
            yield from self.encoded(frame)
        if not packet.size:
            if self.packets:
                yield from self.encoded(None)
            yield from self.stream.encode(None)

    def encoded(self, frame: AudioFrame | None) -> "Iterator[Packet[Any]]":
        for ready in self.resampler.resample(frame):
            yield from self.stream.encode(ready)


def _video_track(source: Source, out: OutputContainer, bits: int) -> Track:
    if source.is_copied:
        stream = out.add_stream_from_template(source.video, opaque=True)
        a, b, c, d = (65536 * number for number in source.turn)
        stream.set_display_matrix(None if source.turn == UPRIGHT else (a, b, 0, c, d, 0, 0, 0, 1 << 30))
        return (CopiedH264 if source.ext == "mp4" else Track)(source, stream)
    size = _fitted(source.size, LONG_SIDE, SHORT_SIDE)
    options = {"preset": "veryfast", "crf": "23", "maxrate": str(bits), "bufsize": str(2 * bits), "threads": "1"}
    made = out.add_stream("libx264", rate=max(1, min(FAST, round(source.rate))), options=options)
    made.width, made.height, made.pix_fmt = *size, "yuv420p"
    context, first = made.codec_context, source.first
    context.time_base, context.gop_size, context.thread_count = Fraction(1, TICKS), 120, 1
    context.colorspace, context.color_range = first.colorspace, 1
    context.color_primaries, context.color_trc = first.color_primaries, first.color_trc
    return EncodedVideo(source, made, size)


def _audio_track(source: Source, audio: AudioStream, out: OutputContainer) -> Track:
    if source.is_sound_copied:
        return Track(source, out.add_stream_from_template(audio, opaque=True))
    context = audio.codec_context
    rate = context.sample_rate if context.sample_rate in SOUND_RATES and source.ext == "mp4" else SOUND_RATES[-1]
    layout = "mono" if context.layout.nb_channels == 1 else "stereo"
    made: AudioStream = out.add_stream(  # type: ignore[assignment]
        ENCODED_SOUND[source.ext], rate=rate, layout=layout, bit_rate=SOUND_BITS
    )
    made.codec_context.open()
    return EncodedAudio(source, made)


# --- The two acts ----------------------------------------------------------------------------------------
def probe(job: dict[str, Any], given: IO[bytes]) -> dict[str, Any]:
    """Facts of a video, by its header and its first frame."""
    with _opened(given, job["longest"], most=PROBE_BYTES) as source:
        return source.facts()


def convert(job: dict[str, Any], files: list[IO[bytes]], report: forking.Report) -> dict[str, Any]:
    """Write the video and its poster. Returns its facts."""
    given, written, read, poster = files
    with _opened(given, job["longest"]) as source:
        first = source.first
        poster_of(source).save(poster, "JPEG", quality=90)
    with _opened(given, job["longest"], first) as source:
        facts = source.facts() | _write(source, job, written, read, report)
    return facts | {"size": written.seek(0, os.SEEK_END), "seconds": time.process_time()}


def _write(
    source: Source, job: dict[str, Any], written: IO[bytes], read: IO[bytes], report: forking.Report
) -> dict[str, Any]:
    with av.open(
        _Made(written),
        "w",
        format=source.ext,
        container_options=MUXING[source.ext],
        io_open=lambda _url, _flags, _options: read,
    ) as out:
        tracks = _tracks(source, out, job["bytes"])
        until = time.monotonic() + job["wall"] * 0.9
        for packet in source.container.demux(source.streams):
            track = tracks[packet.stream.index]
            for ready in track.take(packet):
                out.mux(ready)
            if source.duration:
                report(min(99, int(100 * track.end / source.duration)))
            if time.process_time() > job["seconds"] or time.monotonic() > until:
                raise VideoRefusedError("time")
    _check_whole(source, tracks)
    sound = source.audio and tracks[source.audio.index]
    ends = [track.end for track in tracks.values()]
    return {"duration": round(max(ends), 3), "has_sound": bool(sound and sound.packets)}


def _tracks(source: Source, out: OutputContainer, most: int) -> dict[int, Track]:
    """The tracks by the stream that they come from. Their bits a second fit into so many bytes."""
    room = int(most * 8 * 0.9 / max(source.duration or 0, 1)) - SOUND_BITS
    tracks = {source.video.index: _video_track(source, out, min(BITS, max(LEAST_BITS, room)))}
    if source.audio is not None:
        tracks[source.audio.index] = _audio_track(source, source.audio, out)
    return tracks


def _check_whole(source: Source, tracks: dict[int, Track]) -> None:
    """Raise VideoRefusedError if packets are missing, or none could be shown."""
    shown = tracks[source.video.index]
    if not shown.packets or (not source.is_copied and not shown.end):
        raise VideoRefusedError("broken")
    if shown.packets < len(source.video.index_entries):
        raise VideoRefusedError("whole")


# --- The child -------------------------------------------------------------------------------------------
def run_job(job: dict[str, Any], report: forking.Report) -> dict[str, Any]:
    """Facts of the video, or the `reason` of its refusal."""
    forking.confine(memory=MEMORY, seconds=job["seconds"] + 1, size=job["bytes"], wall=job["wall"])
    try:
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(open(path, mode, buffering=0)) for path, mode in _paths(job)]  # noqa: PTH123
            _close_doors()
            return convert(job, files, report) if job["target"] else probe(job, files[0])
    except VideoRefusedError as error:
        return {"reason": str(error)}
    except MemoryError:
        return {"reason": "memory"}
    except OSError as error:
        return {"reason": "output" if error.errno == errno.EFBIG else "full" if error.errno in FULL else "broken"}
    except Exception:  # noqa: BLE001 (decoders of hostile bytes raise anything)
        return {"reason": "broken"}


def _paths(job: dict[str, Any]) -> list[tuple[str, str]]:
    given = [(job["source"], "rb")]
    if job["target"]:
        video, poster = job["target"] + "video", job["target"] + "poster"
        given += [(video, "xb"), (video, "rb"), (poster, "xb")]
    return given


def _close_doors() -> None:
    """Let this process open nothing more, and start nothing. The kernel does not hold root to the latter."""
    for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC):
        resource.setrlimit(kind, (0, 0))


def preload() -> None:
    """Load now what PyAV and Pillow load at their first use, when nothing more can be opened."""
    for module in pkgutil.walk_packages(av.__path__, "av."):
        if not module.name.endswith(("__main__", "datasets")):
            importlib.import_module(module.name)
    av.logging.set_level(None)
    Image.init()


if __name__ == "__main__":
    preload()
    forking.serve(int(sys.argv[1]), run_job)
