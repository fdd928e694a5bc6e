"""How items are read: what their texts link to, their age in a few letters, and which are folded in feeds."""

from datetime import datetime, timedelta

from django import template
from django.template.context import Context
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from items.search import Query, hits
from items.text import Kind, spans

register = template.Library()

FOLD_LETTERS = 600
FOLD_LINES = 12
LINK_LETTERS = 60
"""Longer links are shown shortened."""


@register.filter
def is_long(text: str) -> bool:
    """Whether feeds fold the text; the page of the item shows it whole (site.css, `.fold`)."""
    return len(text) > FOLD_LETTERS or text.count("\n") >= FOLD_LINES


@register.filter
def ago(moment: datetime) -> str:
    """How long ago, while that is what people want to know; then the date."""
    seconds = (timezone.now() - moment).total_seconds()
    if seconds < 60:  # an import or another machine's clock may be ahead
        return _("now")
    if seconds < 3600:
        return _("%(count)d min") % {"count": seconds // 60}
    if seconds < 86_400:
        return _("%(count)d h") % {"count": seconds // 3600}
    moment = timezone.localtime(moment)
    this_year = moment.year == timezone.localtime().year
    return date_format(moment, "MONTH_DAY_FORMAT" if this_year else "SHORT_DATE_FORMAT")


@register.filter
def full_time(moment: datetime) -> str:
    """Date and time in the reader's zone, and how far that is from UTC: names of zones are ambiguous."""
    moment = timezone.localtime(moment)
    return f"{date_format(moment, 'DATETIME_FORMAT')} {offset_name(moment)}"


def offset_name(moment: datetime) -> str:
    """`UTC`, `UTC+8`, `UTC+5:45`."""
    minutes = int((moment.utcoffset() or timedelta()).total_seconds() // 60)
    if not minutes:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'+' if minutes > 0 else '−'}{hours}{f':{rest:02}' if rest else ''}"  # noqa: RUF001 (a minus sign)


@register.simple_tag(takes_context=True)
def linked(context: Context, text: str) -> SafeString:
    """The text as HTML: mentions, hashtags and links lead somewhere; what the page's query `sought` hits is marked."""
    sought = context.get("sought")
    places = hits(text, sought) if isinstance(sought, Query) else []
    parts: list[str] = []
    begin = 0
    for kind, written, value in spans(text):
        shown = _marked(written, begin, places)
        begin += len(written)
        if kind == Kind.MENTION:
            parts.append(format_html('<a href="{}">{}</a>', reverse("profile", args=[value]), shown))
        elif kind == Kind.HASHTAG:
            parts.append(format_html('<a href="{}">{}</a>', reverse("tag", args=[value]), shown))
        elif kind == Kind.LINK:
            if len(written) > LINK_LETTERS:
                shown = _marked(f"{written[: LINK_LETTERS - 1]}…", begin - len(written), places)
            parts.append(format_html('<a href="{}" rel="nofollow noopener ugc">{}</a>', value, shown))
        else:
            parts.append(shown)
    return mark_safe("".join(parts))  # noqa: S308 (made of escaped parts)


def _marked(text: str, begin: int, places: list[tuple[int, int]]) -> SafeString:
    """The text, which stands at `begin` of a longer one, as HTML; what overlaps one of the places there is marked."""
    parts: list[str] = []
    done = 0
    for start, end in places:
        start, end = max(start - begin, done), min(end - begin, len(text))
        if start < end:
            parts += [escape(text[done:start]), format_html("<mark>{}</mark>", text[start:end])]
            done = end
    return mark_safe("".join([*parts, escape(text[done:])]))  # noqa: S308 (made of escaped parts)
