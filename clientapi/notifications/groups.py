"""Grouped notifications, for version 2 of Mastodon's API.

Likes and reposts of one status, and follows, form a group per day (UTC), maybe on two pages under one key. Counts cover
the whole day, but at most `NEAR` acts beyond each end of the page.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from accounts.models import User
from clientapi.accounts.people import accounts_by_id
from clientapi.entities import Account, Status, time_text
from clientapi.notifications import notices
from clientapi.notifications.notices import TYPES, NoticeFilter, NoticePage
from clientapi.notifications.warnings import AccountWarning, warnings_of
from clientapi.paging import PageParams
from clientapi.statuses.presenting import statuses
from items.hydrate import hydrate
from items.models import Context
from notifications.models import OF_MODERATORS, Kind
from notifications.ungrouped import ActFilter, NotifiedAct, acts_page
from storage import ids
from web.refusals import MissingError

GROUPED = frozenset({"favourite", "reblog", "follow"})
ACTS = 80
"""Acts grouped per page."""
NEAR = 200
"""Acts counted beyond each end of a page. Also the limit of acts when one group is read by its key."""
SAMPLES = 8
"""Maximum people named per group, as in Mastodon."""
KEY = re.compile(r"(favourite|reblog|follow)-([0-9]{1,16})-([0-9]{8})|ungrouped-([1-9][0-9]{0,15})", re.ASCII)


class NotificationGroup(msgspec.Struct):
    """Mastodon's NotificationGroup."""

    group_key: str
    notifications_count: int
    type: str
    most_recent_notification_id: int
    page_min_id: str
    page_max_id: str
    latest_page_notification_at: str
    sample_account_ids: list[str]
    status_id: str | msgspec.UnsetType = msgspec.UNSET
    moderation_warning: AccountWarning | msgspec.UnsetType = msgspec.UNSET


class PartialAccount(msgspec.Struct):
    """Mastodon's PartialAccountWithAvatar."""

    id: str
    acct: str
    locked: bool
    bot: bool
    url: str
    avatar: str
    avatar_static: str
    avatar_description: str = ""


class Grouped(msgspec.Struct):
    """Groups with their accounts and statuses."""

    accounts: list[Account]
    statuses: list[Status]
    notification_groups: list[NotificationGroup]
    partial_accounts: list[PartialAccount] | msgspec.UnsetType = msgspec.UNSET


class Group(NamedTuple):
    """A group of acts, newest first: those on the page, and all that were found."""

    key: str
    on_page: list[NotifiedAct]
    every: list[NotifiedAct]


def key_of(act: NotifiedAct, grouped: Collection[str] = GROUPED) -> str:
    """The key of the group to which an act belongs."""
    kind = TYPES[Kind(act.kind)]
    if kind not in GROUPED or kind not in grouped:
        return f"ungrouped-{act.id}"
    return f"{kind}-{act.item_id or 0}-{ids.moment(act.id):%Y%m%d}"


def page(
    reader: User, asked: PageParams, chosen: NoticeFilter, grouped: Collection[str]
) -> tuple[list[Group], NoticePage]:
    """A page of up to `asked.limit` groups, and the page of acts that it shows."""
    wide = PageParams(ACTS, asked.max_id, asked.since_id, asked.min_id)
    found = notices.page(reader, wide, chosen)
    walked = found.acts[::-1] if asked.goes_up else found.acts
    keys: set[str] = set()
    for place, act in enumerate(walked):
        keys.add(key_of(act, grouped))
        if len(keys) > asked.limit:
            acts = sorted(walked[:place], reverse=True)
            newest, oldest = acts[0].id, acts[-1].id
            found = NoticePage(acts, oldest, newest)
            break
    return _joined(found.acts, _beyond(reader, found.acts, asked, chosen), grouped), found


def _joined(acts: Iterable[NotifiedAct], beyond: Iterable[NotifiedAct], grouped: Collection[str]) -> list[Group]:
    groups: dict[str, Group] = {}
    for act in acts:
        key = key_of(act, grouped)
        groups.setdefault(key, Group(key, [], [])).on_page.append(act)
    others: dict[str, list[NotifiedAct]] = {}
    for act in beyond:
        others.setdefault(key_of(act, grouped), []).append(act)
    return [
        group._replace(every=sorted([*group.on_page, *others.get(group.key, [])], reverse=True))
        for group in groups.values()
    ]


