"""The home timeline: the page that merges inbox, pending deliveries and outboxes, verifies, and goes on in
PostgreSQL.

A page costs two SQL queries (context; verify and hydrate), a third where it has reposts (which of them are folded), and
at most two round trips to Redis (read; forget, or ask for a window to be built), whatever the reader follows. Pending
deliveries are read before the windows: an item that was committed is either still pending then, or in the windows by
the time they are read.
"""

import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from accounts import policy
from accounts.models import User
from feedsite import metrics
from feedsite.celery import enqueue
from feedsite.connections import Command, FeedsUnavailableError, feeds, feeds_errors, fetch, pipelined
from feedsite.window import INFINITY, NO_SLICE, Entry, Slice, Window
from items.hydrate import ItemBody, body
from timeline.fold import FOLDED, count_shown, folds
from timeline.hydrate import (
    BELONGS_AT,
    HELD_AT,
    OLDER_AT,
    POSTS,
    PUBLISHED_AT,
    REPOSTS,
    SHOWN_AT,
    verify_bodies,
    verify_ids,
)
from timeline.inbox import Inbox, Tail
from timeline.outbox import Outbox
from timeline.pull import COLUMNS_AT, pull_above, pull_below, pull_bodies

SLACK = 2
"""Candidates that are verified beyond the page: so many may fail before the page needs a second round."""
REFILLS = 3
"""Rounds over the windows before the rest of the page comes from PostgreSQL."""
NARROW = 16
"""Up to so many outboxes are read a whole page deep at once; of more, only `GLANCE` entries first."""
GLANCE = 3
SCAN = 100
"""Entries that PostgreSQL looks through for the rest of a page, should most of them be hidden or folded reposts. At
this bound a page answers short, with `has_more`.
"""
NEW_CAP = 100
NEW_SCAN = 200
"""The same for a count, which says then that there may be more."""
_pages_by_sources: dict[str, Any] = {}

BIG_VS = """
    SELECT ARRAY[v.id, v.promotion] FROM accounts_user v WHERE v.is_big_v AND EXISTS (
        SELECT FROM relations_follow f WHERE f.follower_id = %(reader)s AND f.followee_id = v.id)
"""
CONTEXT = f"""
    WITH scanned AS MATERIALIZED (
        SELECT d.item_id, d.sender_id FROM timeline_delivery d WHERE d.item_id < %(below)s
        ORDER BY d.item_id DESC LIMIT %(pending)s
    )
    SELECT u.level, {policy.has_inbox()}, u.window_epoch, coalesce({policy.GENERATION}, 0), {policy.PUSH_GENERATION},
        ARRAY(
            SELECT scanned.item_id FROM scanned WHERE scanned.sender_id = u.id OR EXISTS (
                SELECT FROM relations_follow f
                WHERE f.follower_id = u.id AND f.followee_id = scanned.sender_id OFFSET 0)
        ),
        CASE WHEN (SELECT count(*) FROM scanned) = %(pending)s THEN (SELECT min(item_id) - 1 FROM scanned) ELSE 0 END,
        CASE WHEN {policy.PUSH_GENERATION} = 0 THEN ARRAY({BIG_VS}) END
    FROM accounts_user u WHERE u.id = %(reader)s
"""  # noqa: S608 (constants)


@dataclass(slots=True)
class Page:
    """A page of a feed. `last_id` is the last id scanned. `has_more` is true if another item exists, or may exist
    beyond the bound of the page's work: such a page is shorter than asked for, or empty.
    """

    items: list[ItemBody]
    last_id: int | None
    has_more: bool
    sources: list[str]


