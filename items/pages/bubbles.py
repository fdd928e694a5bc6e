"""The messages of a conversation as its page shows them."""

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import NamedTuple

from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from items.bodies import ItemBody
from items.pages.cards import Card, Cards
from web.times import format_moment

PAUSE = timedelta(minutes=5)
"""Messages of one sender within this time stand together. Spelled in messages.js too."""


class Bubble(NamedTuple):
    """A message (templates/items/_message.html)."""

    card: Card
    time: str
    day: date
    day_words: str
    is_own: bool
    begins_day: bool
    """Whether it is the first of its day on the page."""
    follows: bool
    """Whether it stands with the message above, without a face."""
    is_first_unread: bool


def bubbles(items: Iterable[ItemBody], reader: User, *, unread: str = "") -> list[Bubble]:
    """The bubbles of messages, oldest first. `unread`: the id of the first one that the reader has not seen."""
    shown: list[Bubble] = []
    before: ItemBody | None = None
    listed = list(items)
    for item, card in zip(listed, Cards(reader).of(listed, keeps_hidden=True), strict=True):
        day = timezone.localtime(item.created_at).date()
        begins_day = not shown or shown[-1].day != day
        is_first_unread = item.id == unread
        stands_alone = begins_day or is_first_unread or before is None
        shown.append(
            Bubble(
                card=card,
                time=format_moment(item.created_at, "TIME_FORMAT"),
                day=day,
                day_words=_day_words(day, item.created_at),
                is_own=item.sender.id == str(reader.pk),
                begins_day=begins_day,
                follows=not stands_alone and _is_close(before, item),
                is_first_unread=is_first_unread,
            )
        )
        before = item
    return shown


def _is_close(before: ItemBody | None, item: ItemBody) -> bool:
    return before is not None and before.sender.id == item.sender.id and item.created_at - before.created_at < PAUSE


def _day_words(day: date, moment: datetime) -> str:
    today = timezone.localdate()
    if day == today:
        return _("Today")
    if day == today - timedelta(days=1):
        return _("Yesterday")
    return format_moment(moment, "MONTH_DAY_FORMAT" if day.year == today.year else "DATE_FORMAT")
