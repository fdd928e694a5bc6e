"""The policy: what decides which readers take pushes from big-Vs. One row of PostgreSQL, changed by `manage.py policy`.

A window holds what was pushed under one policy. So each change of the policy draws a new generation, what a window is
built for includes the generation (`EPOCH`), and a window of another generation is not used. A fan-out that was claimed
before a change and is served after it does no harm, under the old policy or the new: a window of the new generation was
filled after the change, so it holds every item that was committed, and so could be claimed, before.

The generation stands for the history of PostgreSQL too. A standby that is promoted without the newest transactions
knows nothing of a deletion, block or unfollow that was lost, while windows have forgotten the items already. A
promotion gives PostgreSQL another timeline; a generation of another timeline counts no more, so no window does until
`follow_timeline` has drawn a new one, and pages come from PostgreSQL until then. A restore draws one as well.
"""

from typing import NamedTuple

from django.conf import settings

from feedsite.connections import fetch

LEVELS = range(1, 5)
"""Push levels: 1, every follower who has an inbox; 4, none."""

TIMELINE_SQL = """
CREATE FUNCTION feedsite_timeline() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN NOT pg_is_in_recovery()
        THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint END
$$;
"""
DROP_TIMELINE_SQL = "DROP FUNCTION feedsite_timeline();"

FORMAT = 2
"""Of what a window says of itself. Processes of another format, which run beside these during an upgrade, count by
other generations, so neither uses the windows of the other.
"""

# For statements that name them once: each is evaluated once a statement, however many rows there are.
GENERATION = f"(SELECT p.generation # {FORMAT} FROM accounts_policy p WHERE p.timeline = feedsite_timeline())"  # noqa: S608
"""The generation that counts now; NULL where none does."""
PUSH_LEVEL = "(SELECT p.push_level FROM accounts_policy p)"
EPOCH = f"u.window_epoch # {GENERATION}"
"""The epoch for which the windows of a user `u` must have been built; NULL: no window is to be used."""
OUTBOX_EPOCH = f"u.promotion # {GENERATION}"
"""The same of the outbox of a big-V `u`."""
PUSH_GENERATION = f"CASE WHEN u.level >= {PUSH_LEVEL} THEN u.push_generation ELSE 0 END"
"""The push generation of a user `u` who takes pushes from big-Vs; 0 of one who merges their outboxes."""

CURRENT = f"SELECT {PUSH_LEVEL}, {GENERATION}"
CHANGE = """
    UPDATE accounts_policy SET push_level = %(push_level)s, generation = feedsite_draw(), timeline = feedsite_timeline()
    WHERE push_level <> %(push_level)s RETURNING id
"""
RENEW = "UPDATE accounts_policy SET generation = feedsite_draw(), timeline = feedsite_timeline()"
FOLLOW_TIMELINE = """
    INSERT INTO accounts_policy AS p (id, push_level) VALUES (1, %(push_level)s)
    ON CONFLICT (id) DO UPDATE SET generation = feedsite_draw(), timeline = feedsite_timeline()
    WHERE p.timeline <> feedsite_timeline() RETURNING p.id
"""


class Current(NamedTuple):
    """The policy in force."""

    push_level: int
    generation: int | None
    """None after a failover, until `follow_timeline`: no window counts."""


def current() -> Current:
    """Read the row."""
    return Current(*fetch(CURRENT)[0])


def change(*, push_level: int) -> bool:
    """Push big-Vs' items to followers of at least this level; False if that is so already. Raises ValueError.

    All windows are built anew as they are read.
    """
    if push_level not in LEVELS:
        raise ValueError(f"The push level is {LEVELS[0]} to {LEVELS[-1]}.")
    return bool(fetch(CHANGE, {"push_level": push_level}))


def renew() -> None:
    """Draw a new generation: no window of before is used again."""
    fetch(f"{RENEW} RETURNING id")


def follow_timeline() -> bool:
    """Draw a new generation if PostgreSQL has another timeline than the one of the last; True if it has.

    A row that is gone (`flush` empties every table) is made anew, as for a new site.
    """
    return bool(fetch(FOLLOW_TIMELINE, {"push_level": configured()}))


def configured() -> int:
    """The push level that the environment names, which counts for a new site only."""
    level: int = settings.BIG_V_PUSH_LEVEL
    return level
