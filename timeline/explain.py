"""Explains a reader's home: which windows there are and what they are worth, what would serve the next page and what
that costs, and why an item is, or is not, in it.

Explaining changes nothing: PostgreSQL is asked in a transaction that only reads, windows are looked at without
lengthening their life, and nothing is forgotten, enqueued or noted. An item's verdict is taken from the texts with
which pages are verified (timeline.hydrate, timeline.pull), and each reason is one of their conditions by its name.
"""

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection, transaction

from accounts import policy
from accounts.models import User
from items.visibility import original_visible
from relations import rules
from storage import keys
from storage.connections import FeedsUnavailableError, count_asked, feeds, feeds_errors, fetch, pipelined, script
from storage.window import INFINITY, RUN, Entry, only_looking, to_number, to_score
from timeline.explanation import Box, Explanation, ItemVerdict, NextPage, Policy, Reader, Window
from timeline.fold import FOLDED, REACH, folds
from timeline.home import walked
from timeline.pull import around
from timeline.rules import BELONGS, HELD, holds, kinds, original_shown, reposts_wanted

SHOWN = 20
"""Outboxes, and pending deliveries, that are told one by one."""
WARM, RUNS = 6, 5
"""Pages that are made so that plans and scripts are kept as in a process at work, and those that are measured then."""
PAGE = 20
"""Items of the page that is measured."""

# KEYS[1]. Replies nil where there is no such key, else whether it is of this run, the scores of `floor`, `epoch` and
# `pushes`, entries above the floor, whether it is under construction, and the seconds that it will live.
GLANCE = script(
    RUN
    + """
    local key = KEYS[1]
    if redis.call('EXISTS', key) == 0 then return false end
    local floor = redis.call('ZSCORE', key, 'floor')
    local entries, builds = 0, false
    if floor and floor ~= 'inf' then entries = redis.call('ZCOUNT', key, '(' .. floor, '(inf') end
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', key, 'inf', 'inf')) do
        builds = builds or string.sub(member, 1, 6) == 'build:'
    end
    local is_current = redis.call('ZSCORE', key, run()) ~= false
    return {is_current and 1 or 0, floor, redis.call('ZSCORE', key, 'epoch'), redis.call('ZSCORE', key, 'pushes'),
        entries, builds and 1 or 0, redis.call('TTL', key)}
    """
)
STANDING = f"""
    SELECT u.level, u.last_seen_at, u.is_active, u.following_count, {policy.has_inbox()}, {policy.EPOCH},
        {policy.PUSH_GENERATION}, {policy.PUSH_LEVEL}, {policy.INBOX_FROM}, {policy.GENERATION}
    FROM accounts_user u WHERE u.id = %(reader)s
"""  # noqa: S608 (constants)
BIG_VS = f"""
    SELECT u.id, u.username, {policy.OUTBOX_EPOCH}, count(*) OVER ()
    FROM ({rules.followed_big_vs(rules.READER, "v.*")}) u ORDER BY u.id LIMIT %(shown)s
"""  # noqa: S608 (constants)
# As pages look for them: among the newest of the whole site.
PENDING = f"""
    WITH scanned AS MATERIALIZED (
        SELECT d.item_id, d.sender_id, d.parked_at FROM timeline_delivery d ORDER BY d.item_id DESC LIMIT %(pending)s
    )
    SELECT item_id, parked_at IS NOT NULL FROM scanned
    WHERE sender_id = %(reader)s OR {rules.follows(rules.READER, "scanned.sender_id")} ORDER BY item_id DESC
"""  # noqa: S608
# Conditions by their names: on every item, and on those of others.
OF_ALL = kinds() | {
    "original": original_visible("i"),
    "original_muted": f"(NOT {original_visible('i')} OR {original_shown('i')})",
}
OF_OTHERS = (
    {"not_followed": rules.follows(rules.READER, "i.sender_id")}
    | rules.wanted_at_home(rules.READER, "i.sender_id")
    | {"reposts_left_out": reposts_wanted()}
    | holds()
)
CONDITIONS = OF_ALL | {name: f"(i.sender_id = %(reader)s OR {text})" for name, text in OF_OTHERS.items()}
ITEM = f"""
    SELECT {BELONGS}, {HELD}, {original_shown("i")}, i.sender_id, s.username, s.is_big_v, i.status, i.visibility,
        i.repost_of_id, d.item_id IS NOT NULL, d.parked_at IS NOT NULL, {policy.OUTBOX_EPOCH.replace("u.", "s.")},
        ARRAY[{", ".join(CONDITIONS.values())}]
    FROM items_item i JOIN accounts_user s ON s.id = i.sender_id LEFT JOIN timeline_delivery d ON d.item_id = i.id
    WHERE i.id = %(item)s
"""  # noqa: S608 (constants)


