"""How pictures are shown: where they are cut, and what stands in their place while they are loaded."""

from typing import Protocol

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

STEPS = 10
"""The places of site.css, `.fx-0` to `.fx-10` from left to right, `.fy-0` to `.fy-10` from top to bottom."""


class Picture(Protocol):
    """A picture or video, as items and users have them."""

    @property
    def focus_x(self) -> float:
        """From -1, the left edge, to 1."""
        ...

    @property
    def focus_y(self) -> float:
        """From -1, the lower edge, to 1."""
        ...

    @property
    def colour(self) -> str:
        """The colour that most of it has, as #rrggbb."""
        ...

    @property
    def blurhash(self) -> str:
        """Its blurhash, or nothing."""
        ...


@register.filter
def focus(picture: Picture) -> str:
    """The classes that keep the picture's focus in sight where it is cut: a policy forbids styles of its own."""
    x, y = (min(max(at, -1.0), 1.0) for at in (picture.focus_x, -picture.focus_y))
    return f"fx-{round((x + 1) / 2 * STEPS)} fy-{round((y + 1) / 2 * STEPS)}"


@register.simple_tag
def ground(picture: Picture) -> SafeString:
    """The ground of a picture until it is loaded: its colour, over which pictures.js draws its blurhash."""
    return format_html(
        '<svg class="ground" aria-hidden="true" data-hash="{}" viewBox="0 0 1 1" preserveAspectRatio="none">'
        '<rect width="1" height="1" fill="{}"/></svg>',
        picture.blurhash,
        picture.colour,
    )
