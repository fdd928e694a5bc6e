"""Mastodon's notifications: one per act. Kinds unknown to it are left out, so pages may be short."""

from collections.abc import Collection
from typing import NamedTuple

import msgspec

from accounts.models import User
from clientapi.accounts.people import accounts_by_id
from clientapi.entities import Account, Status, time_text
from clientapi.notifications.warnings import AccountWarning, warnings_of
from clientapi.paging import PageParams
from clientapi.statuses.presenting import statuses
from items.hydrate import hydrate
from items.models import Context
from notifications.models import OF_MODERATORS, Kind
from notifications.push import messages
from notifications.ungrouped import ActFilter, NotifiedAct, acts_page, unread_acts
from storage import ids
from storage.paging import below
from web.refusals import MissingError

TYPES = {Kind.LIKE: "favourite", Kind.REPOST: "reblog", **messages.TYPES}
TYPES |= dict.fromkeys(OF_MODERATORS, "moderation_warning")
"""Mastodon's names of the site's kinds."""
UNREAD_CAP = 100
"""Unread notifications are counted up to this number, as in Mastodon."""


class Notification(msgspec.Struct):
    """Mastodon's Notification."""

    id: str
    type: str
    created_at: str
    group_key: str
    account: Account
    status: Status | msgspec.UnsetType
    moderation_warning: AccountWarning | msgspec.UnsetType = msgspec.UNSET


class NoticePage(NamedTuple):
    """A page of acts, newest first, and the ids of its Link."""

    acts: list[NotifiedAct]
    next_id: int | None
    prev_id: int | None


class NoticeFilter(NamedTuple):
    """Which notifications are asked for."""

    types: Collection[str] = ()
    but: Collection[str] = ()
    account_id: int | None = None

    @property
    def kinds(self) -> list[Kind]:
        """The site's kinds of acts that are asked for."""
        return [kind for kind, name in TYPES.items() if (not self.types or name in self.types) and name not in self.but]


EVERYTHING = NoticeFilter()


def page(reader: User, asked: PageParams, chosen: NoticeFilter = EVERYTHING) -> NoticePage:
    """A page of acts: the newest below `max_id`, or those directly above `min_id`."""
    if not chosen.kinds:
        return NoticePage([], None, None)
    wanted = ActFilter(chosen.kinds, below(asked.max_id), asked.above, chosen.account_id, asked.goes_up)
    found = acts_page(reader, wanted, limit=asked.limit)
    acts = sorted(found.shown, reverse=True)
    newest, oldest = (acts[0].id, acts[-1].id) if acts else (None, None)
    return NoticePage(acts, *asked.link_ids(newest, oldest, found.last_id, found.has_more))


def find_notice(reader: User, notice_id: int) -> NotifiedAct:
    """The act of this notification. Raises MissingError."""
    wanted = ActFilter(EVERYTHING.kinds, below=notice_id + 1, above=notice_id - 1)
    for act in acts_page(reader, wanted, limit=1).shown:
        return act
    raise MissingError


def unread_among(reader: User, chosen: NoticeFilter) -> list[NotifiedAct]:
    """The unread notifications, at most `UNREAD_CAP`."""
    acts = unread_acts(reader, chosen.kinds, cap=UNREAD_CAP) if chosen.kinds else []
    return [act for act in acts if chosen.account_id in (None, act.actor_id)]


def decision_ids(acts: Collection[NotifiedAct]) -> list[int]:
    """The decisions that these acts tell of."""
    return [act.subject_id for act in acts if act.kind in OF_MODERATORS and act.subject_id]


def presented(acts: Collection[NotifiedAct], reader: User) -> list[Notification]:
    """Mastodon's notifications of these acts."""
    warnings = warnings_of(reader, decision_ids(acts))
    acts = [act for act in acts if act.kind not in OF_MODERATORS or act.subject_id in warnings]
    item_ids = list(dict.fromkeys(act.item_id for act in acts if act.item_id))
    shown = {int(status.id): status for status in statuses(hydrate(item_ids, reader, Context.NOTIFICATIONS), reader)}
    accounts = accounts_by_id({str(act.actor_id) for act in acts})
    return [
        Notification(
            id=str(act.id),
            type=TYPES[Kind(act.kind)],
            created_at=time_text(ids.moment(act.id)),
            group_key=f"ungrouped-{act.id}",
            account=accounts[str(act.actor_id)],
            status=shown[act.item_id] if act.item_id else msgspec.UNSET,
            moderation_warning=warnings.get(act.subject_id or 0, msgspec.UNSET),
        )
        for act in acts
        if str(act.actor_id) in accounts
    ]
