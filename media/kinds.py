"""The type of a file by its first bytes."""

from typing import IO

from media.models import MediaKind

HEAD = 64
HEIC = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"})
AVIF = frozenset({b"avif", b"avis"})
MOVIE = (b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot")
"""First boxes of a MOV without `ftyp`."""


def kind_of(file: IO[bytes]) -> MediaKind | None:
    """The file's kind. None if it is not accepted."""
    file.seek(0)
    head = file.read(HEAD)
    file.seek(0)
    if head.startswith((b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a")):
        return MediaKind.IMAGE
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return MediaKind.IMAGE
    if head[4:8] == b"ftyp":
        return MediaKind.IMAGE if head[8:12] in HEIC | AVIF else MediaKind.VIDEO
    if head[:4] == b"\x1a\x45\xdf\xa3" or head[4:8] in MOVIE:
        return MediaKind.VIDEO
    return None
