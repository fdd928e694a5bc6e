"""How items are read: their age in a few letters, and which texts are folded in feeds."""

from datetime import datetime, timedelta

from django import template
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

register = template.Library()

FOLD_LETTERS = 600
FOLD_LINES = 12


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
