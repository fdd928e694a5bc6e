"""The icons of pages, from static/feedsite/icons.svg."""

from functools import cache

from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString


@cache
def icon(name: str) -> str:
    """HTML of an icon. It is hidden from screen readers: a word stands beside it."""
    address = static("feedsite/icons.svg")
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}#{}"/></svg>', address, name)


@cache
def card_icon(name: str) -> SafeString:
    """HTML of an icon in a place of cards that site.css sizes. It is shorter than `icon`."""
    return format_html('<svg aria-hidden="true"><use href="{}#{}"/></svg>', static("feedsite/icons.svg"), name)