def _beyond(reader: User, acts: list[NotifiedAct], asked: PageParams, chosen: NoticeFilter) -> list[NotifiedAct]:
    kinds = [kind for kind in chosen.kinds if TYPES[kind] in GROUPED]
    if not acts or not kinds:
        return []
    newest, oldest = acts[0].id, acts[-1].id
    above = ActFilter(kinds, _day(newest).stop, newest, chosen.account_id, upward=True)
    below = ActFilter(kinds, oldest, _day(oldest).start - 1, chosen.account_id)
    is_first = asked.max_id is None and not asked.goes_up
    found = [] if is_first else acts_page(reader, above, limit=NEAR).shown
    return [*found, *acts_page(reader, below, limit=NEAR).shown]


def _day(act_id: int) -> range:
    begin = ids.moment(act_id).replace(hour=0, minute=0, second=0, microsecond=0)
    return _ids_of(begin)


def _ids_of(begin: datetime) -> range:
    return range(ids.compose(begin, 0), ids.compose(begin + timedelta(days=1), 0))


def find_group(reader: User, key: str) -> Group:
    """The group with this key. Raises MissingError."""
    match = KEY.fullmatch(key)
    if match is None or int(match[4] or 0) > ids.MAX_ID:
        raise MissingError
    if match[4]:
        act = notices.find_notice(reader, int(match[4]))
        return Group(key, [act], [act])
    try:
        span = _ids_of(datetime.strptime(match[3], "%Y%m%d").replace(tzinfo=UTC))
    except ValueError as error:
        raise MissingError from error
    kinds = [kind for kind, name in TYPES.items() if name == match[1]]
    shown = acts_page(reader, ActFilter(kinds, span.stop, span.start - 1), limit=NEAR).shown
    acts = [act for act in sorted(shown, reverse=True) if key_of(act) == key]
    if not acts:
        raise MissingError
    return Group(key, acts, acts)


def presented(groups: list[Group], reader: User, *, is_partial: bool = False) -> Grouped:
    """The groups with their accounts and statuses. `is_partial`: only newest actors are complete."""
    warnings = warnings_of(reader, notices.decision_ids([group.every[0] for group in groups]))
    groups = [
        group for group in groups if group.every[0].kind not in OF_MODERATORS or group.every[0].subject_id in warnings
    ]
    item_ids = list(dict.fromkeys(group.every[0].item_id for group in groups if group.every[0].item_id))
    shown = {status.id: status for status in statuses(hydrate(item_ids, reader, Context.NOTIFICATIONS), reader)}
    names = {group.key: list(dict.fromkeys(str(act.actor_id) for act in group.every)) for group in groups}
    accounts = accounts_by_id({name for found in names.values() for name in found[:SAMPLES]})
    told = [
        _group_json(group, [name for name in names[group.key][:SAMPLES] if name in accounts], warnings)
        for group in groups
        if not group.every[0].item_id or str(group.every[0].item_id) in shown
    ]
    told = [one for one in told if one.sample_account_ids]
    named = list(dict.fromkeys(name for one in told for name in one.sample_account_ids))
    whole = {one.sample_account_ids[0] for one in told} if is_partial else set(named)
    body = Grouped([accounts[name] for name in named if name in whole], list(shown.values()), told)
    if is_partial:
        body.partial_accounts = [_partial(accounts[name]) for name in named if name not in whole]
    return body


def _group_json(group: Group, people: list[str], warnings: Mapping[int, AccountWarning]) -> NotificationGroup:
    newest, on_page = group.every[0], group.on_page
    return NotificationGroup(
        group_key=group.key,
        notifications_count=len(group.every),
        type=TYPES[Kind(newest.kind)],
        most_recent_notification_id=newest.id,
        page_min_id=str(on_page[-1].id),
        page_max_id=str(on_page[0].id),
        latest_page_notification_at=time_text(ids.moment(on_page[0].id)),
        sample_account_ids=people,
        status_id=str(newest.item_id) if newest.item_id else msgspec.UNSET,
        moderation_warning=warnings.get(newest.subject_id or 0, msgspec.UNSET),
    )


def _partial(account: Account) -> PartialAccount:
    return PartialAccount(
        account.id, account.acct, account.locked, account.bot, account.url, account.avatar, account.avatar_static
    )
