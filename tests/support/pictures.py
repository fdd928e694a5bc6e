import io
import struct
from pathlib import Path
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image
from pillow_heif import register_heif_opener

register_heif_opener()


def picture(width: int = 80, height: int = 60, *, mode: str = "RGB") -> Image.Image:
    """Each quarter has its own colour. The first is red."""
    whole = Image.new("RGB", (width, height), (20, 120, 220))
    colours = [(220, 30, 30), (30, 200, 30), (40, 40, 160)]
    halves = (max(1, width // 2), max(1, height // 2))
    for colour, place in zip(colours, [(0, 0), (halves[0], 0), (0, halves[1])], strict=True):
        whole.paste(colour, (*place, *(start + half for start, half in zip(place, halves, strict=True))))
    return whole if mode == "RGB" else whole.convert(mode)


def encoded(image: Image.Image, kind: str = "JPEG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def jpeg(width: int = 80, height: int = 60, **options: Any) -> bytes:
    return encoded(picture(width, height), **options)


def photo(width: int = 4000, height: int = 3000) -> bytes:
    """A JPEG with as much detail as a photo."""
    noise = Image.effect_noise((width // 8, height // 8), 60).convert("RGB")
    return encoded(noise.resize((width, height), Image.Resampling.BICUBIC), quality=90)


def animation(frames: int = 3, kind: str = "GIF", size: tuple[int, int] = (40, 30)) -> bytes:
    images = [Image.new("RGB", size, (number * 53 % 256, number * 91 % 256, 99)) for number in range(frames)]
    return encoded(images[0], kind, save_all=True, append_images=images[1:], duration=100, loop=0)


def upload(data: bytes, name: str = "picture.jpg", kind: str = "image/jpeg") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, data, kind)


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


def files_of(folder: Path) -> list[Path]:
    """All files except those in decoders' work folders."""
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]


# --- Videos ----------------------------------------------------------------------------------------------
def box(kind: bytes, *parts: bytes) -> bytes:
    """A box of the ISO base media format."""
    body = b"".join(parts)
    return struct.pack(">I4s", 8 + len(body), kind) + body


def track(handler: bytes, *, width: int = 0, height: int = 0, turned: bool = False, table: bytes = b"") -> bytes:
    """A track of 8 seconds."""
    turn = (0, 65536, 0, -65536, 0, 0, 0, 0, 1 << 30) if turned else (65536, 0, 0, 0, 65536, 0, 0, 0, 1 << 30)
    head = bytes(4) + struct.pack(">IIIII", 0, 0, 1, 0, 8000) + bytes(16) + struct.pack(">9i", *turn)
    return box(
        b"trak",
        box(b"tkhd", head, struct.pack(">II", width << 16, height << 16)),
        box(b"mdia", box(b"hdlr", bytes(8), handler, bytes(13)), box(b"minf", box(b"stbl", table))),
    )


def table(start: int, *sizes: int) -> bytes:
    """All samples are in one chunk."""
    return b"".join(
        (
            box(b"stsz", struct.pack(">III", 0, 0, len(sizes)), struct.pack(f">{len(sizes)}I", *sizes)),
            box(b"stsc", struct.pack(">II", 0, 1), struct.pack(">III", 1, len(sizes), 1)),
            box(b"stco", struct.pack(">III", 0, 1, start)),
        )
    )


def mp4(*, secret: bytes = b"+48.8584+002.2945/", brand: bytes = b"isom", turned: bool = False) -> bytes:
    """A video without real frames, with places in its user data, metadata and a track."""
    head = box(b"ftyp", brand, bytes(4), b"isommp42")
    frames = b"\x11" * 500
    samples = secret * 3
    start = len(head) + 8
    shown, hidden = table(start, 500), table(start + len(frames), *[len(secret)] * 3)
    movie = box(
        b"moov",
        box(b"mvhd", bytes(4), struct.pack(">IIII", 0, 0, 1000, 8000), bytes(80)),
        track(b"vide", width=640, height=360, turned=turned, table=shown),
        track(b"soun"),
        track(b"meta", table=hidden),
        box(b"udta", box(b"\xa9xyz", struct.pack(">HH", len(secret), 0), secret)),
        box(b"meta", bytes(4), secret),
    )
    return head + box(b"mdat", frames, samples) + movie + box(b"uuid", bytes(16), secret)


def element(identity: bytes, *parts: bytes) -> bytes:
    """An element of EBML."""
    body = b"".join(parts)
    return identity + (len(body) | 1 << 28).to_bytes(4, "big") + body


def webm(*, secret: bytes = b"Eiffel Tower", kind: bytes = b"webm") -> bytes:
    """A WebM file with a tag. Its video has no frames."""
    seconds = element(b"\x2a\xd7\xb1", (1_000_000).to_bytes(3, "big")) + element(b"\x44\x89", struct.pack(">d", 8000))
    sides = element(b"\xb0", (640).to_bytes(2, "big")) + element(b"\xba", (360).to_bytes(2, "big"))
    entry = element(b"\xd7", b"\1") + element(b"\x83", b"\1") + element(b"\x86", b"V_VP9")
    return element(b"\x1a\x45\xdf\xa3", element(b"\x42\x82", kind)) + element(
        b"\x18\x53\x80\x67",
        element(b"\x15\x49\xa9\x66", seconds, element(b"\x7b\xa9", secret)),
        element(b"\x16\x54\xae\x6b", element(b"\xae", entry, element(b"\xe0", sides))),
        element(b"\x1f\x43\xb6\x75", element(b"\xe7", b"\0"), element(b"\xa3", b"\x81\0\0\x80", b"\x11" * 500)),
        element(b"\x12\x54\xc3\x67", secret),
    )
