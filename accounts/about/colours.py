"""The accent colour: checks its contrast and writes its stylesheet.

For the dark theme it is mixed with white until it is readable: no colour has a contrast of 4.5 on both grounds.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

OWN = "#3457d5"
"""--accent of site.css: the default."""
READABLE = 4.5
"""Contrast that WCAG requires for text (level AA)."""
DARK_CONTRAST = 6.5
"""Contrast of the default accent in the dark theme. Others are raised to it."""
WHITE, BLACK = "#ffffff", "#000000"
LIGHT_GROUNDS = (WHITE, "#f4f5f8")
"""--surface and --page of site.css."""
DARK_GROUNDS = ("#16191f", "#0e1015")
VERSION = 2
"""Raise it when the stylesheet changes. Browsers keep an address for a year."""

Colour = tuple[int, int, int]


def parse(text: str) -> Colour:
    """Red, green, blue of a colour like #2457c5."""
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def mix(first: str, second: str, share: float) -> str:
    """Mix two colours. `share`: how much of the second, from 0 to 1."""
    parts = zip(parse(first), parse(second), strict=True)
    return "#" + "".join(f"{round(one + (other - one) * share):02x}" for one, other in parts)


def contrast(first: str, second: str) -> float:
    """The contrast ratio of two colours, 1 to 21 (WCAG 2.2)."""
    darker, lighter = sorted((_luminance(first), _luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (each / 255 for each in parse(colour))
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def check_accent(accent: str) -> None:
    """Raise ValidationError unless the colour is valid and readable."""
    if not re.fullmatch("#[0-9a-fA-F]{6}", accent):
        raise ValidationError(_("Enter a color like #2457c5."), code="invalid")
    ratio = _light_contrast(accent)
    if ratio < READABLE:
        words = _(
            "Too light to read: its contrast is %(ratio).1f, and 4.5 is needed. The nearest that works is %(near)s."
        )
        shades = (mix(accent, BLACK, step / 100) for step in range(101))
        near = next(shade for shade in shades if _light_contrast(shade) >= READABLE)
        raise ValidationError(words % {"ratio": int(ratio * 10) / 10, "near": near}, code="contrast")


def _light_contrast(accent: str) -> float:
    return _lowest_contrast(accent, (*LIGHT_GROUNDS, light_highlight(accent)))


def light_highlight(accent: str) -> str:
    """Highlight background in the light theme."""
    return mix(accent, WHITE, 0.9)


def _lowest_contrast(colour: str, grounds: Sequence[str]) -> float:
    return min(contrast(colour, ground) for ground in grounds)


@lru_cache(100)
def accent_stylesheet(accent: str) -> str:
    """The accent's stylesheet. Raises ValidationError."""
    check_accent(accent)
    dark_soft = mix(accent, DARK_GROUNDS[0], 0.75)
    dark = next(
        colour
        for colour in (mix(accent, WHITE, step / 20) for step in range(21))
        if _lowest_contrast(colour, (*DARK_GROUNDS, dark_soft)) >= READABLE
        and _lowest_contrast(colour, DARK_GROUNDS) >= DARK_CONTRAST
    )
    light_theme = _accent_variables(accent, mix(accent, BLACK, 0.2), light_highlight(accent), WHITE)
    dark_theme = _accent_variables(dark, mix(dark, WHITE, 0.35), dark_soft, mix(accent, BLACK, 0.8))
    return (
        f':root,html[data-theme="light"]{{{light_theme}}}'
        f'@media (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{{dark_theme}}}}}'
        f':root[data-theme="dark"]{{{dark_theme}}}\n'
    )


def _accent_variables(accent: str, strong: str, soft: str, on: str) -> str:
    return f"--accent:{accent};--accent-strong:{strong};--accent-soft:{soft};--on-accent:{on}"
