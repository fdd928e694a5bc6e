"""Small videos, made by FFmpeg's libraries."""

import functools
import io
import os
from fractions import Fraction
from typing import Any

import av

RATE = 48_000


@functools.cache
def film(
    codec: str = "libx264",
    sound: str = "aac",
    container: str = "mp4",
    *,
    size: tuple[int, int] = (64, 48),
    frames: int = 10,
    rate: int = 30,
    pixels: str = "yuv420p",
    turned: int = 0,
    times: tuple[int, ...] = (),
    ratio: Fraction = Fraction(1),
    secret: str = "",
    layout: str = "mono",
    options: tuple[tuple[str, str], ...] = (),
    movflags: str = "",
) -> bytes:
    """A video whose left half is red. `times`: those of its frames, in frames. `secret`: in tags, a second sound,
    chapters and an attachment.
    """
    file = io.BytesIO()
    tags = dict.fromkeys(("title", "location", "comment", "com.apple.quicktime.model"), secret) if secret else {}
    if secret:
        tags["creation_time"] = "2020-02-02T20:20:20Z"
    front = {"movflags": movflags} if movflags else {}
    reader = lambda *_about: io.BytesIO(file.getvalue())  # noqa: E731
    with av.open(file, "w", format=container, container_options=front, io_open=reader) as out:
        out.metadata.update(tags)
        shown = out.add_stream(codec, rate=rate, options=dict(options))
        shown.width, shown.height, shown.pix_fmt, shown.thread_count = *size, pixels, 1
        shown.codec_context.sample_aspect_ratio = ratio
        if turned:
            shown.set_display_rotation(turned)
        heard: Any = None
        if sound:
            rate_heard = 8_000 if "law" in sound else RATE
            heard = out.add_stream(sound, rate=rate_heard, layout=layout, options={"strict": "experimental"})
        streams = [stream for stream in (shown, heard) if stream]
        if secret:
            _hide(out, streams, secret)
        for at in times or range(frames):
            frame = _frame(size, at).reformat(format=pixels)
            frame.pts, frame.time_base = at, Fraction(1, rate)
            out.mux(shown.encode(frame))
        if heard is not None:
            _add_sound(out, heard, ((times or (frames,))[-1]) / rate)
        out.mux(shown.encode(None))
    # As root, SVT-AV1 makes its caller's thread one that nothing else may interrupt, and so all that it starts.
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return file.getvalue()


def _hide(out: Any, streams: list[Any], secret: str) -> None:
    for stream in streams:
        stream.metadata.update({"title": secret, "handler_name": secret, "language": "eng"})
    out.set_chapters([{"id": 1, "start": 0, "end": 100, "time_base": Fraction(1, 1000), "metadata": {"title": secret}}])
    if out.format.name == "matroska":
        out.add_attachment(f"{secret}.txt", "text/plain", secret.encode())


def _frame(size: tuple[int, int], at: int) -> av.VideoFrame:
    width, height = size
    row = bytes((220, 30, 30)) * (width // 2) + bytes((30, 30, 20 * at % 256)) * (width - width // 2)
    plane = (frame := av.VideoFrame(width, height, "rgb24")).planes[0]
    plane.update(row.ljust(plane.line_size, b"\0") * height)
    return frame


def _add_sound(out: Any, heard: Any, seconds: float) -> None:
    context = heard.codec_context
    if not context.is_open:
        context.open()
    frame = av.AudioFrame("s16", context.layout, max(1, round(context.sample_rate * seconds)))
    for plane in frame.planes:
        plane.update(bytes(plane.buffer_size))
    frame.sample_rate, frame.pts = context.sample_rate, 0
    resampler = av.AudioResampler(
        context.format, context.layout, context.sample_rate, frame_size=context.frame_size or None
    )
    for ready in (*resampler.resample(frame), *resampler.resample(None)):
        out.mux(heard.encode(ready))
    out.mux(heard.encode(None))