@dataclass(slots=True)
class Context:
    """What PostgreSQL knows of the reader before any window is read."""

    reader: User
    level: int
    has_inbox: bool
    window_epoch: int
    generation: int
    """The policy's; 0: no window is to be used."""
    push_generation: int
    """The reader's, if they take pushes from big-Vs; 0: their pages merge the outboxes."""
    pending: list[int]
    """Items of followed senders whose fan-out is not complete, ..."""
    pending_bound: int
    """... complete above this id."""
    big_vs: list[tuple[int, int]] | None
    """The followed big-Vs with their promotions; None while nobody needed them."""

    @property
    def epoch(self) -> int:
        """What the reader's windows must have been built for, as policy.EPOCH says it."""
        return self.window_epoch ^ self.generation

    @property
    def outboxes(self) -> list[tuple[Outbox, int]]:
        """Of the followed big-Vs, as far as they are known, each with the epoch that it must have been built for."""
        return [(Outbox(big_v), promotion ^ self.generation) for big_v, promotion in self.big_vs or ()]

    @property
    def has_windows(self) -> bool:
        return self.has_inbox and self.generation > 0

    @property
    def has_none(self) -> str:
        """Why there are no windows, as `Walk.missed` says it."""
        return "missing" if self.has_inbox else "few" if self.level else "dormant"


@dataclass(slots=True)
class Walk:
    """A page in the making: what is shown so far, how far down everything was looked at, and what Redis is to be
    told.
    """

    limit: int
    top: int
    """The position at which the page begins, ..."""
    below: int
    """... and the one that it has come to."""
    passed: int = 0
    """Entries of the home from there on, shown, folded or hidden, as far as they were looked at."""
    shown: list[ItemBody] = field(default_factory=list)
    folds: dict[int, int] = field(default_factory=dict)
    """What is known of reposts: how many others each stands for, or that it is folded."""
    scanned: int | None = None
    ended: bool = False
    sources: set[str] = field(default_factory=set)
    mark: str = ""
    """The token under which the tail may be written, where reading it left a mark, ..."""
    floor: int = 0
    """... and the floor of the inbox, at or below which it may begin."""
    news: list[Command] = field(default_factory=list)
    """Lazy deletes and the tail, sent at the end in one round trip with ..."""
    wishes: list[tuple[Inbox | Outbox, int]] = field(default_factory=list)
    """... the windows that were missed, and the epochs that they are wanted for."""

    is_shallow: bool = False
    """Whether the inbox does not take the pushes that the reader's level takes, so it is to be deepened."""
    scans: bool = False
    """Whether what is hidden are reposts, which no stream of PostgreSQL leaves out."""
    more: bool | None = None
    """Whether more follows a full page, where that is known without having seen it."""
    missed: str = ""
    """Why the windows did not suffice: `dormant` (the level has no inbox), `few` (nobody with so few followees
    has one), `missing` (a window is absent, under construction, or of another epoch or run), `floor` (the page reaches
    below one), `hidden` (most of what it holds may not be seen just now), `redis` (no answer).
    """

    @property
    def is_done(self) -> bool:
        return self.ended or self.more is not None or len(self.shown) > self.limit

    @property
    def wanted(self) -> int:
        """Candidates for the rest: one more than the page shows proves that there is more."""
        return self.limit + 1 - len(self.shown) + SLACK

    def look_at(self, entries: int, reader_id: int, *, has_reposts: bool) -> None:
        """Find out which reposts among so many next entries are folded, if any are shown, before they are passed."""
        self.passed += entries
        if has_reposts:
            self.folds = folds(reader_id, last_id=self.top, count=self.passed)

    def scan(self, item_id: int, columns: Sequence[Any] | None, reader_id: int) -> None:
        """Pass an id; `columns` make its body if the reader sees it."""
        if len(self.shown) < self.limit:
            self.scanned = item_id
        self.below = item_id
        if columns is None:
            return
        # One that was pushed out of the count since, by something published above, stands for itself.
        others = self.folds.get(item_id, 0) if columns[10] else 0
        if others == FOLDED:
            return
        item = body(columns, reader_id, "own" if columns[11] == reader_id else "following")
        if columns[10]:
            item.fold(others)
        self.shown.append(item)


@dataclass(slots=True)
class Reading:
    """One round over the windows: candidates newest first, complete above `bound`, and what they came from (what
    the tail holds was pulled by SQL).
    """

    ids: list[int]
    bound: int
    inbox: Slice
    outboxes: list[tuple[Outbox, Slice]]
    sources: set[str]


