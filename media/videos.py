"""Rewrites videos by their containers: MP4 and MOV (ISO base media), WebM (EBML). No frame is decoded.

Known boxes or elements and samples of pictures and sound keep their offsets. The rest becomes zeros. Every loop is
linear and bounded.
"""

import array
import math
import os
import struct
import sys
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

PARTS = 200_000
"""Most boxes or elements of a file. WebM has one per frame."""
CHUNKS = 1_000_000
"""Most runs of samples in a file."""
TABLE_BYTES = 64 * 2**20
"""Most bytes of all tables of a file."""
CONFIG_BYTES = 65_536
"""Most bytes of a decoder configuration."""
NUMBER_BYTES = 64
"""Most bytes of a number or short name in WebM."""
LARGEST_SIDE = 8192
LONGEST_SECONDS = 24 * 3600
COPY_BYTES = 1 << 20
AHEAD_BYTES = 4096
EBML_MAGIC = b"\x1a\x45\xdf\xa3"


class VideoError(Exception):
    """The video is refused, for one of `REASONS` of media.decoder."""


class VideoFacts(NamedTuple):
    """Extension, displayed size, duration in seconds."""

    ext: str
    width: int
    height: int
    duration: float | None


def rewrite(source: str, target: str) -> VideoFacts:
    """Copy only what a player needs. Raises VideoError, OSError."""
    handle = os.open(source, os.O_RDONLY)
    try:
        plan = _Plan(handle)
        facts = _WebM(plan).read() if plan.some(0, 4) == EBML_MAGIC else _Movie(plan).read()
        plan.write(target)
    finally:
        os.close(handle)
    return facts


class _Plan:
    """The parts of a video to copy, and the bytes to write over them."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.size = os.fstat(handle).st_size
        self.left = PARTS
        self.ahead = b""
        self.ahead_at = 0
        self.spans: list[tuple[int, int]] = []
        self.patches: list[tuple[int, bytes]] = []

    def some(self, start: int, count: int) -> bytes:
        """Up to `count` bytes of the file. It reads ahead, because heads follow each other."""
        at = start - self.ahead_at
        if 0 <= at <= len(self.ahead) - count:
            return self.ahead[at : at + count]
        if count > AHEAD_BYTES:
            return os.pread(self.handle, count, start)
        self.ahead, self.ahead_at = os.pread(self.handle, AHEAD_BYTES, start), start
        return self.ahead[: max(count, 0)]

    def exactly(self, start: int, count: int) -> bytes:
        data = self.some(start, count)
        if len(data) < count:
            raise VideoError("whole")
        return data

    def numbers(self, form: str, start: int) -> tuple[Any, ...]:
        return struct.unpack(form, self.exactly(start, struct.calcsize(form)))

    def count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise VideoError("parts")

    def keep(self, start: int, end: int) -> None:
        self.spans.append((start, end))

    def patch(self, at: int, data: bytes) -> None:
        self.patches.append((at, data))

    def mark(self) -> tuple[int, int]:
        return len(self.spans), len(self.patches)

    def back_to(self, mark: tuple[int, int]) -> None:
        del self.spans[mark[0] :], self.patches[mark[1] :]

    def write(self, target: str) -> None:
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.ftruncate(handle, self.size)
            for start, end in _merged(self.spans):
                at = start
                while at < end:
                    at += os.pwrite(handle, self.exactly(at, min(COPY_BYTES, end - at)), at)
            for at, data in self.patches:
                if os.pwrite(handle, data, at) < len(data):
                    raise VideoError("whole")
        finally:
            os.close(handle)


def _merged(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    spans.sort()
    begun: tuple[int, int] | None = None
    for start, end in spans:
        if begun is not None and start <= begun[1]:
            begun = begun[0], max(begun[1], end)
        else:
            if begun is not None:
                yield begun
            begun = start, end
    if begun is not None:
        yield begun


def _facts(ext: str, width: int, height: int, duration: float | None) -> VideoFacts:
    if not width or not height:
        raise VideoError("pictures")
    if width > LARGEST_SIDE or height > LARGEST_SIDE:
        raise VideoError("sides")
    if duration is not None and not (math.isfinite(duration) and 0 <= duration <= LONGEST_SECONDS):
        raise VideoError("whole")
    return VideoFacts(ext, width, height, round(duration, 3) if duration else None)


# --- MP4 and MOV -----------------------------------------------------------------------------------------
FIXED = {
    b"mvhd": (100, 112),
    b"tkhd": (84, 96),
    b"mdhd": (24, 36),
    b"vmhd": (12, 12),
    b"smhd": (8, 8),
    b"cslg": (24, 44),
    b"mehd": (8, 12),
    b"trex": (24, 24),
    b"mfhd": (8, 8),
    b"tfdt": (8, 12),
}
"""Bytes of a box's body in versions 0 and 1."""
DATED = frozenset({b"mvhd", b"tkhd", b"mdhd"})
"""Boxes that begin with two dates."""
TABLES = {
    b"stts": (8, 8),
    b"ctts": (8, 8),
    b"stss": (4, 4),
    b"stps": (4, 4),
    b"stsc": (12, 12),
    b"stco": (4, 4),
    b"co64": (8, 8),
    b"elst": (12, 20),
}
"""Bytes of a table's entry in versions 0 and 1."""
PICTURES = frozenset({b"avc1", b"avc3", b"hvc1", b"hev1", b"dvh1", b"dvhe", b"av01", b"vp08", b"vp09", b"mp4v"})
PLAIN_SOUNDS = frozenset({b"sowt", b"twos", b"in24", b"lpcm", b"ipcm"})
SOUNDS = frozenset({b"mp4a", b"Opus", b"fLaC", b"alac", b"ac-3", b"ec-3", b".mp3"}) | PLAIN_SOUNDS
"""Codecs of tracks that are kept."""
UNPLAYED = {b"ulaw": "mulaw", b"alaw": "alaw", b"m2v1": "mpeg2", b"mp2v": "mpeg2", b"mpg2": "mpeg2"}
"""Codecs of MP4 and MOV that browsers do not play, and that a refusal names."""
UNPLAYED_OBJECTS = dict.fromkeys((*range(0x60, 0x66), 0x6A), "mpeg2") | {0xDD: "vorbis"}
"""The same by the object types of an `esds`."""
CONFIGS = frozenset(
    {b"avcC", b"hvcC", b"av1C", b"vpcC", b"esds", b"dvcC", b"dvvC", b"dOps", b"dfLa", b"alac", b"dac3", b"dec3"}
    | {b"pasp", b"clap", b"fiel", b"btrt", b"mdcv", b"clli", b"SmDm", b"CoLL", b"chan", b"srat", b"pcmC"}
    | {b"frma", b"mp4a", b"enda", b"\0\0\0\0"}
)
COLOUR_BYTES = {b"nclx": 11, b"nclc": 10}
"""Bytes of a numeric colour description. Colour profiles are dropped."""
FLAC_BYTES = 42
"""A FLAC configuration with STREAMINFO only."""
LARGEST_BRANDS = 256


