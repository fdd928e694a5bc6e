"""Videos by their boxes: MP4 and MOV (ISO base media), WebM (EBML). No frame is decoded.

A file must be made of whole boxes from its first byte to its last. Boxes that may tell its place or author are
blanked in place: user data, metadata, and tracks that are neither pictures, sound nor text, with their samples. The
length of the file, and with it every offset, stays.

See docs/decisions.md: Code written by hand, and why it stays.
"""

import math
import struct
from collections.abc import Iterator
from typing import IO, NamedTuple

BOXES = 20_000
"""Boxes that one file may have."""
DEPTH = 6
CONTAINERS = frozenset({b"moov", b"trak", b"mdia", b"minf", b"stbl", b"edts", b"mvex", b"moof", b"traf"})
PRIVATE = frozenset({b"udta", b"meta", b"uuid", b"XMP_", b"loci"})
"""Boxes of user data, location and metadata."""
SHOWN = frozenset({b"vide", b"soun", b"text", b"sbtl", b"subt", b"clcp"})
"""Handlers of tracks that a player shows; others hold timed metadata, such as positions."""
TOP = frozenset(
    {b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"moof", b"mfra", b"sidx", b"styp", b"pnot", b"PICT"}
    | {b"udta", b"meta", b"uuid", b"emsg", b"prft", b"ssix", b"pdin"}
)
LARGEST_SIDE = 8192
LONGEST_SECONDS = 24 * 3600
CHUNK_BYTES = 1 << 20
SAMPLE_BYTES = 64 * 2**20
"""Bytes of samples of hidden tracks that are blanked at most; more is refused."""


class VideoError(Exception):
    """The file is no video that is taken; the message is for people."""


class Facts(NamedTuple):
    """The facts of a video: its container's extension, its size as shown in pixels, its length in seconds."""

    ext: str
    width: int
    height: int
    duration: float | None


class Box(NamedTuple):
    """A box: its type, where it begins, where what it holds begins, and where it ends."""

    type: bytes
    start: int
    body: int
    end: int


def clean(file: IO[bytes], size: int) -> Facts:
    """Check a video that can be written to, and blank what is private. Raises VideoError."""
    file.seek(0)
    if file.read(4) == b"\x1a\x45\xdf\xa3":
        return _webm(file, size)
    return _Movie(file, size).clean()


