"""The icons of pages, from static/feedsite/icons.svg."""

import re
from functools import cache
from pathlib import Path

from django.contrib.staticfiles import finders
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString


@cache
def icon(name: str) -> str:
    """HTML of an icon. It is hidden from screen readers: a word stands beside it."""
    address = static("feedsite/icons.svg")
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}#{}"/></svg>', address, name)


OF_CARDS = ("reply", "repost", "like", "liked", "bookmark", "bookmarked", "more")
"""Icons of every card. The page itself contains them, so that each use is short."""

LINES = ' stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"'


@cache
def card_icon(name: str) -> SafeString:
    """HTML of an icon of `OF_CARDS`, for pages with `card_symbols`."""
    return format_html('<svg aria-hidden="true"><use href="#i-{}"/></svg>', name)


@cache
def card_symbols() -> SafeString:
    """HTML of the symbols of `OF_CARDS`, which a page contains once. site.css draws their lines."""
    drawing = Path(str(finders.find("feedsite/icons.svg"))).read_text().replace(LINES, "").replace(' fill="none"', "")
    symbols = (re.search(rf'<symbol id="{name}".*?</symbol>', drawing, re.DOTALL) for name in OF_CARDS)
    parts = (found[0].replace('id="', 'id="i-', 1) for found in symbols if found)
    return SafeString(f"<div hidden><svg>{''.join(parts)}</svg></div>")