class Box(NamedTuple):
    """A box with its offsets."""

    type: bytes
    start: int
    body: int
    end: int


class _Track:
    """A track. `scale`: time units per second. `length`: of its fragments, in these units."""

    def __init__(self, scale: int, *, has_pictures: bool) -> None:
        self.has_pictures = has_pictures
        self.scale = scale
        self.length = 0
        self.defaults = (0, 0)
        """Duration and bytes of a sample, for fragments that give none."""


class _Movie:
    def __init__(self, plan: _Plan) -> None:
        self.plan = plan
        self.duration: float | None = None
        self.sides = (0, 0)
        self.tracks: dict[int, _Track] = {}
        self.tables = 0
        self.chunks = 0
        self.samples: list[tuple[int, int]] = []
        self.sounds = [0, 0]
        """Sound tracks left out, and kept."""
        self.unplayed: dict[bytes, str] = {}
        """The reason why a track was left out, by its handler."""

    def read(self) -> VideoFacts:
        found: dict[bytes, int] = {}
        brand = b""
        data: list[tuple[int, int]] = []
        for box in self.boxes(0, self.plan.size):
            found[box.type] = found.get(box.type, 0) + 1
            if box.type == b"mdat":
                self.head(box)
                data.append((box.body, box.end))
            elif box.type in (b"ftyp", b"styp") and box.end - box.body <= LARGEST_BRANDS:
                self.plan.keep(box.start, box.end)
                brand = brand or self.plan.some(box.body, 4)
            elif box.type == b"moov":
                self.movie(box)
            elif box.type == b"moof":
                self.fragment(box)
            elif box.type == b"sidx":
                self.index(box)
            else:
                self.free(box)
        if found.get(b"moov") != 1 or not data:
            raise VideoError("whole")
        if b"vide" in self.unplayed and not any(track.has_pictures for track in self.tracks.values()):
            raise VideoError(self.unplayed[b"vide"])
        if self.sounds[0] and not self.sounds[1]:
            raise VideoError(self.unplayed.get(b"soun", "sound"))
        self.place_samples(data)
        seconds = self.fragments_seconds() if b"moof" in found else self.duration
        return _facts("mov" if brand == b"qt  " or not brand else "mp4", *self.sides, seconds)

    # --- boxes -----------------------------------------------------------------------------------------
    def boxes(self, start: int, end: int) -> Iterator[Box]:
        """The boxes between two offsets. Raises VideoError if they do not fill the space."""
        while start < end:
            self.plan.count()
            head = self.plan.some(start, min(16, end - start))
            if len(head) < 8:
                if end < self.plan.size and not any(head):
                    return  # QuickTime ends lists with zeros
                raise VideoError("whole")
            length, kind = struct.unpack(">I4s", head[:8])
            body = start + 8
            if length == 1 and len(head) == 16:
                (length,) = struct.unpack(">Q", head[8:])
                body = start + 16
            elif length == 0 and end == self.plan.size:
                length = end - start
            if start + length > end or start + length < body:
                if end < self.plan.size and end - start == 8 and not any(head):
                    return
                raise VideoError("whole")
            yield Box(kind, start, body, start + length)
            start += length

    def head(self, box: Box) -> None:
        self.plan.keep(box.start, box.body)

    def free(self, box: Box) -> None:
        self.head(box)
        self.plan.patch(box.start + 4, b"free")

    def pick(self, box: Box | None, kinds: Collection[bytes]) -> dict[bytes, Box]:
        """Keep a box. Returns its first inner box of each kind, and frees all others."""
        found: dict[bytes, Box] = {}
        if box is None:
            return found
        self.head(box)
        for inner in self.boxes(box.body, box.end):
            if inner.type in kinds and inner.type not in found:
                found[inner.type] = inner
            else:
                self.free(inner)
        return found

    def front(self, box: Box, count: int) -> None:
        if box.body + count > box.end:
            raise VideoError("whole")
        self.plan.keep(box.start, box.body + count)

    def leaf(self, box: Box) -> bytes:
        """Keep a box of numbers without its dates."""
        version = self.version(box)
        size = FIXED[box.type][version]
        self.front(box, size)
        if box.type in DATED:
            self.plan.patch(box.body + 4, bytes(16 if version else 8))
        return self.plan.exactly(box.body, size)

    def table(self, box: Box, *, at: int = 4, step: int = 0) -> bytes:
        step = step or TABLES[box.type][self.version(box)]
        (count,) = self.plan.numbers(">I", box.body + at)
        self.tables += count * step
        if self.tables > TABLE_BYTES:
            raise VideoError("parts")
        self.front(box, at + 4 + count * step)
        return self.plan.exactly(box.body + at + 4, count * step)

    def version(self, box: Box) -> int:
        version = self.plan.exactly(box.body, 1)[0]
        if version > 1:
            raise VideoError("whole")
        return version

    def index(self, box: Box) -> None:
        head = 32 if self.version(box) else 24
        (count,) = self.plan.numbers(">H", box.body + head - 2)
        self.front(box, head + 12 * count)

    # --- the movie and its tracks ----------------------------------------------------------------------
    def movie(self, box: Box) -> None:
        self.head(box)
        defaults: dict[int, tuple[int, int]] = {}
        for inner in self.boxes(box.body, box.end):
            if inner.type == b"mvhd":
                self.duration = self.seconds(self.leaf(inner))
            elif inner.type == b"trak":
                self.track(inner)
            elif inner.type == b"mvex":
                self.head(inner)
                for part in self.boxes(inner.body, inner.end):
                    if part.type == b"trex":
                        number, _description, length, size = struct.unpack(">4I", self.leaf(part)[4:20])
                        defaults[number] = length, size
                    elif part.type == b"mehd":
                        self.leaf(part)
                    else:
                        self.free(part)
            else:
                self.free(inner)
        for number, track in self.tracks.items():
            track.defaults = defaults.get(number, (0, 0))

    def seconds(self, body: bytes) -> float | None:
        scale, length = _scaled(body)
        is_known = length not in (0, 2**32 - 1, 2**64 - 1)
        return length / scale if scale and is_known else None

    def track(self, box: Box) -> None:
        """Keep a track of pictures or sound in a known codec, or free it."""
        mark = self.plan.mark()
        parts = self.pick(box, (b"tkhd", b"edts", b"mdia"))
        media = self.pick(parts.get(b"mdia"), (b"mdhd", b"hdlr", b"minf"))
        handler = self.handler(media.get(b"hdlr"))
        is_kept = handler in (b"vide", b"soun") and self.described(handler, parts, media)
        if not is_kept:
            self.plan.back_to(mark)
            self.free(box)
        if handler == b"soun":
            self.sounds[is_kept] += 1

    def described(self, handler: bytes, parts: dict[bytes, Box], media: dict[bytes, Box]) -> bool:
        """Keep what a track's codec needs, and register the track. False if the codec is unknown."""
        for edits in self.pick(parts.get(b"edts"), (b"elst",)).values():
            self.table(edits)
        inner = self.pick(media.get(b"minf"), (b"vmhd", b"smhd", b"hdlr", b"dinf", b"stbl"))
        for kind in inner.keys() & {b"vmhd", b"smhd"}:
            self.leaf(inner[kind])
        self.handler(inner.get(b"hdlr"))
        for places in self.pick(inner.get(b"dinf"), (b"dref",)).values():
            self.references(places)
        kinds = {b"stsd", b"stsz", b"stz2", b"cslg", b"stts", b"ctts", b"stss", b"stps", b"stsc", b"stco", b"co64"}
        tables = self.pick(inner.get(b"stbl"), kinds)
        unit = 0
        if b"stsd" in tables:
            found = self.codecs(tables.pop(b"stsd"), handler)
            if found is None:
                return False
            unit = found
        if b"tkhd" not in parts or b"stz2" in tables:
            raise VideoError("whole")
        head = self.leaf(parts[b"tkhd"])
        (number,) = struct.unpack(">I", head[20:24] if head[0] else head[12:16])
        if number in self.tracks:
            number = -len(self.tracks)  # without fragments, two tracks may share a number
        scale = _scaled(self.leaf(media[b"mdhd"]))[0] if b"mdhd" in media else 0
        self.tracks[number] = _Track(scale, has_pictures=handler == b"vide")
        if handler == b"vide":
            self.see_sides(head)
        self.sampled(tables, unit)
        return True

    def handler(self, box: Box | None) -> bytes:
        if box is None:
            return b""
        self.front(box, 12)
        return self.plan.some(box.body + 8, 4)

    def references(self, box: Box) -> None:
        """Declare that all samples are in this file."""
        self.front(box, 8)
        for inner in self.boxes(box.body + 8, box.end):
            self.front(inner, 4)
            self.plan.patch(inner.body, b"\0\0\0\1")

    def see_sides(self, head: bytes) -> None:
        at = 88 if head[0] else 76
        matrix = struct.unpack(">9i", head[at - 36 : at])
        width, height = (side >> 16 for side in struct.unpack(">II", head[at : at + 8]))
        if not matrix[0] and not matrix[4] and matrix[1]:
            width, height = height, width
        if width * height > self.sides[0] * self.sides[1]:
            self.sides = width, height

    def codecs(self, box: Box, handler: bytes) -> int | None:
        """Keep codec descriptions without makers' names. None if one is unknown.

        Returns the bytes of one frame of uncompressed sound, for which old tables say 1. Else 0.
        """
        self.front(box, 8)
        is_new, unit, count = self.version(box), 0, 0
        for entry in self.boxes(box.body + 8, box.end):
            count += 1
            if entry.type not in (PICTURES if handler == b"vide" else SOUNDS):
                if entry.type in UNPLAYED:
                    self.unplayed[handler] = UNPLAYED[entry.type]
                return None
            if handler == b"vide":
                size = 78
                self.front(entry, size)
                self.plan.patch(entry.body + 8, bytes(16))  # the maker
                self.plan.patch(entry.body + 42, bytes(32))  # the name of its program
            else:
                version, channels, bits = self.plan.numbers(">8xH6x2H", entry.body)
                size = 28 if is_new else {0: 28, 1: 44, 2: 64}.get(version, 28)
                self.front(entry, size)
                self.plan.patch(entry.body + 10, bytes(6))  # the maker
                if entry.type in PLAIN_SOUNDS and version < 2:
                    unit = channels * max(bits, 8) // 8
            if unplayed := self.configs(entry.body + size, entry.end):
                self.unplayed[handler] = unplayed
                return None
        return unit if count else None

    def configs(self, start: int, end: int, *, is_inner: bool = False) -> str:
        """Keep what a decoder needs. Returns one of `UNPLAYED_OBJECTS`, or ""."""
        unplayed = ""
        for box in self.boxes(start, end):
            length = box.end - box.body
            if box.type == b"wave" and not is_inner:
                self.head(box)
                unplayed = self.configs(box.body, box.end, is_inner=True) or unplayed
            elif box.type == b"colr" and length == COLOUR_BYTES.get(self.plan.some(box.body, 4)):
                self.plan.keep(box.start, box.end)
            elif box.type == b"dfLa" and length > FLAC_BYTES:
                self.front(box, FLAC_BYTES)
                self.plan.patch(box.body + 4, b"\x80")  # drop comments and pictures
            elif box.type in CONFIGS and length <= CONFIG_BYTES:
                self.plan.keep(box.start, box.end)
                if box.type == b"esds":
                    unplayed = UNPLAYED_OBJECTS.get(_object_type(self.plan.some(box.body, min(length, 64))), unplayed)
            else:
                self.free(box)
        return unplayed

    # --- samples ---------------------------------------------------------------------------------------
    def sampled(self, tables: dict[bytes, Box], unit: int) -> None:
        entries = {kind: self.table(box) for kind, box in tables.items() if kind in TABLES}
        if b"cslg" in tables:
            self.leaf(tables[b"cslg"])
        if b"stsz" not in tables:
            return
        each, count = self.plan.numbers(">II", tables[b"stsz"].body + 4)
        sizes = _numbers("I", self.table(tables[b"stsz"], at=8, step=4)) if not each else None
        if each:
            self.front(tables[b"stsz"], 12)
            each = max(each, unit) if each == 1 else each
        offsets = _numbers("Q", entries.get(b"co64", b"")) or _numbers("I", entries.get(b"stco", b""))
        runs = _numbers("I", entries.get(b"stsc", b""))
        self.chunks += len(offsets)
        if self.chunks > CHUNKS:
            raise VideoError("parts")
        at = 0
        for offset, many in zip(offsets, _per_chunk(runs, len(offsets)), strict=True):
            taken = min(many, count - at)
            self.sample(offset, sum(sizes[at : at + taken]) if sizes is not None else taken * each)
            at += taken

    def sample(self, start: int, length: int) -> None:
        if start < 0 or start + length > self.plan.size:
            raise VideoError("whole")
        if not length:
            return
        if self.samples and self.samples[-1][1] == start:
            self.samples[-1] = self.samples[-1][0], start + length
        else:
            self.samples.append((start, start + length))

    def place_samples(self, data: list[tuple[int, int]]) -> None:
        """Keep all samples. Each must lie in a data box, so that none points at dropped bytes."""
        places = iter(data)
        first, last = next(places)
        for start, end in _merged(self.samples):
            while end > last:
                place = next(places, None)
                if place is None:
                    raise VideoError("whole")
                first, last = place
            if start < first:
                raise VideoError("whole")
            self.plan.keep(start, end)

    # --- fragments -------------------------------------------------------------------------------------
    def fragment(self, box: Box) -> None:
        if not self.tracks:
            raise VideoError("whole")
        self.head(box)
        after: int | None = box.start
        for inner in self.boxes(box.body, box.end):
            if inner.type == b"traf":
                after = self.track_fragment(inner, box.start, after)
            elif inner.type == b"mfhd":
                self.leaf(inner)
            else:
                self.free(inner)

    def track_fragment(self, box: Box, movie: int, after: int | None) -> int | None:
        """Keep a fragment of a track, or leave it out. `after` and the result: where samples end, None if left out."""
        inner = list(self.boxes(box.body, box.end))
        head = next((part for part in inner if part.type == b"tfhd"), None)
        if head is None:
            raise VideoError("whole")
        flags, number = self.plan.numbers(">II", head.body)
        if number not in self.tracks:
            self.free(box)
            return None
        self.head(box)
        track = self.tracks[number]
        base, at = self.fragment_base(head, flags, movie, after)
        length, size = track.defaults
        for flag in (2, 8, 16, 32):
            if flags & flag:
                (value,) = self.plan.numbers(">I", head.body + at)
                length, size = (value if flag == 8 else length), (value if flag == 16 else size)
                at += 4
        self.front(head, at)
        end = base
        for part in inner:
            if part.type == b"trun":
                end = self.run(part, track, base, end, (length, size))
            elif part.type == b"tfdt":
                self.leaf(part)
            elif part is not head:
                self.free(part)
        return end

    def fragment_base(self, head: Box, flags: int, movie: int, after: int | None) -> tuple[int, int]:
        if flags & 1:
            (base,) = self.plan.numbers(">Q", head.body + 8)
            return base, 16
        if flags & 0x20000:
            return movie, 8
        if after is None:
            raise VideoError("whole")
        return after, 8

    def run(self, box: Box, track: _Track, base: int, start: int, defaults: tuple[int, int]) -> int:
        flags, count = self.plan.numbers(">II", box.body)
        at = 8
        if flags & 1:
            (offset,) = self.plan.numbers(">i", box.body + at)
            start = base + offset
            at += 4
        if flags & 4:
            at += 4
        columns = [flag for flag in (0x100, 0x200, 0x400, 0x800) if flags & flag]
        width = len(columns)
        self.tables += count * width * 4
        if self.tables > TABLE_BYTES:
            raise VideoError("parts")
        self.front(box, at + count * width * 4)
        values = _numbers("I", self.plan.exactly(box.body + at, count * width * 4))
        length, size = (
            sum(values[columns.index(flag) :: width]) if flag in columns else count * default
            for flag, default in zip((0x100, 0x200), defaults, strict=True)
        )
        track.length += length
        self.sample(start, size)
        return start + size

    def fragments_seconds(self) -> float | None:
        tracks = [track for track in self.tracks.values() if track.has_pictures and track.scale]
        return max((track.length / track.scale for track in tracks), default=None)


