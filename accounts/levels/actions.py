"""Levels: how recently a user was seen, which decides whether they get pushes and how long their inbox is.

Seeing a user raises the level to the top; only `lower_levels`, a periodic task, lowers it. Each lowering advances the
user's *push generation*: a window that says it was filled under it lacks nothing that the level takes (timeline.inbox).
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.about.site import current
from accounts.models import Level, User
from accounts.signals import levels_lowered, levels_raised
from storage.connections import fetch

BATCH = 1_000
"""Users that one transaction lowers."""

# Windows of a dormant user took no deliveries, so those that may be left are not used again.
TOUCH = f"""
    UPDATE accounts_user u SET
        last_seen_at = now(),
        level = %(top)s,
        window_epoch = CASE WHEN before.level = {Level.DORMANT.value} THEN feedsite_draw() ELSE u.window_epoch END
    FROM (
        SELECT id, level FROM accounts_user
        WHERE id = ANY(%(users)s) AND is_active
            AND (last_seen_at IS NULL OR last_seen_at < now() - %(interval)s::interval OR level < %(top)s)
        ORDER BY id FOR NO KEY UPDATE
    ) before
    WHERE u.id = before.id RETURNING u.id, before.level < %(top)s
"""  # noqa: S608 (constants)
# One level at a time, so that the index (level, last_seen_at) finds those who are due.
# MATERIALIZED: a plan that looks for the due again for every user would find more than a batch.
LOWER = """
    WITH due AS MATERIALIZED (
        SELECT id, coalesce(last_seen_at, date_joined) AS seen_at FROM accounts_user
        WHERE level = %(level)s AND (
            last_seen_at <= now() - %(age)s::interval
            OR last_seen_at IS NULL AND date_joined <= now() - %(age)s::interval
        )
        ORDER BY id LIMIT %(batch)s FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE accounts_user u SET level = CASE
        WHEN due.seen_at > now() - %(weekly)s::interval THEN 2
        WHEN due.seen_at > now() - %(monthly)s::interval THEN 1
        ELSE 0 END, push_generation = u.push_generation + 1
    FROM due WHERE u.id = due.id RETURNING u.id, u.level
"""


def is_due(user: User) -> bool:
    """Whether being seen now would change the user's row, as far as the row at hand tells."""
    interval: timedelta = settings.LAST_SEEN_INTERVAL
    return user.level < Level.DAILY or user.last_seen_at is None or user.last_seen_at < timezone.now() - interval


def touch(user_ids: Sequence[int]) -> list[int]:
    """Note that these users are here, in one statement; the ids of those whose level that raised. Sends
    `levels_raised`, after the commit.

    Each row is written at most once in settings.LAST_SEEN_INTERVAL. Of two calls at once, one raises. Nobody is noted
    in the read-only mode.
    """
    if not current().takes_notes:
        return []
    params = {"users": list(user_ids), "top": Level.DAILY.value, "interval": settings.LAST_SEEN_INTERVAL}
    raised = sorted(user_id for user_id, was_lower in fetch(TOUCH, params) if was_lower)
    if raised:
        transaction.on_commit(lambda: _announce_raised(raised))
    return raised


def lower_levels(batch: int = BATCH) -> int:
    """Lower every user who was seen too long ago for their level (settings.LEVEL_AGES); how many. Sends
    `levels_lowered`, after each commit.

    `batch` users a transaction. A user whose row is locked is left for the next time. A user who was never seen counts
    as seen when they joined.
    """
    lowered = 0
    for level in sorted(settings.LEVEL_AGES, reverse=True):
        while (count := _lower_batch(level, batch)) == batch:
            lowered += count
        lowered += count
    return lowered


@transaction.atomic
def _lower_batch(level: int, batch: int) -> int:
    ages = settings.LEVEL_AGES
    rows = fetch(
        LOWER,
        {
            "level": level,
            "age": ages[level],
            "weekly": ages[Level.WEEKLY],
            "monthly": ages[Level.MONTHLY],
            "batch": batch,
        },
    )
    by_level: defaultdict[int, list[int]] = defaultdict(list)
    for user_id, new_level in rows:
        by_level[new_level].append(user_id)
    if rows:
        transaction.on_commit(lambda: _announce_lowered(dict(by_level)))
    return len(rows)


def _announce_raised(user_ids: list[int]) -> None:
    levels_raised.send(sender=User, user_ids=user_ids)


def _announce_lowered(user_ids_by_level: dict[int, list[int]]) -> None:
    levels_lowered.send(sender=User, user_ids_by_level=user_ids_by_level)