class _Standing(NamedTuple):
    """A row of `STANDING`: what decides on the reader's windows."""

    level: int
    seen_at: datetime | None
    is_active: bool
    following: int
    has_inbox: bool
    epoch: int | None
    push_generation: int
    push_level: int
    inbox_from: int
    generation: int | None

    @property
    def why_no_inbox(self) -> str:
        """The state of an inbox that none expects; "" where there should be one."""
        if self.generation is None:
            return "no_generation"
        if self.has_inbox:
            return ""
        return "few_followees" if self.level else "dormant"


class _BigV(NamedTuple):
    """A row of `BIG_VS`: one whom the reader follows, and how many these are in all."""

    id: int
    username: str
    epoch: int | None
    total: int


class _Pending(NamedTuple):
    """A row of `PENDING`."""

    item_id: int
    is_parked: bool


class _Asked(NamedTuple):
    """A row of `ITEM`: what the home makes of the item."""

    belongs: bool
    is_held: bool
    has_shown_original: bool
    sender_id: int
    sender: str
    is_big_v: bool
    status: str
    visibility: str
    repost_of: int | None
    is_pending: bool
    is_parked: bool
    outbox_epoch: int | None
    holds: list[bool]
    """Whether each of `CONDITIONS` holds."""


def explain_home(reader: User, *, item_id: int | None = None) -> Explanation:
    """Explain the home of a reader, and an item in it. Bounded work, whatever the reader follows."""
    with _reading_only():
        # In the order in which a delivery moves: what is pending no more is in the windows by the time they are read.
        standing = fetch(STANDING, {"reader": reader.pk}, into=_Standing._make)[0]
        big_vs = fetch(BIG_VS, {"reader": reader.pk, "shown": SHOWN}, into=_BigV._make)
        cap = settings.PENDING_CAP + 1
        pending = fetch(PENDING, {"reader": reader.pk, "pending": cap}, into=_Pending._make)
        found: list[_Asked] = []
        if item_id is not None:
            found = fetch(ITEM, {"reader": reader.pk, "item": item_id}, into=_Asked._make)
        own = keys.inbox(reader.pk)
        windows = _windows({own: standing.epoch} | {keys.outbox(big_v.id): big_v.epoch for big_v in big_vs})
        inbox = windows[own]
        if none := standing.why_no_inbox:
            inbox.state = none
        merges = standing.push_generation == 0 or inbox.pushes != standing.push_generation
        item = None
        if item_id is not None:
            item = _verdict(reader, item_id, found, inbox, merges=merges)
        next_page = _next_page(reader)
    return Explanation(
        reader=Reader(
            str(reader.pk),
            reader.username,
            standing.is_active,
            standing.level,
            standing.seen_at,
            standing.following,
            standing.push_generation,
        ),
        policy=Policy(standing.push_level, standing.inbox_from, standing.generation),
        inbox=inbox,
        merging="unused" if inbox.state != "in_use" else "merged" if merges else "pushed",
        big_vs=big_vs[0].total if big_vs else 0,
        outboxes=[Box(str(big_v.id), big_v.username, windows[keys.outbox(big_v.id)]) for big_v in big_vs],
        pending=len(pending),
        is_pending_capped=len(pending) == cap,
        pending_items=[str(delivery.item_id) for delivery in pending[:SHOWN]],
        parked=sum(delivery.is_parked for delivery in pending),
        next_page=next_page,
        item=item,
    )


