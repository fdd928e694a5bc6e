"""How people are shown: letters and colours in place of pictures."""

from zlib import crc32

from django import template

register = template.Library()

TINTS = 8
"""The colours of site.css, `.tint-0` to `.tint-7`."""


@register.filter
def initial(name: str) -> str:
    """The first letter or digit of a name; a name of signs gives its first sign."""
    return next((letter for letter in name if letter.isalnum()), name[:1]).upper()


@register.filter
def tint(username: str) -> int:
    """The colour of a user, the same on every page."""
    return crc32(username.encode()) % TINTS
