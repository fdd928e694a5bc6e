"""Levels: how recently a user was seen. They decide on deliveries and the inbox's length.

Only `lower_levels` lowers levels, and it advances the user's *push generation*. So an inbox with the current one has
everything that readers of its level receive.
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
"""Users per transaction."""

# A dormant user's windows took no deliveries. The new epoch invalidates those left.
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
"""
# One level at a time, for the index (level, last_seen_at). MATERIALIZED: otherwise a plan could search again for each
# user and find more than a batch.
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
    """Whether being seen now might change the row."""
    interval: timedelta = settings.LAST_SEEN_INTERVAL
    return user.level < Level.DAILY or user.last_seen_at is None or user.last_seen_at < timezone.now() - interval


def touch(user_ids: Sequence[int]) -> list[int]:
    """Record that users are here, at most once per settings.LAST_SEEN_INTERVAL. Returns the ids whose level rose. Sends
    `levels_raised` after the commit.
    """
    if not current().is_writable:
        return []
    params = {"users": list(user_ids), "top": Level.DAILY.value, "interval": settings.LAST_SEEN_INTERVAL}
    raised = sorted(user_id for user_id, was_lower in fetch(TOUCH, params) if was_lower)
    if raised:
        transaction.on_commit(lambda: _announce_raised(raised))
    return raised


def lower_levels(batch: int = BATCH) -> int:
    """Lower levels of users not seen for long (settings.LEVEL_AGES). Returns how many. Sends `levels_lowered` after
    each commit.
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
