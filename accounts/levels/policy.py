"""The policy: what decides which readers have an inbox, and which of them take pushes from big-Vs. One row of
PostgreSQL, changed by `manage.py policy` and in the admin.

A window holds what was pushed under one policy. So each change of the policy draws a new generation, what a window is
built for includes the generation (`EPOCH`), and a window of another generation is not used. A fan-out that was claimed
before a change and is served after it does no harm, under the old policy or the new: a window of the new generation was
filled after the change, so it holds every item that was committed, and so could be claimed, before.

A reader with fewer followees than `inbox_from` has no inbox: fan-out passes them, and one pull serves their pages.
Only a follow adds to `following_count`, and it draws the reader's epoch in the same transaction. So while an epoch and
a generation stand, a reader may lose their inbox and never get one: a window that counts has missed no delivery.

Processes of versions that know of no `inbox_from` believe that fan-out serves all readers. They read `timeline`, which
is NULL while it does not, so they use no window then; this version reads `drawn_on`.

The generation stands for the history of PostgreSQL too. A standby that is promoted without the newest transactions
knows nothing of a deletion, block or unfollow that was lost, while windows have forgotten the items already. A
promotion gives PostgreSQL another timeline (`feedsite_timeline`, accounts/sql/policy.sql); a generation of another
timeline counts no more, so no window does until `follow_timeline` has drawn a new one, and pages come from PostgreSQL
until then. A restore draws one as well.

See docs/decisions.md: Windows are valid for one epoch.
"""

from typing import NamedTuple

from django.conf import settings

from storage.connections import fetch

LEVELS = range(1, 5)
"""Push levels: 1, every follower who has an inbox; 4, none."""
FOLLOWEES = range(100_001)
"""The range of `inbox_from`, in followees: up to the most that a site can allow a user to follow."""

FORMAT = 2
"""The number of the format of windows, to be raised with each change of what a window's own members mean. Processes of
another format, which run beside these during an upgrade, count by other generations, so neither uses the windows of the
other.
"""

# For statements that name them once: each is evaluated once a statement, however many rows there are.
GENERATION = f"(SELECT p.generation # {FORMAT} FROM accounts_policy p WHERE p.drawn_on = feedsite_timeline())"  # noqa: S608
"""The generation that counts now; NULL where none does."""
PUSH_LEVEL = "(SELECT p.push_level FROM accounts_policy p)"
INBOX_FROM = "(SELECT p.inbox_from FROM accounts_policy p)"
EPOCH = f"u.window_epoch # {GENERATION}"
"""The epoch for which the windows of a user `u` must have been built; NULL: no window is to be used."""
IN_FORCE = f"""(
    SELECT p.push_level, p.inbox_from,
        CASE WHEN p.drawn_on = feedsite_timeline() THEN p.generation # {FORMAT} END AS generation
    FROM accounts_policy p OFFSET 0)
"""  # noqa: S608 (constants)
"""The three as columns of one row, for statements that need them all: read once, where each of the above is a reading
of its own. No row where the table was emptied.
"""


def push_generation(push_level: str = PUSH_LEVEL) -> str:
    """The push generation of a user `u` who takes pushes from big-Vs; 0 of one who merges their outboxes."""
    return f"CASE WHEN u.level >= {push_level} THEN u.push_generation ELSE 0 END"


PUSH_GENERATION = push_generation()
"""The rule stands here for readers and builders. Fan-out has it as a least level, for ranges and for sets of active
fans (fanout.Work.minimum_level, active_fans.FANS), and truth.Expected.merges guesses it. Fan-out may serve more
readers than this names, never fewer: a window that names a push generation would lack what was not pushed.
"""


def outbox_epoch(user: str = "u") -> str:
    """The epoch for which the outbox of a big-V must have been built; NULL: it is not to be used."""
    return f"{user}.promotion # {GENERATION}"


