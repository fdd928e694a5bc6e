"""How pictures are shown: where they are cut, and what stands in their place while they are loaded."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from media.objects import MediaObject

register = template.Library()

STEPS = 10
"""The places of site.css, `.fx-0` to `.fx-10` from left to right, `.fy-0` to `.fy-10` from top to bottom."""
BASE_83 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~"
"""The digits of a blurhash."""


@register.filter
def focus(picture: MediaObject) -> str:
    """The classes that keep the picture's focus in sight where it is cut: a policy forbids styles of its own."""
    x, y = (min(max(at, -1.0), 1.0) for at in (picture.meta.focus.x, -picture.meta.focus.y))
    return f"fx-{round((x + 1) / 2 * STEPS)} fy-{round((y + 1) / 2 * STEPS)}"


@register.simple_tag
def ground(picture: MediaObject) -> SafeString:
    """The ground of a picture until it is loaded: its average colour, over which pictures.js draws its
    blurhash.
    """
    return format_html(
        '<svg class="ground" aria-hidden="true" data-hash="{}" viewBox="0 0 1 1" preserveAspectRatio="none">'
        '<rect width="1" height="1" fill="{}"/></svg>',
        picture.blurhash,
        average_colour(picture.blurhash),
    )


def average_colour(blurhash: str) -> str:
    """The average colour of a picture as #rrggbb, which the digits 3 to 6 of its blurhash say; black without one.

    Source: https://github.com/woltapp/blurhash/blob/master/Algorithm.md (the DC value).
    """
    value = 0
    for digit in blurhash[2:6]:
        value = value * 83 + BASE_83.index(digit)
    return f"#{value:06x}"