def _scaled(body: bytes) -> tuple[int, int]:
    scale, length = struct.unpack(">IQ", body[20:32]) if body[0] else struct.unpack(">II", body[12:20])
    return scale, length


def _numbers(code: str, data: bytes) -> "array.array[int]":
    """Big-endian unsigned numbers of 4 bytes (I) or 8 (Q)."""
    found = array.array(code, data)
    if sys.byteorder == "little":
        found.byteswap()
    return found


def _per_chunk(runs: "array.array[int]", chunks: int) -> Iterator[int]:
    """The number of samples in each chunk. The table of first chunks must ascend."""
    at = 0
    many = 0
    for place in range(0, len(runs), 3):
        first = runs[place] - 1
        if first < at or (place == 0) != (first == 0):
            raise VideoError("whole")
        for _ in range(min(first, chunks) - at):
            yield many
        at, many = min(first, chunks), runs[place + 1]
        if first >= chunks:
            break
    for _ in range(chunks - at):
        yield many


def _object_type(data: bytes) -> int:
    """The object type that an `esds` names, or 0."""
    at = 4
    for tag in (3, 4):
        if data[at : at + 1] != bytes([tag]):
            return 0
        at += 1
        while data[at : at + 1] >= b"\x80":
            at += 1
        at += 1
        if tag == 3:
            flags = data[at + 2] if at + 2 < len(data) else 0
            at += 3 + (2 if flags & 0x80 else 0)
            if flags & 0x40:
                at += 1 + (data[at] if at < len(data) else 0)
            at += 2 if flags & 0x20 else 0
    return data[at] if at < len(data) else 0