@contextmanager
def _reading_only() -> Iterator[None]:
    """A transaction, or a part of the caller's, in which PostgreSQL refuses to write."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
        yield


# --- Windows ---------------------------------------------------------------------------------------------
def _windows(epochs: Mapping[str, int | None]) -> dict[str, Window]:
    """The windows of these keys, with the epochs that they must have been built for; one round trip."""
    commands: list[Any] = []
    for key in epochs:
        commands += [("EVALSHA", GLANCE, 1, key), ("MEMORY", "USAGE", key, "SAMPLES", 0)]
    try:
        with feeds_errors():
            replies = pipelined(feeds(), commands)
    except FeedsUnavailableError:
        return {key: Window(key, "unavailable", expected_epoch=epoch) for key, epoch in epochs.items()}
    glances, sizes = replies[::2], replies[1::2]
    return {
        key: _window(key, epoch, glance, size)
        for (key, epoch), glance, size in zip(epochs.items(), glances, sizes, strict=True)
    }


def _window(key: str, expected: int | None, glance: list[Any] | None, size: int | None) -> Window:
    if glance is None:
        return Window(key, "missing", expected_epoch=expected)
    is_current, floor_score, epoch_score, pushes, entries, builds, life = glance
    floor = to_score(floor_score) if floor_score else None
    epoch = to_number(epoch_score) if epoch_score else None
    if expected is None:
        state = "no_generation"
    elif floor is None:
        state = "no_floor"
    elif not is_current:
        state = "other_run"
    elif epoch != expected:
        state = "other_epoch"
    elif builds or floor == INFINITY:
        state = "building"
    else:
        state = "in_use"
    return Window(
        key,
        state,
        entries=entries,
        floor=None if floor in (None, INFINITY) else str(floor),
        epoch=epoch,
        expected_epoch=expected,
        is_of_this_run=bool(is_current),
        pushes=to_number(pushes),
        bytes=size,
        seconds_to_live=life,
    )


# --- An item ---------------------------------------------------------------------------------------------
def _verdict(reader: User, item_id: int, found: Sequence[_Asked], inbox: Window, *, merges: bool) -> ItemVerdict:
    if not found:
        return ItemVerdict(str(item_id), is_shown=False, reasons=["absent"])
    item = found[0]
    verdict = ItemVerdict(
        str(item_id),
        is_shown=bool(item.belongs and item.is_held and item.has_shown_original),
        reasons=[name for name, holds in zip(CONDITIONS, item.holds, strict=True) if not holds],
        status=item.status,
        visibility=item.visibility,
        sender=item.sender,
        repost_of=None if item.repost_of is None else str(item.repost_of),
        is_pending=item.is_pending,
        is_parked=item.is_parked,
    )
    if item.repost_of is not None and verdict.is_shown:
        _fold(verdict, reader, item_id, item.repost_of)
    outbox = None
    if item.is_big_v:
        key = keys.outbox(item.sender_id)
        outbox = _windows({key: item.outbox_epoch})[key]
    verdict.in_inbox = _holds(inbox, item_id, item.sender_id)
    verdict.in_outbox = _holds(outbox, item_id, item.sender_id) if outbox else False
    if inbox.state == "in_use":
        verdict.is_above_floor = item_id > int(inbox.floor or 0)
    if verdict.is_shown:
        verdict.place = _place(verdict, item_id, inbox, outbox if merges else None)
    return verdict


def _fold(verdict: ItemVerdict, reader: User, item_id: int, repost_of: int) -> None:
    """Whether a repost is folded, as pages ask it."""
    others = folds(reader.pk, last_id=item_id + 1, count=1).get(item_id, 0)
    if others != FOLDED:
        verdict.stands_for = others
        return
    verdict.is_shown = False
    verdict.reasons.append("folded")
    entries = around(reader.pk, last_id=item_id + 1, above=REACH, below=1 + REACH)
    same = [one for one, root in entries if root == repost_of and one > item_id]
    if any(one == repost_of for one, _ in entries):
        verdict.folded_into = str(repost_of)
    elif same:
        verdict.folded_into = str(min(same))


def _holds(window: Window, item_id: int, sender_id: int) -> bool | None:
    """Whether a window has the entry, used or not."""
    if window.state == "unavailable":
        return None
    try:
        with feeds_errors():
            (score,) = pipelined(feeds(), [("ZSCORE", window.key, Entry(item_id, sender_id).member)])
    except FeedsUnavailableError:
        return None
    return score is not None


def _place(verdict: ItemVerdict, item_id: int, inbox: Window, outbox: Window | None) -> str:
    """Where pages find an item that is shown. `outbox`: the one that pages merge, if its sender is a big-V."""
    if verdict.is_pending:
        return "pending"
    if inbox.state != "in_use" or item_id <= int(inbox.floor or 0):
        return "sql"
    if verdict.in_inbox:
        return "inbox"
    if outbox is None:
        return "lost"
    if outbox.state != "in_use" or item_id <= int(outbox.floor or 0):
        return "sql"
    return "outbox" if verdict.in_outbox else "lost"


# --- The next page ---------------------------------------------------------------------------------------
def _next_page(reader: User) -> NextPage:
    """Make the first page as a request would, but tell Redis nothing of it; the median of several times."""
    times = []
    for _run in range(WARM + RUNS):
        with count_asked() as asked, only_looking():
            begin = time.perf_counter()
            walk = walked(reader, last_id=None, limit=PAGE)
            times.append(time.perf_counter() - begin)
    return NextPage(
        sources=sorted(walk.findings.sources),
        missed=walk.findings.missed or "" if "sql" in walk.findings.sources else "",
        items=len(walk.progress.shown[:PAGE]),
        statements=asked.statements,
        round_trips=asked.round_trips,
        milliseconds=round(1000 * statistics.median(times[WARM:]), 2),
    )