# --- MP4 and MOV -----------------------------------------------------------------------------------------
class _Movie:
    """One file of the ISO base media format."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self.file = file
        self.size = size
        self.left = BOXES
        self.duration: float | None = None
        self.sides = (0, 0)
        self.brand = b""
        self.blanked = 0

    def clean(self) -> Facts:
        found = set()
        for box in self.boxes(0, self.size):
            found.add(box.type)
            if box.type not in TOP:
                raise VideoError("It is not a video that is taken here: MP4, MOV or WebM.")
            if box.type == b"ftyp":
                self.brand = self.read(box.body, 4)
            self.visit(box, 0)
        if b"moov" not in found or not found & {b"mdat", b"moof"}:
            raise VideoError("The video is not whole.")
        if not all(self.sides):
            raise VideoError("There are no pictures in the video.")
        ext = "mov" if self.brand == b"qt  " or b"ftyp" not in found else "mp4"
        return _facts(ext, *self.sides, self.duration)

    def boxes(self, start: int, end: int) -> Iterator[Box]:
        """The boxes between two places, which they fill. Raises VideoError."""
        while start < end:
            self.left -= 1
            head = self.read(start, 16)
            if self.left < 0 or len(head) < 8:
                raise VideoError("The video is not whole.")
            length, kind = struct.unpack(">I4s", head[:8])
            body = start + 8
            if length == 1 and len(head) == 16:
                (length,) = struct.unpack(">Q", head[8:])
                body = start + 16
            elif length == 0 and end == self.size:
                length = end - start
            if start + length > end or start + length < body:
                if end < self.size and end - start <= 8 and not any(head[: end - start]):
                    return  # QuickTime ends user data with zeros
                raise VideoError("The video is not whole.")
            yield Box(kind, start, body, start + length)
            start += length

    def visit(self, box: Box, depth: int) -> None:
        if box.type in PRIVATE:
            self.blank(box)
        elif box.type == b"trak" and depth < DEPTH and not self.is_shown(box):
            self.blank_samples(box)
            self.blank(box)
        elif box.type == b"mvhd":
            self.duration = self.length_of(box)
        elif box.type == b"tkhd":
            self.see_sides(box)
        elif box.type in CONTAINERS and depth < DEPTH:
            for inner in self.boxes(box.body, box.end):
                self.visit(inner, depth + 1)

    def inside(self, box: Box, *path: bytes) -> Box | None:
        """The first box within, by its path."""
        for kind in path:
            found = next((each for each in self.boxes(box.body, box.end) if each.type == kind), None)
            if found is None:
                return None
            box = found
        return box

    def is_shown(self, track: Box) -> bool:
        handler = self.inside(track, b"mdia", b"hdlr")
        return handler is not None and self.read(handler.body + 8, 4) in SHOWN

    def length_of(self, box: Box) -> float | None:
        head = self.read(box.body, 32)
        if len(head) < 32:
            return None
        version = head[0]
        scale, length = struct.unpack(">IQ", head[20:32]) if version == 1 else struct.unpack(">II", head[12:20])
        return length / scale if scale else None

    def see_sides(self, box: Box) -> None:
        """The size of the largest track, turned as its matrix says."""
        body = self.read(box.body, 96)
        at = 88 if body[:1] == b"\x01" else 76
        if len(body) < at + 8:
            return
        matrix = struct.unpack(">9i", body[at - 36 : at])
        width, height = (side >> 16 for side in struct.unpack(">II", body[at : at + 8]))
        if not matrix[0] and not matrix[4] and matrix[1]:
            width, height = height, width
        if width * height > self.sides[0] * self.sides[1]:
            self.sides = width, height

    def blank(self, box: Box) -> None:
        """Make it a box of free space, full of zeros."""
        self.file.seek(box.start + 4)
        self.file.write(b"free")
        self.zero(box.body, box.end)

    def blank_samples(self, track: Box) -> None:
        """Zero the samples of a track."""
        table = self.inside(track, b"mdia", b"minf", b"stbl")
        if table is None:
            return
        for start, length in self.chunks(table):
            self.blanked += length
            if self.blanked > SAMPLE_BYTES or start < 0 or start + length > self.size:
                raise VideoError("The video is not whole.")
            self.zero(start, start + length)

    def chunks(self, table: Box) -> Iterator[tuple[int, int]]:
        """Where the chunks of a track lie, and how long they are."""
        parts = {box.type: box for box in self.boxes(table.body, table.end)}
        sizes, groups = parts.get(b"stsz"), parts.get(b"stsc")
        places = parts.get(b"stco") or parts.get(b"co64")
        if sizes is None or groups is None or places is None:
            return
        _version, each, count = self.numbers(sizes, ">III")[0]
        lengths = iter([each] * min(count, BOXES * 10)) if each else iter(self.listed(sizes, 12, ">I"))
        offsets = self.listed(places, 8, ">I" if places.type == b"stco" else ">Q")
        runs = self.listed_groups(groups)
        for number, offset in enumerate(offsets, 1):
            samples = next((count for first, count in reversed(runs) if first <= number), 0)
            yield offset, sum(length for _, length in zip(range(samples), lengths, strict=False))

    def numbers(self, box: Box, form: str) -> list[tuple[int, ...]]:
        body = self.read(box.body, struct.calcsize(form))
        if len(body) < struct.calcsize(form):
            raise VideoError("The video is not whole.")
        return [struct.unpack(form, body)]

    def listed(self, box: Box, at: int, form: str) -> list[int]:
        body = self.read(box.body + at, min(box.end - box.body - at, 4 * 2**20))
        step = struct.calcsize(form)
        return [number for (number,) in struct.iter_unpack(form, body[: len(body) // step * step])]

    def listed_groups(self, box: Box) -> list[tuple[int, int]]:
        body = self.read(box.body + 8, min(box.end - box.body - 8, 2**20))
        return [(first, count) for first, count, _ in struct.iter_unpack(">III", body[: len(body) // 12 * 12])]

    def zero(self, start: int, end: int) -> None:
        self.file.seek(start)
        while start < end:
            start += self.file.write(bytes(min(CHUNK_BYTES, end - start)))

    def read(self, start: int, count: int) -> bytes:
        self.file.seek(start)
        return self.file.read(max(count, 0))


# --- WebM ------------------------------------------------------------------------------------------------
EBML, SEGMENT, VOID = 0x1A45DFA3, 0x18538067, 0xEC
DOCTYPE, INFO, TRACKS, TAGS, ATTACHMENTS, CLUSTER = 0x4282, 0x1549A966, 0x1654AE6B, 0x1254C367, 0x1941A469, 0x1F43B675
SCALE, LENGTH, TITLE, DATE, NAME = 0x2AD7B1, 0x4489, 0x7BA9, 0x4461, 0x7384
ENTRY, PICTURE, WIDTH, HEIGHT = 0xAE, 0xE0, 0xB0, 0xBA
PRIVATE_ELEMENTS = frozenset({TAGS, ATTACHMENTS, TITLE, DATE, NAME})
MASTERS = frozenset({SEGMENT, INFO, TRACKS, ENTRY, PICTURE})


class Element(NamedTuple):
    """An element of EBML: its id, where it begins, where what it holds begins, and where it ends."""

    id: int
    start: int
    body: int
    end: int


def _elements(file: IO[bytes], start: int, end: int) -> Iterator[Element]:
    for _ in range(BOXES):
        if start >= end:
            return
        file.seek(start)
        head = file.read(12)
        identity, taken = _number(head, keep=True)
        length, more = _number(head[taken:], keep=False)
        body = start + taken + more
        if length is None or identity is None:
            raise VideoError("The video is not whole.")
        stop = end if length == 2 ** (7 * more) - 1 else body + length  # all ones: the length is not known
        if stop > end:
            raise VideoError("The video is not whole.")
        yield Element(identity, start, body, stop)
        start = stop
    raise VideoError("The video is not whole.")


def _number(data: bytes, *, keep: bool) -> tuple[int | None, int]:
    """A number of variable length, with its marker or without, and how many bytes it takes."""
    if not data or not data[0]:
        return None, 0
    taken = 9 - data[0].bit_length()
    if len(data) < taken:
        return None, 0
    value = int.from_bytes(data[:taken], "big")
    return (value if keep else value & (1 << 7 * taken) - 1), taken


def _webm(file: IO[bytes], size: int) -> Facts:
    found: dict[int, int | float] = {}
    kind = b""
    segments = 0
    for element in _elements(file, 0, size):
        if element.id == EBML:
            for inner in _elements(file, element.body, element.end):
                if inner.id == DOCTYPE:
                    file.seek(inner.body)
                    kind = file.read(min(inner.end - inner.body, 16)).rstrip(b"\0")
        elif element.id == SEGMENT:
            segments += 1
            _segment(file, element, found)
        elif element.id != VOID:
            raise VideoError("The video is not whole.")
    if kind != b"webm":
        raise VideoError("It is not a video that is taken here: MP4, MOV or WebM.")
    if segments != 1 or CLUSTER not in found:
        raise VideoError("The video is not whole.")
    length = found.get(LENGTH)
    seconds = None if length is None else float(length) * found.get(SCALE, 1_000_000) / 1e9
    if not found.get(WIDTH) or not found.get(HEIGHT):
        raise VideoError("There are no pictures in the video.")
    return _facts("webm", int(found[WIDTH]), int(found[HEIGHT]), seconds)


def _segment(file: IO[bytes], parent: Element, found: dict[int, int | float]) -> None:
    for element in _elements(file, parent.body, parent.end):
        if element.id in PRIVATE_ELEMENTS:
            _void(file, element)
        elif element.id in MASTERS:
            _segment(file, element, found)
        elif element.id == CLUSTER:
            found[CLUSTER] = 1
            if element.end == parent.end:  # of unknown length: what follows are its blocks
                return
        elif element.id in (WIDTH, HEIGHT, SCALE):
            file.seek(element.body)
            found.setdefault(element.id, int.from_bytes(file.read(min(element.end - element.body, 8)), "big"))
        elif element.id == LENGTH:
            file.seek(element.body)
            data = file.read(element.end - element.body) if element.end - element.body in (4, 8) else b""
            if data:
                found[LENGTH] = struct.unpack(">f" if len(data) == 4 else ">d", data)[0]


def _void(file: IO[bytes], element: Element) -> None:
    """Make it an element of empty space, as long as it was."""
    length = element.end - element.start
    head = b"\xec\x01" + (length - 9).to_bytes(7, "big") if length >= 9 else bytes([VOID, 0x80 | (length - 2)])
    file.seek(element.start)
    file.write(head)
    left = length - len(head)
    while left > 0:
        left -= file.write(bytes(min(CHUNK_BYTES, left)))


def _facts(ext: str, width: int, height: int, duration: float | None) -> Facts:
    if width > LARGEST_SIDE or height > LARGEST_SIDE:
        raise VideoError("The video is larger than 8192 pixels.")
    if duration is not None and not (math.isfinite(duration) and 0 <= duration <= LONGEST_SECONDS):
        raise VideoError("The video is not whole.")
    return Facts(ext, width, height, None if duration is None else round(duration, 3))
