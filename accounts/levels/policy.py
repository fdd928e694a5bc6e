"""The policy: which readers have an inbox, and which receive big-Vs' posts. One row.

Each change draws a generation, part of the window's epoch (`EPOCH`). A fan-out claimed before a change does no harm:
windows of the new generation hold every item committed before.

Only a follow raises `following_count`, and it draws the reader's epoch too. So within one epoch and generation a reader
cannot gain an inbox, and a valid window missed no delivery.

Versions without `inbox_from` read `timeline`, NULL while fan-out does not serve all readers. This version reads
`drawn_on`: generations of another timeline of PostgreSQL (accounts/sql/policy.sql) are invalid until
`renew_after_failover` draws one, because a promoted standby may have lost what windows already took.

See docs/decisions.md: Windows are valid for one epoch.
"""

from typing import NamedTuple

from django.conf import settings

from storage.connections import fetch

LEVELS = range(1, 5)
"""Push levels. 1: every follower with an inbox. 4: none."""
FOLLOWEES = range(100_001)
"""Range of `inbox_from`, up to the most followees that a site can allow."""

FORMAT = 2
"""Version of the windows' format. Raise it when the meaning of members changes. During an upgrade, processes of two
formats use different generations, so neither uses the other's windows.
"""

# For statements that use each once. Evaluated once per statement.
GENERATION = f"(SELECT p.generation # {FORMAT} FROM accounts_policy p WHERE p.drawn_on = feedsite_timeline())"
"""The valid generation, or NULL."""
PUSH_LEVEL = "(SELECT p.push_level FROM accounts_policy p)"
INBOX_FROM = "(SELECT p.inbox_from FROM accounts_policy p)"
EPOCH = f"u.window_epoch # {GENERATION}"
"""Epoch that windows of user `u` must have. NULL: use none."""
IN_FORCE = f"""(
    SELECT p.push_level, p.inbox_from,
        CASE WHEN p.drawn_on = feedsite_timeline() THEN p.generation # {FORMAT} END AS generation
    FROM accounts_policy p OFFSET 0)
"""
"""Subquery of push level, `inbox_from` and generation as one row, read once. No row if the table is empty."""


def push_generation_sql(push_level: str = PUSH_LEVEL) -> str:
    """SQL of the push generation of user `u`. It is 0 below the push level."""
    return f"CASE WHEN u.level >= {push_level} THEN u.push_generation ELSE 0 END"


PUSH_GENERATION = push_generation_sql()
"""The push generation of user `u`, as readers and builders compute it. Fan-out has the same rule as a minimum level,
for ranges and sets of active fans (fanout.FanOutWork.minimum_level, active_fans.FANS), and truth.ExpectedPolicy.merges
guesses it.

Fan-out may serve more readers than this, never fewer. Otherwise a window with a push generation would lack items.
"""


def outbox_epoch(user: str = "u") -> str:
    """Epoch that a big-V's outbox must have. NULL: do not use it."""
    return f"{user}.promotion # {GENERATION}"


def has_inbox(user: str = "u", inbox_from: str = INBOX_FROM) -> str:
    """SQL for whether a user has an inbox, shared by fan-out, pages and builders.

    See docs/decisions.md: Readers with few followees have no inbox.
    """
    return f"({user}.level > 0 AND {user}.following_count >= {inbox_from})"


CURRENT = f"SELECT {PUSH_LEVEL}, {INBOX_FROM}, {GENERATION}"


def _new_generation_sql(inbox_from: str) -> str:
    return f"""
    generation = feedsite_draw(), drawn_on = feedsite_timeline(),
    timeline = CASE WHEN {inbox_from} = 0 THEN feedsite_timeline() END
    """


WANTED = ("coalesce(%(push_level)s::int, push_level)", "coalesce(%(inbox_from)s::int, inbox_from)")
CHANGE = f"""
    UPDATE accounts_policy SET push_level = {WANTED[0]}, inbox_from = {WANTED[1]}, {_new_generation_sql(WANTED[1])}
    WHERE (push_level, inbox_from) <> ({WANTED[0]}, {WANTED[1]}) RETURNING id
"""
RENEW = f"UPDATE accounts_policy SET {_new_generation_sql('inbox_from')}"
FOLLOW_TIMELINE = f"""
    INSERT INTO accounts_policy AS p (id, push_level, inbox_from, timeline)
    VALUES (1, %(push_level)s, %(inbox_from)s, CASE WHEN %(inbox_from)s::int = 0 THEN feedsite_timeline() END)
    ON CONFLICT (id) DO UPDATE SET {_new_generation_sql("p.inbox_from")}
    WHERE p.drawn_on IS DISTINCT FROM feedsite_timeline() RETURNING p.id
"""


# The row is missing or of another timeline.
NOT_FOLLOWED = """
    SELECT WHERE NOT EXISTS (SELECT FROM accounts_policy p WHERE p.drawn_on IS NOT DISTINCT FROM feedsite_timeline())
"""


class CurrentPolicy(NamedTuple):
    """The current policy."""

    push_level: int
    """Readers of at least this level receive big-Vs' posts."""
    inbox_from: int
    """Readers with at least this many followees have an inbox. 0: every active reader."""
    generation: int | None
    """None between a failover and `renew_after_failover`: no window is valid."""


class InitialPolicy(NamedTuple):
    """The policy of a new site."""

    push_level: int
    inbox_from: int


def range_words(within: range) -> str:
    """The range, in words."""
    return f"a whole number from {within[0]} to {within[-1]}"


def current() -> CurrentPolicy:
    """Read the policy."""
    return CurrentPolicy(*fetch(CURRENT)[0])


def change(*, push_level: int | None = None, inbox_from: int | None = None) -> bool:
    """Change the policy; None: no change. False if nothing changed. Raises ValueError."""
    for name, value, within in (("push_level", push_level, LEVELS), ("inbox_from", inbox_from, FOLLOWEES)):
        if value is not None and value not in within:
            raise ValueError(f"{name} is {value}; it must be {range_words(within)}")
    return bool(fetch(CHANGE, {"push_level": push_level, "inbox_from": inbox_from}))


def renew_generation() -> None:
    """Draw a new generation, which invalidates all windows."""
    fetch(f"{RENEW} RETURNING id")


def renew_after_failover() -> bool:
    """Draw a new generation if PostgreSQL's timeline changed. Returns whether it did."""
    return bool(fetch(FOLLOW_TIMELINE, initial_policy()._asdict()))


def initial_policy() -> InitialPolicy:
    """The policy of a new site, from settings."""
    return InitialPolicy(settings.BIG_V_PUSH_LEVEL, settings.INBOX_FROM)
