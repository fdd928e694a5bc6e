import io
import struct
from pathlib import Path
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image
from pillow_heif import register_heif_opener

from tests.support.videos import film

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


def mp4(*, secret: bytes = b"+48.8584+002.2945/", container: str = "mp4", turned: bool = False) -> bytes:
    """A short video, with places in its tags and behind its end."""
    made = film(container=container, size=(64, 36), turned=90 if turned else 0, secret=secret.decode())
    return made + box(b"uuid", bytes(16), secret)


def element(identity: bytes, *parts: bytes) -> bytes:
    """An element of EBML."""
    body = b"".join(parts)
    return identity + (len(body) | 1 << 28).to_bytes(4, "big") + body


def webm(*, secret: bytes = b"Eiffel Tower") -> bytes:
    """A short video with tags."""
    return film("libvpx-vp9", "libopus", "webm", size=(64, 36), secret=secret.decode())
