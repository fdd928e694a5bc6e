"""The type of a file by its first bytes."""

from typing import IO

from media.models import Kind

HEAD = 64
HEIC = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"})
AVIF = frozenset({b"avif", b"avis"})
MOVIE = (b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot")
"""First boxes of a MOV without `ftyp`."""


def kind_of(file: IO[bytes]) -> Kind | None:
    """The file's kind. None if it is not accepted."""
    file.seek(0)
    head = file.read(HEAD)
    file.seek(0)
    if head.startswith((b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a")):
        return Kind.IMAGE
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return Kind.IMAGE
    if head[4:8] == b"ftyp":
        return Kind.IMAGE if head[8:12] in HEIC | AVIF else Kind.VIDEO
    if head[:4] == b"\x1a\x45\xdf\xa3" or head[4:8] in MOVIE:
        return Kind.VIDEO
    return None
