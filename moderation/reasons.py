"""Why a post is held, as its author reads it."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from items.pages.reading import full_time

TOLD = {
    "sender": gettext_lazy("Moderators review all your posts."),
    "link": gettext_lazy("It has a link, and your account is new."),
    "rate": gettext_lazy("You published many posts in a short time."),
    "same": gettext_lazy("You published the same text several times."),
    "captions": gettext_lazy("The captions couldn't be read."),
    "reports": gettext_lazy("People reported it."),
    "resubmitted": gettext_lazy("It was rejected before, and you edited it."),
}
"""Reasons told to authors, by code. Words and pictures stay secret, so that authors cannot evade them."""


def links_held_notice(until: datetime) -> str:
    """The notice for an author whose links are held."""
    words = _("Your account is new. Until %(time)s, moderators check your posts with links before others see them.")
    return words % {"time": full_time(until)}


def reasons_for_author(reasons: Iterable[str], wait: timedelta | None) -> str:
    """Why an item is held, and how long reviews take."""
    codes = dict.fromkeys(reason.partition(":")[0] for reason in reasons)
    told = [str(TOLD[code]) for code in codes if code in TOLD]
    return " ".join([_("Moderators check your post before others see it."), *told, *_duration(wait)])


def _duration(wait: timedelta | None) -> list[str]:
    if wait is None:
        return []
    hours = max(1, round(wait / timedelta(hours=1)))
    days = round(hours / 24)
    if days > 1:
        words = ngettext("This usually takes about a day.", "This usually takes about %(count)d days.", days)
        return [words % {"count": days}]
    words = ngettext("This usually takes about an hour.", "This usually takes about %(count)d hours.", hours)
    return [words % {"count": hours} if "%" in words else words]
