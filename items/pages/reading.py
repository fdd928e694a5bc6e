"""How items are read: links, ages, folding."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from typing import NamedTuple

from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from accounts.people import profile_address
from items.pages.addresses import tag_address
from items.search.hits import hits
from items.search.query import Query
from items.text import SpanKind, spans
from web.letters import beginning
from web.times import format_moment

FOLD_LETTERS = 600
FOLD_LINES = 12
EXCERPT_LETTERS = 1_500
"""Characters of a folded text in feeds: more than the nine lines of site.css show."""
LINK_LETTERS = 36
"""Longer links are shortened."""
COMMON = re.compile(r"(?:https?://)?(?:www\.)?", re.IGNORECASE)
"""The beginnings of addresses that are not shown."""
LINKS = 50
"""Mentions, hashtags and links that become links, per text."""


def is_long(text: str) -> bool:
    """Whether feeds fold the text (site.css, `.fold`)."""
    return len(text) > FOLD_LETTERS or text.count("\n") >= FOLD_LINES


class Moment(NamedTuple):
    """A time as a card shows it."""

    iso: str
    full: str
    ago: str


def moment(time: datetime) -> Moment:
    """A time in the reader's zone."""
    return Moment(timezone.localtime(time).isoformat(timespec="seconds"), full_time(time), ago(time))


@cache
def _ages(_language: str | None) -> tuple[str, str, str]:
    return _("now"), _("%(count)d min"), _("%(count)d h")


def ago(moment: datetime) -> str:
    """Minutes or hours ago, after a day the date."""
    now, minutes, hours = _ages(get_language())
    seconds = (timezone.now() - moment).total_seconds()
    if seconds < 60:  # an import's or another machine's clock may be ahead
        return now
    if seconds < 3600:
        return minutes % {"count": seconds // 60}
    if seconds < 86_400:
        return hours % {"count": seconds // 3600}
    this_year = timezone.localtime(moment).year == timezone.localtime().year
    return format_moment(moment, "MONTH_DAY_FORMAT" if this_year else "SHORT_DATE_FORMAT")


def time_left(moment: datetime) -> str:
    """What is left until a time, rounded to minutes, hours or days."""
    minutes = max(1, round((moment - timezone.now()).total_seconds() / 60))
    hours = round(minutes / 60)
    days = round(hours / 24)
    if minutes < 60:
        return _("%(count)d min left") % {"count": minutes}
    if hours < 24:
        return _("%(count)d h left") % {"count": hours}
    return ngettext("%(count)d day left", "%(count)d days left", days) % {"count": days}


def card_version(moment: datetime) -> int:
    """Microseconds since 1970: items.js keeps the newer of two cards."""
    return int(moment.timestamp() * 1_000_000)


def full_time(moment: datetime) -> str:
    """Date and time in the reader's zone, with the offset: zone names are ambiguous."""
    return f"{format_moment(moment, 'DATETIME_FORMAT')} {offset_name(timezone.localtime(moment))}"


def offset_name(moment: datetime) -> str:
    """`UTC`, `UTC+8`, `UTC+5:45`."""
    minutes = int((moment.utcoffset() or timedelta()).total_seconds() // 60)
    if not minutes:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'+' if minutes > 0 else '−'}{hours}{f':{rest:02}' if rest else ''}"  # noqa: RUF001 (a minus sign)


def excerpt(text: str, letters: int) -> str:
    """The text cut to `letters` characters, with an ellipsis."""
    return text if len(text) <= letters else f"{beginning(text, letters - 1)}…"


def linked(
    text: str, leads: Callable[[str], bool], sought: Query | None = None, *, is_folded: bool = False
) -> SafeString:
    """The text as HTML, with at most `LINKS` links and marked hits. Names are linked if `leads`. A folded one ends
    after about `EXCERPT_LETTERS`.
    """
    end = len(beginning(text, EXCERPT_LETTERS)) if is_folded else len(text)
    marks = _Marks(hits(text[:end], sought) if sought else [])
    parts: list[str] = []
    begin = links = 0
    for kind, part, value in spans(text):
        if links == LINKS or begin >= end:
            break
        if kind == SpanKind.TEXT:
            parts.append(marks.put(part[: end - begin], begin))
        else:
            links += 1
            shown = marks.put(*_short(part, begin)) if kind == SpanKind.LINK else marks.put(part, begin)
            parts.append(_link(kind, value, shown) if kind != SpanKind.MENTION or leads(value) else shown)
        begin += len(part)
    parts.append(marks.put(text[begin:end], begin))
    if max(begin, end) < len(text):
        parts.append("…")
    return mark_safe("".join(parts))  # noqa: S308 (made of escaped parts)


def _short(address: str, begin: int) -> tuple[str, int]:
    short = COMMON.sub("", address) or address
    return excerpt(short, LINK_LETTERS), begin + len(address) - len(short)


def domain(address: str) -> str:
    """The host of an address, without www."""
    return COMMON.sub("", address).partition("/")[0].partition("?")[0].partition("#")[0]


def short_link(address: str) -> str:
    """An address as texts show it."""
    return _short(address, 0)[0]


def _link(kind: SpanKind, value: str, shown: SafeString) -> SafeString:
    if kind == SpanKind.MENTION:
        return format_html('<a href="{}">{}</a>', profile_address(value), shown)
    if kind == SpanKind.HASHTAG:
        return format_html('<a href="{}">{}</a>', tag_address(value), shown)
    return format_html('<a href="{}" rel="nofollow noopener ugc">{}</a>', value, shown)


class _Marks:
    def __init__(self, places: list[tuple[int, int]]) -> None:
        self._places = places
        self._at = 0

    def put(self, part: str, begin: int) -> SafeString:
        parts: list[str] = []
        done, length, places = 0, len(part), self._places
        while self._at < len(places) and places[self._at][0] < begin + length:
            start, end = places[self._at]
            start, stop = max(start - begin, done), min(end - begin, length)
            if start < stop:
                parts += [escape(part[done:start]), format_html("<mark>{}</mark>", part[start:stop])]
                done = stop
            if end > begin + length:  # it continues in the next part
                break
            self._at += 1
        return mark_safe("".join([*parts, escape(part[done:])]))  # noqa: S308 (made of escaped parts)
