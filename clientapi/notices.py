"""Notifications as clients know them: one a person, of entries that the site groups.

An entry of the site names the newest three users who took part. Each of them is a notification here, whose id is the
entry's position less its place (0, 1, 2): so ids fall down the list, and any of them is a cursor. Kinds that Mastodon
does not have (live sessions, accepted requests, words of moderators) are passed over, and pages may be short.
"""

from collections.abc import Collection
from typing import NamedTuple

import msgspec

from accounts.models import User
from clientapi.entities import Account, Status, moment
from clientapi.paging import Wanted
from clientapi.people import accounts_by_id
from clientapi.presenting import statuses
from notifications.feed import ACTORS_SHOWN, Entry, PlacedEntry, placed_page

KINDS = {
    "like": "favourite",
    "repost": "reblog",
    "reply": "mention",
    "mention": "mention",
    "follow": "follow",
    "follow_request": "follow_request",
}
"""The kinds of the site, and what they are called in Mastodon."""
ROUNDS, ROUND = 5, 100
"""Pages, and entries of each, that are looked through for what is directly above an id."""


class Notification(msgspec.Struct):
    """That a user did something which concerns the caller."""

    id: str
    type: str
    created_at: str
    group_key: str
    account: Account
    status: Status | None


class Notice(NamedTuple):
    """A notification before it is shown."""

    id: int
    type: str
    entry: Entry
    actor_id: str
    place: int


class NoticePage(NamedTuple):
    """Notifications, newest first, and the ids of their Link."""

    notices: list[Notice]
    next_id: int | None
    prev_id: int | None


class Chosen(NamedTuple):
    """The notifications that are asked for."""

    types: Collection[str] = ()
    but: Collection[str] = ()
    account_id: str = ""

    def has(self, notice: Notice) -> bool:
        """Whether a notification is among them."""
        is_asked = not self.types or notice.type in self.types
        return is_asked and notice.type not in self.but and self.account_id in ("", notice.actor_id)


def _notices(placed: PlacedEntry) -> list[Notice]:
    kind = KINDS.get(placed.entry.kind)
    if kind is None:
        return []
    return [
        Notice(placed.position - place, kind, placed.entry, actor.id, place)
        for place, actor in enumerate(placed.entry.actors)
    ]


def page(reader: User, asked: Wanted, chosen: Chosen) -> NoticePage:
    """The notifications below `max_id`, or directly above `min_id`."""
    if asked.min_id is not None:
        return _above(reader, asked, chosen)
    below = None if asked.max_id is None else asked.max_id + ACTORS_SHOWN
    entries, last, has_more = placed_page(reader, last_id=below, limit=asked.limit + (below is not None))
    every = [one for entry in entries for one in _notices(entry) if asked.max_id is None or one.id < asked.max_id]
    shown = [one for one in every if one.id > asked.above][: asked.limit]
    is_cut = any(one.id <= asked.above for one in every) or (last is not None and last <= asked.above)
    if len(shown) == asked.limit and (has_more or shown[-1] != every[-1]):
        next_id: int | None = shown[-1].id
    else:
        next_id = last if has_more else None
    chosen_ones = [one for one in shown if chosen.has(one)]
    return NoticePage(chosen_ones, None if is_cut else next_id, shown[0].id if shown else None)


def _above(reader: User, asked: Wanted, chosen: Chosen) -> NoticePage:
    """The notifications directly above an id: exact while no more than `ROUNDS` pages of entries are newer."""
    found: list[Notice] = []
    last: int | None = None
    for _ in range(ROUNDS):
        entries, last, has_more = placed_page(reader, last_id=last, limit=ROUND)
        found += [one for entry in entries for one in _notices(entry) if one.id > asked.above]
        if not has_more or last is None or last <= asked.above:
            break
    lowest = found[-asked.limit :]
    shown = [one for one in lowest if chosen.has(one)]
    next_id = lowest[-1].id if lowest else asked.above + 1
    return NoticePage(shown, next_id, lowest[0].id if lowest else None)


def one(reader: User, notice_id: int) -> Notice | None:
    """The notification of this id; None where there is none."""
    entries, _last, _has_more = placed_page(reader, last_id=notice_id + ACTORS_SHOWN, limit=ACTORS_SHOWN)
    return next((notice for entry in entries for notice in _notices(entry) if notice.id == notice_id), None)


def presented(notices: Collection[Notice], reader: User) -> list[Notification]:
    """The notifications, with their accounts and statuses, which are read together."""
    items = {notice.entry.item.id: notice.entry.item for notice in notices if notice.entry.item is not None}
    shown = dict(zip(items, statuses(list(items.values()), reader), strict=True))
    accounts = accounts_by_id({notice.actor_id for notice in notices})
    return [
        Notification(
            id=str(notice.id),
            type=notice.type,
            created_at=moment(notice.entry.created_at),
            group_key=f"ungrouped-{notice.id}",
            account=accounts[notice.actor_id],
            status=shown[notice.entry.item.id] if notice.entry.item is not None else None,
        )
        for notice in notices
    ]
