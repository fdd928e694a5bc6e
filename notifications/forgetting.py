"""Deletes old notifications, and those of deleted users."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from django.conf import settings

from accounts.models import User
from storage import ids
from storage.connections import fetch

BATCH = 5_000
"""Rows of a statement."""
FORGET_ACTS = """
    DELETE FROM notifications_act WHERE id = ANY(ARRAY(
        SELECT a.id FROM notifications_act a WHERE a.{column} = %(user)s LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
    RETURNING 1
"""
FORGET_ENTRIES = """
    DELETE FROM notifications_notification WHERE id = ANY(ARRAY(
        SELECT n.id FROM notifications_notification n WHERE {which} LIMIT %(limit)s FOR UPDATE SKIP LOCKED)) RETURNING 1
"""
# Each batch starts where the last one ended, because deleted rows stay in the indexes until VACUUM, as long as a backup
# runs.
OLD = """
    SELECT position, id FROM notifications_notification
    WHERE (position, id) > (%(position)s::bigint, %(entry)s::bigint) AND position < %(before)s
    ORDER BY position, id LIMIT %(limit)s
"""
OLD_ACTS = """
    DELETE FROM notifications_act WHERE id = ANY(ARRAY(
        SELECT a.id FROM notifications_act a
        WHERE a.notification_id = ANY(%(entries)s::bigint[])
            AND (a.notification_id, a.actor_id) > (%(entry)s::bigint, %(actor)s::bigint)
        ORDER BY a.notification_id, a.actor_id LIMIT %(limit)s FOR UPDATE OF a SKIP LOCKED))
    RETURNING notification_id, actor_id
"""
OLD_ENTRIES = FORGET_ENTRIES.format(which="n.id = ANY(%(entries)s::bigint[]) AND n.position < %(before)s")
LEFT_ACTS = """
    WITH old AS MATERIALIZED (
        SELECT id, notification_id FROM notifications_act
        WHERE id > %(act)s::bigint AND id < %(before)s ORDER BY id LIMIT %(limit)s
    ),
    gone AS (
        DELETE FROM notifications_act a USING old WHERE a.id = old.id AND NOT EXISTS (
            SELECT FROM notifications_notification n WHERE n.id = old.notification_id OFFSET 0)
        RETURNING 1
    )
    SELECT count(*), max(id), (SELECT count(*) FROM gone) FROM old
"""
FORGET_USER = (
    FORGET_ACTS.format(column="actor_id"),
    FORGET_ACTS.format(column="recipient_id"),
    FORGET_ENTRIES.format(which="n.recipient_id = %(user)s"),
    "DELETE FROM notifications_readmark WHERE user_id = %(user)s AND %(limit)s > 0 RETURNING 1",
    "DELETE FROM notifications_silenced WHERE user_id = %(user)s AND %(limit)s > 0 RETURNING 1",
    "DELETE FROM notifications_quiethours WHERE user_id = %(user)s AND %(limit)s > 0 RETURNING 1",
    "DELETE FROM notifications_pushsubscription WHERE user_id = %(user)s AND %(limit)s > 0 RETURNING 1",
)


def forget_old() -> int:
    """Delete entries without a new act for settings.NOTIFICATION_LIFE."""
    params = {"before": ids.compose(datetime.now(UTC) - settings.NOTIFICATION_LIFE, 0), "limit": BATCH}
    total, position, entry = 0, 0, 0
    while old := fetch(OLD, params | {"position": position, "entry": entry}):
        entries = [entry for _, entry in old]
        total += _forget_acts(entries) + len(fetch(OLD_ENTRIES, params | {"entries": entries}))
        position, entry = old[-1]
    return total + _forget_left_acts(params)


class _Act(NamedTuple):
    entry_id: int
    actor_id: int


def _forget_acts(entries: Sequence[int]) -> int:
    total, last = 0, _Act(0, 0)
    while True:
        params = {"entries": entries, "entry": last.entry_id, "actor": last.actor_id, "limit": BATCH}
        gone = fetch(OLD_ACTS, params, into=_Act._make)
        total += len(gone)
        if len(gone) < BATCH:
            return total
        last = max(gone)


def _forget_left_acts(params: Mapping[str, int]) -> int:
    """Delete old acts without an entry. Old acts of current entries stay."""
    total, last = 0, 0
    while True:
        rows: list[tuple[int, int, int]] = fetch(LEFT_ACTS, {**params, "act": last})
        ((passed, newest, gone),) = rows
        total += gone
        if passed < BATCH:
            return total
        last = newest


def forget_user(*, user: User, limit: int) -> int:
    """Delete up to `limit` rows of a deleted user."""
    taken = 0
    for query in FORGET_USER:
        if taken < limit:
            taken += len(fetch(query, {"user": user.pk, "limit": limit - taken}))
    return taken