# --- WebM ------------------------------------------------------------------------------------------------
EBML, SEGMENT, VOID, DOCTYPE = 0x1A45DFA3, 0x18538067, 0xEC, 0x4282
SEEK_HEAD, INFO, TRACKS, CLUSTER, CUES = 0x114D9B74, 0x1549A966, 0x1654AE6B, 0x1F43B675, 0x1C53BB6B
TAGS, ATTACHMENTS, CHAPTERS = 0x1254C367, 0x1941A469, 0x1043A770
LEVEL = frozenset({SEEK_HEAD, INFO, TRACKS, CLUSTER, CUES, TAGS, ATTACHMENTS, CHAPTERS, SEGMENT, EBML})
"""Elements that end a cluster of unknown length."""
SCALE, LENGTH = 0x2AD7B1, 0x4489
ENTRY, NUMBER, TYPE, CODEC, PRIVATE, ENCODINGS = 0xAE, 0xD7, 0x83, 0x86, 0x63A2, 0x6D80
VIDEO, AUDIO, WIDTH, HEIGHT, COLOUR, MASTERING = 0xE0, 0xE1, 0xB0, 0xBA, 0x55B0, 0x55D0
SEEK, SEEK_ID, SEEK_AT = 0x4DBB, 0x53AB, 0x53AC
SIMPLE_BLOCK, GROUP, BLOCK = 0xA3, 0xA0, 0xA1
ADDITIONS, MORE, MORE_ID, MORE_DATA = 0x75A1, 0xA6, 0xEE, 0xA5
CUE, CUE_PLACE = 0xBB, 0xB7
HEADER_LEAVES = frozenset({0x4286, 0x42F7, 0x42F2, 0x42F3, DOCTYPE, 0x4287, 0x4285})
ENTRY_LEAVES = frozenset({NUMBER, 0x73C5, TYPE, 0xB9, 0x88, 0x55AA, 0x9C, 0x23E383, 0x22B59C, CODEC, 0x56AA, 0x56BB})
ENTRY_LEAVES |= {0x55EE}
VIDEO_LEAVES = frozenset({0x9A, 0x9D, 0x53B8, 0x53C0, WIDTH, HEIGHT, 0x54AA, 0x54BB, 0x54CC, 0x54DD})
VIDEO_LEAVES |= {0x54B0, 0x54BA, 0x54B2}
AUDIO_LEAVES = frozenset({0xB5, 0x78B5, 0x9F, 0x6264})
COLOUR_LEAVES = frozenset(range(0x55B1, 0x55BE))
MASTERING_LEAVES = frozenset(range(0x55D1, 0x55DB))
CLUSTER_LEAVES = frozenset({0xE7, 0xA7, 0xAB})
GROUP_LEAVES = frozenset({0x9B, 0xFB, 0x75A2})
CUE_LEAVES = frozenset({0xB3})
PLACE_LEAVES = frozenset({0xF7, 0xF1, 0xF0, 0xB2, 0x5378})
CODECS = {b"V_VP8": 1, b"V_VP9": 1, b"V_AV1": 1, b"A_VORBIS": 2, b"A_OPUS": 2}
"""Codecs of tracks that are kept. 1: pictures, 2: sound."""