def home_page(reader: User, *, last_id: int | None = None, limit: int = 20) -> Page:
    """The items below `last_id` (exclusive, need not exist) that the reader's home shows, newest first, at most
    `limit`.

    Exact at every moment, whatever Redis holds or does not hold; without Redis it comes from PostgreSQL.
    """
    top = INFINITY if last_id is None else last_id
    walk = Walk(limit, top, top)
    context = _context(reader, walk.below)
    try:
        if context.has_windows:
            for _ in range(REFILLS):
                if not _from_windows(walk, context):
                    break
        else:
            walk.missed = context.has_none
    except FeedsUnavailableError:
        walk.missed = "redis"
    if not walk.is_done:
        walk.missed = walk.missed or "floor"
        _from_sql(walk, context)
    _count(walk)
    _tell(walk, context)
    return Page(walk.shown[:limit], walk.scanned, bool(walk.more) or len(walk.shown) > limit, sorted(walk.sources))


def new_count(reader: User, *, since_id: int) -> tuple[int, bool]:
    """How many items the reader's home shows above `since_id`, at most `NEW_CAP`, and whether there are more, or may be
    more beyond `NEW_SCAN` entries.
    """
    context = _context(reader, INFINITY)
    walk = Walk(NEW_CAP, INFINITY, INFINITY)
    reading = None
    if context.has_windows:
        with suppress(FeedsUnavailableError):
            reading = _read(walk, context, NEW_CAP + 1)
    _tell(walk, context)
    ids = [item_id for item_id in reading.ids if item_id > since_id] if reading else []
    if reading and (reading.bound <= since_id or len(ids) > NEW_CAP):
        count = count_shown(verify_ids(reader.pk, ids))
        if len(ids) <= NEW_CAP or count > NEW_CAP:
            return min(count, NEW_CAP), count > NEW_CAP
    candidates = pull_above(reader.pk, since=since_id, count=NEW_SCAN, enough=NEW_CAP + 1)
    if candidates is None:
        return NEW_CAP, True
    count = count_shown(candidates)
    return min(count, NEW_CAP), count > NEW_CAP or len(candidates) == NEW_SCAN


def _context(reader: User, below: int) -> Context:
    params = {
        "reader": reader.pk,
        "below": below,
        "pending": settings.PENDING_CAP + 1,
    }
    return Context(reader, *fetch(CONTEXT, params)[0])


def _from_windows(walk: Walk, context: Context) -> bool:
    """Add a round of candidates from the windows, verified; whether the page wants another and the windows may have
    it.
    """
    count = walk.wanted
    reading = _read(walk, context, count)
    if reading is None:
        return False
    # What the windows do not have any more begins below this id.
    below = reading.bound + 1 if reading.bound > 0 and len(reading.ids) < count else 0
    if below and len(reading.ids) < walk.limit - len(walk.shown):
        return False  # a page that reaches below the floor comes from PostgreSQL as a whole: one query, not two
    walk.sources |= reading.sources
    reader_id = context.reader.pk
    rows = verify_bodies(reader_id, reading.ids, below)
    held = {item_id: row for item_id, row in rows.items() if row[BELONGS_AT] and row[HELD_AT]}
    shown = {item_id: row for item_id, row in held.items() if row[SHOWN_AT]}
    walk.look_at(len(held), reader_id, has_reposts=any(row[10] for row in shown.values()))
    for item_id in reading.ids:
        walk.scan(item_id, shown.get(item_id), reader_id)
        if walk.is_done:
            break
    if below and len(walk.shown) == walk.limit and rows:
        older = next(iter(rows.values()))[OLDER_AT]
        walk.more = None if older == REPOSTS else older == POSTS
    walk.ended = not walk.is_done and not below and len(reading.ids) < count
    _forget(walk, context, reading, rows)
    if walk.is_done or below:
        return False
    kept = [row for item_id, row in rows.items() if row[BELONGS_AT] and item_id not in shown]
    if len(kept) > len(reading.ids) // 2:
        walk.missed = "hidden"
        walk.scans = sum(bool(row[10]) for row in kept) > len(kept) // 2
        return False
    return True


