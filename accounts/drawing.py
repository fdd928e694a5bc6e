"""Drawn avatars and banners as PNG, because apps draw no SVG.

A letter that no font of this machine has is drawn as a person.
"""

import io
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from accounts.avatars import TINTS

if TYPE_CHECKING:  # pages do without Pillow
    from PIL import Image, ImageFont

SIDE = 256
BANNER = (750, 250)
KEPT = 512
"""Drawings that a process keeps, of about 5 KB."""
DARK = "#10131c"
FONTS = (
    *("DejaVuSans-Bold.ttf", "NotoSans-Bold.ttf", "LiberationSans-Bold.ttf", "NotoSansCJK-Bold.ttc"),
    *("NotoSansCJK-Regular.ttc", "wqy-microhei.ttc", "wqy-zenhei.ttc", "Arial Unicode.ttf"),
)
"""Files that systems have, the preferred first."""
NO_LETTER = "\uffff"


@lru_cache(KEPT)
def avatar_png(number: int, letter: str) -> bytes:
    """The avatar with a letter on a colour."""
    from PIL import ImageDraw

    drawn = _ground(TINTS[number], (SIDE, SIDE), shade=0.45)
    pen = ImageDraw.Draw(drawn)
    middle = SIDE // 2
    font = next(
        (font for font in _fonts(SIDE * 30 // 64 if len(letter) == 1 else SIDE * 22 // 64) if _has(font, letter)), None
    )
    if font is not None:
        pen.text((middle, middle), letter, fill="white", font=font, anchor="mm")
    else:
        pen.ellipse((middle - 40, 56, middle + 40, 136), fill="white")
        pen.ellipse((middle - 80, 152, middle + 80, 312), fill="white")
    return _png(drawn)


@cache
def banner_png(number: int) -> bytes:
    """The banner: a colour that darkens."""
    return _png(_ground(TINTS[number], BANNER, shade=0.6))


def _ground(tint: str, size: tuple[int, int], *, shade: float) -> "Image.Image":
    from PIL import Image, ImageChops

    falling = Image.linear_gradient("L")
    shading = ImageChops.add(falling, falling.transpose(Image.Transpose.ROTATE_90), scale=2.0)
    return Image.composite(
        Image.new("RGB", size, DARK),
        Image.new("RGB", size, tint),
        shading.resize(size).point(lambda level: level * shade),
    )


@cache
def _fonts(pixels: int) -> "list[ImageFont.FreeTypeFont]":
    from PIL import ImageFont

    found = []
    for name in FONTS:
        try:
            found.append(ImageFont.truetype(name, pixels))
        except OSError:
            continue
    default = ImageFont.load_default(pixels)
    return [*found, default] if isinstance(default, ImageFont.FreeTypeFont) else found


def _has(font: "ImageFont.FreeTypeFont", letter: str) -> bool:
    blank = bytes(font.getmask(NO_LETTER))
    return all(bytes(font.getmask(character)) not in (b"", blank) for character in letter)


def _png(drawn: "Image.Image") -> bytes:
    file = io.BytesIO()
    drawn.save(file, "PNG")
    return file.getvalue()