def has_inbox(user: str = "u", inbox_from: str = INBOX_FROM) -> str:
    """Whether a user has an inbox, as SQL: the one expression that fan-out, pages and builders ask.

    See docs/decisions.md: Readers with few followees have no inbox.
    """
    return f"({user}.level > 0 AND {user}.following_count >= {inbox_from})"


CURRENT = f"SELECT {PUSH_LEVEL}, {INBOX_FROM}, {GENERATION}"


def _drawn(inbox_from: str) -> str:
    return f"""
    generation = feedsite_draw(), drawn_on = feedsite_timeline(),
    timeline = CASE WHEN {inbox_from} = 0 THEN feedsite_timeline() END
    """


WANTED = ("coalesce(%(push_level)s::int, push_level)", "coalesce(%(inbox_from)s::int, inbox_from)")
CHANGE = f"""
    UPDATE accounts_policy SET push_level = {WANTED[0]}, inbox_from = {WANTED[1]}, {_drawn(WANTED[1])}
    WHERE (push_level, inbox_from) <> ({WANTED[0]}, {WANTED[1]}) RETURNING id
"""  # noqa: S608 (constants)
RENEW = f"UPDATE accounts_policy SET {_drawn('inbox_from')}"  # noqa: S608
FOLLOW_TIMELINE = f"""
    INSERT INTO accounts_policy AS p (id, push_level, inbox_from, timeline)
    VALUES (1, %(push_level)s, %(inbox_from)s, CASE WHEN %(inbox_from)s::int = 0 THEN feedsite_timeline() END)
    ON CONFLICT (id) DO UPDATE SET {_drawn("p.inbox_from")}
    WHERE p.drawn_on IS DISTINCT FROM feedsite_timeline() RETURNING p.id
"""  # noqa: S608


# The row is gone, or drawn on another timeline.
NOT_FOLLOWED = """
    SELECT WHERE NOT EXISTS (SELECT FROM accounts_policy p WHERE p.drawn_on IS NOT DISTINCT FROM feedsite_timeline())
"""


class Current(NamedTuple):
    """The policy in force."""

    push_level: int
    """The level from which readers take pushes from big-Vs."""
    inbox_from: int
    """With how many followees a reader has an inbox; 0: every active reader."""
    generation: int | None
    """None after a failover, until `follow_timeline`: no window counts."""


class Configured(NamedTuple):
    """The policy of a new site."""

    push_level: int
    inbox_from: int


def allowed(within: range) -> str:
    """The range, for an error's sentence."""
    return f"a whole number from {within[0]} to {within[-1]}"


def current() -> Current:
    """Read the row."""
    return Current(*fetch(CURRENT)[0])


def change(*, push_level: int | None = None, inbox_from: int | None = None) -> bool:
    """Push big-Vs' items to followers of at least this level, give an inbox to readers with at least so many followees;
    None: as before. False if all is so already. Raises ValueError.

    All windows are built anew as they are read.
    """
    for name, value, within in (("push_level", push_level, LEVELS), ("inbox_from", inbox_from, FOLLOWEES)):
        if value is not None and value not in within:
            raise ValueError(f"{name} is {value}; it must be {allowed(within)}")
    return bool(fetch(CHANGE, {"push_level": push_level, "inbox_from": inbox_from}))


def renew() -> None:
    """Draw a new generation: no window of before is used again."""
    fetch(f"{RENEW} RETURNING id")


def follow_timeline() -> bool:
    """Draw a new generation if PostgreSQL has another timeline than the one of the last; True if it has.

    A row that is gone (`flush` empties every table) is made anew, as for a new site.

    See docs/decisions.md: Windows are valid for one epoch.
    """
    return bool(fetch(FOLLOW_TIMELINE, configured()._asdict()))


def configured() -> Configured:
    """The policy of a new site, as feedsite/settings.py has it."""
    return Configured(settings.BIG_V_PUSH_LEVEL, settings.INBOX_FROM)