def _read(walk: Walk, context: Context, count: int) -> Reading | None:
    """Candidates below `walk.below` from pending deliveries and windows, or None if a window cannot be used."""
    inbox = Inbox(context.reader.pk)
    outboxes = context.outboxes
    depth = count if len(outboxes) <= NARROW else GLANCE
    commands = [inbox.reading(walk.below, count), *(box.reading(walk.below, depth) for box, _ in outboxes)]
    token, tail = "", None
    if walk.below < INFINITY and not outboxes and count <= Tail.LENGTH // 2:
        token = secrets.token_hex(8)
        commands.insert(0, Tail(context.reader.pk).reading(walk.below, count, context.epoch, token))
    with feeds_errors():
        replies = pipelined(feeds(), commands)
        if token:
            tail = Tail.slice(replies.pop(0), count)
        read = Window.slice(replies[0], count, context.epoch)
        if not read.is_usable:
            walk.wishes.append((inbox, context.epoch))
        elif read.pushes != context.push_generation and context.big_vs is None:
            walk.is_shallow = True
            context.big_vs = [(big_v, promotion) for ((big_v, promotion),) in fetch(BIG_VS, {"reader": inbox.user_id})]
            if context.big_vs:
                return _read(walk, context, count)
        elif token and tail is None:
            walk.mark, walk.floor = token, read.floor
        elif token and walk.below <= read.floor + 1:
            return _merged(walk, context, NO_SLICE, [], tail, count)
        slices = [Window.slice(reply, depth, epoch) for reply, (_, epoch) in zip(replies[1:], outboxes, strict=True)]
        missed = [box for box, one in zip(outboxes, slices, strict=True) if not one.is_usable]
        walk.wishes += missed
        if missed or not read.is_usable:
            walk.missed = "missing"
            return None
        if depth < count:
            _read_deeper(outboxes, slices, read, walk, count)
    boxes = [(box, one) for (box, _), one in zip(outboxes, slices, strict=True)]
    return _merged(walk, context, read, boxes, None, count)


def _merged(
    walk: Walk,
    context: Context,
    read: Slice,
    outboxes: list[tuple[Outbox, Slice]],
    tail: tuple[list[int], int] | None,
    count: int,
) -> Reading:
    bound = max(context.pending_bound, tail[1] if tail else read.bound, *(one.bound for _, one in outboxes), 0)
    candidates = set(context.pending)
    candidates.update(tail[0] if tail else read.entries, *(one.entries for _, one in outboxes))
    ids = sorted((item_id for item_id in candidates if bound < item_id < walk.below), reverse=True)[:count]
    sources = {"sql"} if tail else {"inbox"}
    if outboxes:
        sources.add("outbox")
    if not set(context.pending).isdisjoint(ids):
        sources.add("pending")
    return Reading(ids, bound, read, outboxes, sources)


def _read_deeper(outboxes: list[tuple[Outbox, int]], slices: list[Slice], read: Slice, walk: Walk, count: int) -> None:
    """Of many outboxes, read a page deep only those whose glance ended above what the page can reach."""
    newest = sorted({item_id for one in [read, *slices] for item_id in one.entries}, reverse=True)
    reach = newest[count - 1] if len(newest) >= count else 0
    deeper = [place for place, one in enumerate(slices) if one.is_truncated and one.bound >= reach]
    replies = pipelined(feeds(), [outboxes[place][0].reading(walk.below, count) for place in deeper])
    for place, reply in zip(deeper, replies, strict=True):
        slices[place] = Window.slice(reply, count, outboxes[place][1])


def _forget(walk: Walk, context: Context, reading: Reading, rows: dict[int, Sequence[Any]]) -> None:
    """Lazy delete: what does not belong leaves the inbox; what is not published leaves the outboxes too."""
    refused = {item_id for item_id in reading.ids if item_id not in rows or not rows[item_id][BELONGS_AT]}
    if not refused:
        return
    unpublished = {item_id for item_id in refused if item_id not in rows or not rows[item_id][PUBLISHED_AT]}
    windows: list[tuple[Window, Slice, set[int]]] = [(Inbox(context.reader.pk), reading.inbox, refused)]
    windows += [(box, one, unpublished) for box, one in reading.outboxes]
    for window, one, gone in windows:
        members = [
            Entry(item_id, sender_id).member
            for item_id, sender_id in zip(one.entries, one.senders, strict=True)
            if item_id in gone
        ]
        if members:
            walk.news.append(window.forget(members, one))


