"""Timed changes: automatic starts and ends, missed sessions, and the end after a day. The site does not see the video,
so it cannot know when one is over.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.db import DatabaseError

from live import actions
from live.models import LiveSession
from live.visibility import shown
from storage.connections import fetch

logger = logging.getLogger(__name__)

AT_ONCE = 1000
"""Most sessions that one run starts, ends or makes missed, of each kind."""

MISSED = """
    SELECT id FROM live_livesession WHERE state = 'upcoming' AND starts_at <= %(lost)s
    ORDER BY starts_at LIMIT %(count)s
"""
# Sessions of invisible hosts are not started. They become missed.
STARTING = f"""
    SELECT s.id FROM live_livesession s JOIN accounts_user h ON h.id = s.host_id
    WHERE s.state = 'upcoming' AND s.starts_at <= %(now)s AND s.automatic AND {shown("s", "h")}
    ORDER BY s.starts_at LIMIT %(count)s
"""
ENDING = """
    SELECT id FROM live_livesession
    WHERE state = 'live' AND (started_at <= %(forgotten)s
        OR (automatic AND started_at + minutes * interval '1 minute' <= %(now)s))
    ORDER BY started_at LIMIT %(count)s
"""


_BY_NOW = {
    "now": "now()",
    "lost": f"now() - interval '{settings.LIVE_GRACE.total_seconds()} seconds'",
    "forgotten": f"now() - interval '{settings.LIVE_LONGEST.total_seconds()} seconds'",
    "count": 1,
}
DUE = " UNION ALL ".join(f"({each % _BY_NOW})" for each in (MISSED, STARTING, ENDING))
"""A query that finds sessions that `advance_due` would change. Beat asks it."""


def advance_due(*, now: datetime) -> int:
    """Start, end and miss the sessions that are due. Return how many."""
    params = {
        "now": now,
        "lost": now - settings.LIVE_GRACE,
        "forgotten": now - settings.LIVE_LONGEST,
        "count": AT_ONCE,
    }
    return sum(
        _apply_to_each(fetch(due, params), partial(verb, now=now))
        for due, verb in (
            (MISSED, actions.mark_missed),
            (STARTING, partial(actions.start, by_itself=True)),
            (ENDING, actions.end),
        )
    )


def _apply_to_each(rows: list[tuple[Any, ...]], verb: Callable[..., LiveSession]) -> int:
    changed = 0
    for session in LiveSession.objects.filter(pk__in=[row[0] for row in rows]).order_by("pk"):
        try:
            verb(session=session)
        except (actions.WrongStateError, LiveSession.DoesNotExist):
            continue  # another process was faster
        except DatabaseError:
            logger.exception("live session %s could not start or end. It is tried again", session.pk)
            continue
        changed += 1
    return changed
