"""Notifications one by one, as apps list them: acts, newest first, by the rules of `feed`.

An act's id is the cursor. Acts before `ReadMark.put_away` are not listed. A page checks `feed.SCAN` more acts than it
shows, then `WIDE` more, up to `WIDEST` times while it has none.
"""

from collections.abc import Collection, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

from accounts.models import User
from notifications.feed import SCAN, act_shown, item_shown, page_statement, read_mark
from notifications.models import Kind
from storage.connections import fetch
from storage.ids import NO_BOUND
from storage.paging import Part, part_of

WIDE = 1_000
"""Further acts that a page checks, in case most of the newest are hidden."""
WIDEST = 5
"""How often a page without acts checks `WIDE` more, at most."""
WITH_ONE_ACT = frozenset({Kind.MENTION, Kind.REPLY})

PUT_AWAY = "coalesce((SELECT r.put_away FROM notifications_readmark r WHERE r.user_id = %(reader)s), 0)"
ACTS = f"""
    SELECT a.id, a.actor_id, a.notification_id FROM notifications_act a
    WHERE a.recipient_id = %(reader)s AND a.id < %(below)s AND a.id > greatest(%(above)s::bigint, {PUT_AWAY})
    ORDER BY a.id {{order}} LIMIT %(scan)s
"""
# The position is the id of the only act, which may be gone.
ACTS_OF_CONVERSATIONS = f"""
    SELECT c.position AS id, a.actor_id, c.id AS notification_id
    FROM (
        SELECT n.id, n.position FROM notifications_notification n
        WHERE n.recipient_id = %(reader)s AND n.kind IN ('mention', 'reply')
            AND n.position < %(below)s AND n.position > greatest(%(above)s::bigint, {PUT_AWAY})
        ORDER BY n.position {{order}} LIMIT %(scan)s
    ) c LEFT JOIN notifications_act a ON a.notification_id = c.id
"""


def _shown_acts_query() -> str:
    return f"""
    SELECT a.id, shown.kind, shown.item_id, a.actor_id, shown.subject_id FROM scanned a CROSS JOIN LATERAL (
        SELECT n.kind, n.item_id, n.subject_id
        FROM notifications_notification n JOIN accounts_user u ON u.id = a.actor_id
        WHERE n.id = a.notification_id AND n.kind = ANY(%(kinds)s::varchar[])
            AND (%(actor)s::bigint IS NULL OR a.actor_id = %(actor)s) AND {item_shown()} AND {act_shown()}
        OFFSET 0
    ) shown
    """


class NotifiedAct(NamedTuple):
    """An act in a reader's notifications."""

    id: int
    kind: str
    item_id: int | None
    actor_id: int
    subject_id: int | None = None
    """A decision's id."""


class _ActRow(NamedTuple):
    bound: int | None
    act: NotifiedAct | None

    @classmethod
    def of(cls, row: Sequence[Any]) -> "_ActRow":
        bound, act_id, *columns = row
        return cls(bound, None if act_id is None else NotifiedAct(act_id, *columns))


class ActFilter(NamedTuple):
    """The acts to list, between exclusive ids. Newest first unless `upward`."""

    kinds: Collection[str]
    below: int = NO_BOUND
    above: int = 0
    actor_id: int | None = None
    upward: bool = False


def acts_page(reader: User, wanted: ActFilter, *, limit: int) -> Part[NotifiedAct]:
    """The reader's notifications. At most two statements once it has found any."""
    found: list[NotifiedAct] = []
    bound: int | None = None
    for turn, scan in enumerate((limit + 1 + SCAN, *[WIDE] * WIDEST)):
        if found and turn > 1:
            break  # a short page is fine, but an empty one ends the paging of apps that ignore the Link header
        shown, bound = _scan_acts(reader, wanted, limit + 1 - len(found), scan)
        found += shown
        if bound is None or len(found) > limit:
            break
        wanted = wanted._replace(above=bound) if wanted.upward else wanted._replace(below=bound)
    return part_of(found, limit, attrgetter("id"), bound=bound)


def _scan_acts(reader: User, wanted: ActFilter, count: int, scan: int) -> tuple[list[NotifiedAct], int | None]:
    """Up to `count` shown acts of the next `scan`, and the bound."""
    kinds = sorted(wanted.kinds)
    params = {"reader": reader.pk, "kinds": kinds, "count": count, "scan": scan}
    params |= {"below": wanted.below, "above": wanted.above, "actor": wanted.actor_id}
    rows = fetch(_statement(WITH_ONE_ACT.issuperset(kinds), wanted.upward), params, into=_ActRow.of)
    shown = sorted((row.act for row in rows if row.act is not None), reverse=not wanted.upward)
    return shown, rows[0].bound


@cache
def _statement(is_of_conversations: bool, is_upward: bool) -> str:
    acts = ACTS_OF_CONVERSATIONS if is_of_conversations else ACTS
    order = "ASC" if is_upward else "DESC"
    return page_statement(acts.format(order=order), _shown_acts_query(), "id", order)


def unread_acts(reader: User, kinds: Collection[str], *, cap: int) -> list[NotifiedAct]:
    """The reader's unread acts, at most `cap`."""
    ((seen,),) = fetch(f"SELECT {read_mark()}", {"reader": reader.pk})
    return list(acts_page(reader, ActFilter(kinds, above=seen), limit=cap).shown)
