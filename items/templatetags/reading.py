"""How items are read: their age in a few letters, and which texts are folded in feeds."""

from datetime import UTC, datetime

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
    this_year = moment.astimezone(UTC).year == timezone.now().year
    return date_format(moment, "j M" if this_year else "j M Y")


@register.filter
def full_time(moment: datetime) -> str:
    """Date, time and zone."""
    return date_format(timezone.localtime(moment), "j F Y, H:i") + f" {timezone.localtime(moment).tzname()}"
