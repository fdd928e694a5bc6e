"""Times of sessions for people."""

from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from web.times import format_moment

WORDS: dict[str, Promise] = {
    "until-hours": gettext_lazy("Starts in {h} h {m} min"),
    "until-minutes": gettext_lazy("Starts in {m} min"),
    "until-minutes-seconds": gettext_lazy("Starts in {m} min {s} s"),
    "until-seconds": gettext_lazy("Starts in {s} s"),
    "soon": gettext_lazy("About to start"),
    "since-hours": gettext_lazy("{h} h {m} min"),
    "since-minutes": gettext_lazy("{m} min"),
    "begun": gettext_lazy("just started"),
}
"""Words for remaining and elapsed time. sessions.js uses them too."""


def _format_words(name: str, seconds: int) -> str:
    minutes = seconds // 60
    hours = minutes // 60 if name.endswith("hours") else 0
    return str(WORDS[name]).format(h=hours, m=minutes - 60 * hours, s=seconds % 60)


def until(moment: datetime) -> str:
    """The time until a moment."""
    seconds = int((moment - timezone.now()).total_seconds())
    if seconds <= 0:
        return str(WORDS["soon"])
    if seconds < 60:
        return _format_words("until-seconds", seconds)
    if seconds < 3600:
        return _format_words("until-minutes", seconds)
    if seconds < 86_400:
        return _format_words("until-hours", seconds)
    days = seconds // 86_400
    return ngettext("Starts in %(count)d day", "Starts in %(count)d days", days) % {"count": days}


def lasting(moment: datetime) -> str:
    """The time since a moment."""
    seconds = int((timezone.now() - moment).total_seconds())
    if seconds < 60:
        return str(WORDS["begun"])
    return _format_words("since-minutes" if seconds < 3600 else "since-hours", seconds)


def format_duration(seconds: int) -> str:
    """A duration such as `4:05` or `1:02:33`."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def day_time(moment: datetime) -> str:
    """Day and time in the active zone. UTC is named: the reader's may be unknown."""
    moment, today = timezone.localtime(moment), timezone.localdate()
    near = {today - timedelta(1): _("yesterday"), today: _("today"), today + timedelta(1): _("tomorrow")}
    this_year = moment.year == today.year
    day = near.get(moment.date()) or format_moment(moment, "MONTH_DAY_FORMAT" if this_year else "SHORT_DATE_FORMAT")
    zone = " UTC" if timezone.get_current_timezone_name() == "UTC" else ""
    return pgettext("a day and a time", "%(day)s %(time)s") % {
        "day": day,
        "time": f"{format_moment(moment, 'TIME_FORMAT')}{zone}",
    }


def ticking_words() -> SafeString:
    """Attributes with `WORDS`."""
    return format_html_join(" ", 'data-{}="{}"', WORDS.items())
