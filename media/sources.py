"""Which file of a picture a page offers for each kind of screen.

`srcset` with `2x` and `3x`, because from widths Chromium takes a file that has up to 30 % fewer pixels than are drawn.
Screens of three pixels are phones.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.utils.html import format_html
from django.utils.safestring import SafeString

from media.objects import MediaObject, decode_medium


class Place(NamedTuple):
    """How wide pictures are drawn, in CSS pixels, on a computer and on a phone. `aspect`: of the box that a picture is
    cut to fill.
    """

    computer: int
    phone: int
    aspect: float = 0.0


PLACES = {
    "one": Place(534, 316),
    "whole": Place(588, 366),
    "half": Place(266, 157, 0.8),
    "quarter": Place(266, 157, 1.6),
    "cell": Place(203, 126, 1.0),
    "wall": Place(190, 120, 4 / 3),
    "thumb": Place(46, 46, 1.0),
    "medium": Place(134, 134),
    "link": Place(112, 112, 7 / 5.5),
    "wide-link": Place(534, 316, 1.91),
    "banner": Place(618, 390, 3.0),
    "cover": Place(200, 140, 16 / 9),
    "strip-cover": Place(148, 140, 16 / 9),
    "whole-cover": Place(588, 366, 16 / 9),
    "own-cover": Place(320, 320, 16 / 9),
}


def sources(picture: MediaObject, name: str) -> SafeString:
    """The attributes `src` and `srcset` of a picture at one of `PLACES`."""
    place, shape = PLACES[name], picture.meta.original
    enlarged = max(1.0, shape.aspect / place.aspect) if place.aspect else min(1.0, shape.width / place.computer)
    computer, phone = place.computer * enlarged, place.phone * enlarged
    return source_attributes(*map(picture.at_least, (computer, 2 * computer, 3 * phone)))


def banner_sources(facts: Mapping[str, Any]) -> SafeString:
    """The attributes `src` and `srcset` of a banner, from its facts."""
    banner = decode_medium(facts)
    return sources(banner, "banner") if banner else SafeString()


def source_attributes(single: str, double: str, triple: str) -> SafeString:
    """`src` and `srcset` of the addresses for one, two and three pixels a CSS pixel."""
    if single == double == triple:
        return format_html('src="{}"', single)
    # Named although it may be the single one: with 1x and 3x alone, Chromium takes 3x on two pixels.
    offered = [f"{double} 2x", *([f"{triple} 3x"] if triple != double else [])]
    return format_html('src="{}" srcset="{}"', single, ", ".join(offered))