class Element(NamedTuple):
    """An EBML element with its offsets."""

    id: int
    start: int
    body: int
    end: int
    is_open: bool
    """Whether the length is unknown. The element ends with its parent, or before the next element of its level."""


class _WebM:
    def __init__(self, plan: _Plan) -> None:
        self.plan = plan
        self.scale = 1_000_000
        self.length: float | None = None
        self.sides = (0, 0)
        self.tracks: set[int] = set()
        self.clusters = 0
        self.sounds = [0, 0]
        """Sound tracks left out, and kept."""

    def read(self) -> VideoFacts:
        kind = b""
        segments = 0
        for element in self.elements(0, self.plan.size):
            if element.id == EBML and not kind:
                kind = self.header(element)
                if kind == b"matroska":
                    raise VideoError("mkv")
            elif element.id == SEGMENT and kind:
                segments += 1
                self.segment(element)
            elif element.id == VOID:
                self.void(element)
            else:
                raise VideoError("whole")
        if kind != b"webm":
            raise VideoError("kind")
        if segments != 1 or not self.clusters:
            raise VideoError("whole")
        if self.sounds[0] and not self.sounds[1]:
            raise VideoError("sound")
        return _facts("webm", *self.sides, None if self.length is None else self.length * self.scale / 1e9)

    # --- elements --------------------------------------------------------------------------------------
    def element(self, start: int, end: int) -> Element:
        self.plan.count()
        head = self.plan.some(start, min(12, end - start))
        identity, taken = _number(head, 4, keep=True)
        length, more = _number(head[taken:], 8, keep=False)
        body = start + taken + more
        is_open = length == 2 ** (7 * more) - 1
        if is_open and identity not in (SEGMENT, CLUSTER):
            raise VideoError("whole")
        stop = end if is_open else body + length
        if stop > end:
            raise VideoError("whole")
        return Element(identity, start, body, stop, is_open)

    def elements(self, start: int, end: int) -> Iterator[Element]:
        """The elements between two offsets. They must fill the space."""
        while start < end:
            element = self.element(start, end)
            yield element
            start = element.end

    def head(self, element: Element) -> None:
        self.plan.keep(element.start, element.body)

    def void(self, element: Element) -> None:
        if element.is_open:
            raise VideoError("whole")
        length = element.end - element.start
        head = b"\xec\x01" + (length - 9).to_bytes(7, "big") if length >= 9 else bytes([VOID, 0x80 | (length - 2)])
        self.plan.patch(element.start, head)

    def value(self, element: Element) -> bytes:
        if element.end - element.body > NUMBER_BYTES:
            raise VideoError("whole")
        return self.plan.some(element.body, element.end - element.body)

    def number(self, element: Element) -> int:
        return int.from_bytes(self.value(element)[:8], "big")

    def master(self, element: Element, leaves: Collection[int], masters: Collection[int] = ()) -> dict[int, Element]:
        """Keep an element and its small `leaves`, and empty all but `masters`. Returns both by kind."""
        self.head(element)
        found: dict[int, Element] = {}
        for inner in self.elements(element.body, element.end):
            if inner.id in masters and inner.id not in found:
                found[inner.id] = inner
            elif inner.id in leaves and inner.end - inner.body <= NUMBER_BYTES:
                self.plan.keep(inner.start, inner.end)
                found[inner.id] = inner
            else:
                self.void(inner)
        return found

    # --- what a file holds -----------------------------------------------------------------------------
    def header(self, element: Element) -> bytes:
        found = self.master(element, HEADER_LEAVES)
        return self.value(found[DOCTYPE]).rstrip(b"\0") if DOCTYPE in found else b""

    def segment(self, segment: Element) -> None:
        self.head(segment)
        at = segment.body
        while at < segment.end:
            element = self.element(at, segment.end)
            at = element.end
            if element.id == CLUSTER:
                at = self.cluster(element)
            elif element.id == TRACKS and not self.tracks:
                self.head(element)
                for place, entry in enumerate(self.elements(element.body, element.end), 1):
                    self.track(entry, place)
            elif element.id == INFO:
                self.info(element)
            elif element.id == CUES:
                self.points(element, CUE, CUE_LEAVES, CUE_PLACE, PLACE_LEAVES)
            elif element.id == SEEK_HEAD:
                self.seeks(element)
            else:
                self.void(element)

    def info(self, element: Element) -> None:
        found = self.master(element, (SCALE, LENGTH))
        if SCALE in found:
            self.scale = self.number(found[SCALE])
        if LENGTH in found:
            data = self.value(found[LENGTH])
            if len(data) in (4, 8):
                (self.length,) = struct.unpack(">f" if len(data) == 4 else ">d", data)

    def seeks(self, element: Element) -> None:
        self.head(element)
        for seek in self.elements(element.body, element.end):
            mark = self.plan.mark()
            found = self.master(seek, (SEEK_ID, SEEK_AT)) if seek.id == SEEK else {}
            if SEEK_ID not in found or self.number(found[SEEK_ID]) not in (INFO, TRACKS, CUES, CLUSTER):
                self.plan.back_to(mark)
                self.void(seek)

    def points(self, element: Element, point: int, leaves: Collection[int], place: int, parts: Collection[int]) -> None:
        self.head(element)
        for inner in self.elements(element.body, element.end):
            if inner.id != point:
                self.void(inner)
                continue
            self.head(inner)
            for part in self.elements(inner.body, inner.end):
                if part.id == place:
                    self.master(part, parts)
                elif part.id in leaves and part.end - part.body <= NUMBER_BYTES:
                    self.plan.keep(part.start, part.end)
                else:
                    self.void(part)

    def track(self, entry: Element, place: int) -> None:
        """Keep a track of pictures or sound, or empty it."""
        if entry.id != ENTRY:
            self.void(entry)
            return
        mark = self.plan.mark()
        found = self.master(entry, ENTRY_LEAVES, (VIDEO, AUDIO, PRIVATE, ENCODINGS))
        codec = self.value(found[CODEC]).rstrip(b"\0") if CODEC in found else b""
        guess = 1 if VIDEO in found else 2 if AUDIO in found else 0
        kind = self.number(found[TYPE]) if TYPE in found else guess
        if kind not in (1, 2) or CODECS.get(codec, kind) != kind or (codec and codec not in CODECS):
            self.sounds[0] += kind == 2
            self.plan.back_to(mark)
            self.void(entry)
            return
        self.sounds[1] += kind == 2
        if ENCODINGS in found:
            raise VideoError("whole")  # its frames are compressed or encrypted
        number = self.number(found[NUMBER]) if NUMBER in found else place
        self.tracks.add(number)
        if PRIVATE in found:
            self.private(found[PRIVATE], codec)
        if VIDEO in found:
            self.pictured(found[VIDEO])
        if AUDIO in found:
            self.master(found[AUDIO], AUDIO_LEAVES)

    def pictured(self, element: Element) -> None:
        found = self.master(element, VIDEO_LEAVES, (COLOUR,))
        if COLOUR in found:
            inner = self.master(found[COLOUR], COLOUR_LEAVES, (MASTERING,))
            if MASTERING in inner:
                self.master(inner[MASTERING], MASTERING_LEAVES)
        sides = [self.number(found[side]) if side in found else 0 for side in (WIDTH, HEIGHT)]
        if sides[0] * sides[1] > self.sides[0] * self.sides[1]:
            self.sides = sides[0], sides[1]

    def private(self, element: Element, codec: bytes) -> None:
        """Keep the decoder configuration, but blank Vorbis comments."""
        length = element.end - element.body
        if length > CONFIG_BYTES:
            raise VideoError("whole")
        self.plan.keep(element.start, element.end)
        if codec == b"A_VORBIS":
            data = self.plan.exactly(element.body, length)
            start, many = _laced(data)
            if many < 16 or data[start : start + 7] != b"\x03vorbis":
                raise VideoError("whole")
            blank = struct.pack("<I", many - 16) + b" " * (many - 16) + bytes(4) + b"\x01"
            self.plan.patch(element.body + start + 7, blank)

    # --- frames ----------------------------------------------------------------------------------------
    def cluster(self, cluster: Element) -> int:
        if not self.tracks:
            raise VideoError("whole")
        self.clusters += 1
        self.head(cluster)
        at = cluster.body
        while at < cluster.end:
            element = self.element(at, cluster.end)
            if cluster.is_open and element.id in LEVEL:
                self.plan.left += 1  # it will be read again
                return at
            at = element.end
            if element.id == SIMPLE_BLOCK and self.is_shown(element):
                self.plan.keep(element.start, element.end)
            elif element.id == GROUP:
                self.group(element)
            elif element.id in CLUSTER_LEAVES and element.end - element.body <= NUMBER_BYTES:
                self.plan.keep(element.start, element.end)
            else:
                self.void(element)
        return at

    def is_shown(self, block: Element) -> bool:
        number, _taken = _number(self.plan.some(block.body, min(8, block.end - block.body)), 8, keep=False)
        return number in self.tracks

    def group(self, element: Element) -> None:
        mark = self.plan.mark()
        found = self.master(element, GROUP_LEAVES, (BLOCK, ADDITIONS))
        if BLOCK not in found or not self.is_shown(found[BLOCK]):
            self.plan.back_to(mark)
            self.void(element)
            return
        self.plan.keep(found[BLOCK].start, found[BLOCK].end)
        if ADDITIONS in found:
            self.additions(found[ADDITIONS])

    def additions(self, element: Element) -> None:
        self.head(element)
        for more in self.elements(element.body, element.end):
            mark = self.plan.mark()
            found = self.master(more, (MORE_ID,), (MORE_DATA,)) if more.id == MORE else {}
            if MORE_DATA in found and (MORE_ID not in found or self.number(found[MORE_ID]) == 1):
                self.plan.keep(found[MORE_DATA].start, found[MORE_DATA].end)
            else:
                self.plan.back_to(mark)
                self.void(more)


def _number(data: bytes, most: int, *, keep: bool) -> tuple[int, int]:
    """A number of variable length, and how many bytes it takes. `keep`: with the length marker."""
    if not data or not data[0]:
        raise VideoError("whole")
    taken = 9 - data[0].bit_length()
    if len(data) < taken or taken > most:
        raise VideoError("whole")
    value = int.from_bytes(data[:taken], "big")
    return (value if keep else value & (1 << 7 * taken) - 1), taken


def _laced(data: bytes) -> tuple[int, int]:
    """Start and length of the second of three laced packets."""
    lengths, at = [], 1
    for _ in range(2):
        length = 0
        while at < len(data) and data[at] == 255:
            length, at = length + 255, at + 1
        if at >= len(data):
            raise VideoError("whole")
        lengths.append(length + data[at])
        at += 1
    if data[:1] != b"\x02" or at + sum(lengths) > len(data):
        raise VideoError("whole")
    return at + lengths[0], lengths[1]