def _from_sql(walk: Walk, context: Context) -> None:
    """Fill the page from PostgreSQL, and keep what was pulled beyond it as the tail.

    One pull serves almost every page. Where it meets so many hidden or folded reposts that the page is not full, one
    more looks through `SCAN` entries and hydrates only what is shown; where the windows have met hidden reposts, that
    one alone.
    """
    walk.sources.add("sql")
    reader_id = context.reader.pk
    if walk.scans and not walk.mark:
        _scan_sql(walk, reader_id)
        return
    bodies = walk.wanted
    count = max(Tail.LENGTH, bodies + 1)
    rows = pull_bodies(reader_id, below=walk.below, count=count, bodies=bodies, for_window=bool(walk.mark))
    if walk.mark and rows:
        floor = rows[-1][0] - 1 if len(rows) == count else 0
        entries = [Entry(row[0], row[1]) for row in rows]
        top = min(walk.below, walk.floor + 1)
        walk.news.append(Tail(reader_id).complete(walk.mark, context.epoch, floor, top, entries))
        walk.mark = ""
    held = [row for row in rows[:bodies] if row[2]]
    walk.look_at(len(held), reader_id, has_reposts=any(row[3] and row[COLUMNS_AT + 10] for row in held))
    for row in rows[:bodies]:
        walk.scan(row[0], row[COLUMNS_AT:] if row[2] and row[3] else None, reader_id)
        if walk.is_done:
            return
    walk.ended = len(rows) <= bodies
    if not walk.ended:
        _scan_sql(walk, reader_id)


def _scan_sql(walk: Walk, reader_id: int) -> None:
    """Look through the next `SCAN` entries for the rest of the page, which ends with them, full or not."""
    candidates = pull_below(reader_id, below=walk.below, count=SCAN)
    walk.look_at(len(candidates), reader_id, has_reposts=any(one.is_shown and one.repost_of for one in candidates))
    shown = [one.item_id for one in candidates if one.is_shown and walk.folds.get(one.item_id) != FOLDED]
    wanted = shown[: walk.wanted]
    end = wanted[-1] if len(wanted) < len(shown) else 0
    rows = verify_bodies(reader_id, wanted)
    for item_id, _, _ in candidates:
        row = rows.get(item_id)
        walk.scan(item_id, row if row and row[BELONGS_AT] and row[HELD_AT] and row[SHOWN_AT] else None, reader_id)
        if walk.is_done:
            return
        if item_id == end:
            break
    walk.ended = not end and len(candidates) < SCAN
    walk.more = None if walk.ended else True


def _count(walk: Walk) -> None:
    """Note what served the page; labels are looked up once, for counting must cost a page nothing."""
    sources = ",".join(sorted(walk.sources)) or "none"
    if sources not in _pages_by_sources:
        _pages_by_sources[sources] = metrics.home_pages.labels(sources)
    _pages_by_sources[sources].inc()
    if walk.missed and "sql" in walk.sources:
        metrics.home_misses.labels(walk.missed).inc()


def _tell(walk: Walk, context: Context) -> None:
    """Tell Redis what the page found out. Nothing of it matters to the reader, so nothing of it can fail the page."""
    wishes = [(window, window.builder, epoch, secrets.token_hex(8)) for window, epoch in walk.wishes]
    commands = [window.begin(token, epoch) for window, _, epoch, token in wishes]
    inbox = Inbox(context.reader.pk)
    if walk.is_shallow:
        commands.append(inbox.begin_deepening(context.epoch))
    if not (commands or walk.news):
        return
    try:
        with feeds_errors():
            replies = pipelined(feeds(), [*commands, *walk.news])
    except FeedsUnavailableError:
        return
    # However many readers ask at once, one of them begins, and one task builds.
    for (window, builder, _, token), began in zip(wishes, replies, strict=False):
        if began:
            enqueue(builder, window.user_id, token)
    if walk.is_shallow and (deepening := replies[len(wishes)]):
        enqueue("timeline.deepen_inbox", inbox.user_id, deepening.decode())
