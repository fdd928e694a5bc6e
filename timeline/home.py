"""The home timeline: a page merges inbox, outboxes and pending deliveries, verifies, and continues in PostgreSQL.

One round trip reads the windows (timeline.reading), one SQL statement verifies (timeline.truth). Merged outboxes and
reposts cost one more each. If a delivery was completed in between, the page reads the windows again.

See docs/decisions.md: A page looks through a bounded number of rows.
See docs/decisions.md: Windows first, then one statement.
See docs/decisions.md: A followed hashtag is an outbox.
See docs/decisions.md: Experiments that were not worth it.
"""

import secrets
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from accounts.models import User
from items.bodies import ItemBody
from items.hydrate import ItemRow, as_met, body
from items.models import Context
from runtime import metrics
from storage.connections import Command, FeedsUnavailableError, feeds, feeds_errors, pipelined
from storage.window import INFINITY, Entry, Slice, Window
from timeline.fold import FOLDED, count_new, folds, folds_and_originals
from timeline.hydrate import MAYBE, POSTS, Verified, verify_bodies, verify_ids
from timeline.inbox import Inbox, Tail, deepen
from timeline.outbox import Outbox
from timeline.pull import Pulled, pull_above, pull_below, pull_bodies
from timeline.reading import Reading, are_too_many, doubting, hint_of, hinting, look
from timeline.senders import Scope
from timeline.truth import Missed, Truth, ask, expected

SLACK = 1
"""Extra candidates to verify. This many may fail before the page needs a second round."""
REFILLS = 3
"""Rounds over the windows before the rest of the page comes from PostgreSQL."""
SCAN = 100
"""Entries that PostgreSQL checks for the rest of a page. A page that hits this bound is short, with `has_more`."""
NEW_CAP = 100
NEW_SCAN = 200
"""The most new items to count, and the entries to check for that. At either bound there may be more."""
_pages_by_sources: dict[str, Any] = {}


@dataclass(slots=True)
class Page:
    """One page of a home or list. `last_id`: the last id checked. `has_more`: more items follow, or may follow."""

    items: list[ItemBody]
    last_id: int | None
    has_more: bool
    sources: list[str]
    others: dict[str, int] = field(default_factory=dict)
    """By id of a repost: how many other reposts of the same item are folded into it. Only if there are any."""


@dataclass(slots=True)
class Progress:
    """The items found so far, and the id down to which everything is checked."""

    scope: Scope
    limit: int
    top: int
    """The page shows items below this id."""
    below: int = field(init=False)
    """Everything between `top` and this id, including this id, was checked."""
    passed: int = 0
    """Entries checked since `top`: shown, folded or hidden."""
    shown: list[ItemBody] = field(default_factory=list)
    """Items for the page, newest first. One beyond `limit` proves that there is more."""
    others: dict[str, int] = field(default_factory=dict)
    """By id of a shown repost: how many others are folded into it. Only if there are any."""
    folds: dict[int, int] = field(default_factory=dict)
    """By repost: how many others are folded into it, or `FOLDED`."""
    scanned: int | None = None
    """The page's `last_id`: the last id checked before the page was full."""
    ended: bool = False
    """Whether the home has nothing below `below`."""
    more: bool | None = None
    """Whether another item follows a full page. None if unknown."""

    def __post_init__(self) -> None:
        self.below = self.top

    @property
    def reader_id(self) -> int:
        """The reader's id."""
        return self.scope.reader_id

    @property
    def is_done(self) -> bool:
        """Whether the home has ended, or the page knows whether more items follow."""
        return self.ended or self.more is not None or len(self.shown) > self.limit

    @property
    def is_full(self) -> bool:
        """Whether the page has all its items."""
        return len(self.shown) >= self.limit

    @property
    def room(self) -> int:
        """The number of items that the page still needs."""
        return self.limit - len(self.shown)

    @property
    def wanted(self) -> int:
        """How many candidates to read: those still needed, one that proves more items, and some spare ones."""
        return self.room + 1 + SLACK

    def find_folds(self, entries: int, *, has_reposts: bool) -> None:
        """Count `entries` as checked. Find the folds if reposts are shown."""
        self.passed += entries
        if has_reposts:
            self.folds = folds(self.scope, last_id=self.top, count=self.passed)

    def find_folds_of(self, entries: Sequence[Verified]) -> dict[int, Verified]:
        """`find_folds` for verified entries. Returns reposts whose originals it read."""
        reposts = [row.item.id for row in entries if row.item.is_repost]
        if all(row.has_shown_original is not None for row in entries):
            self.find_folds(len(entries), has_reposts=any(row.is_shown and row.item.is_repost for row in entries))
            return {}
        self.passed += len(entries)
        self.folds, verified = folds_and_originals(self.scope, last_id=self.top, count=self.passed, reposts=reposts)
        return verified

    def add(self, item_id: int, row: ItemRow | None, tag: str = "") -> None:
        """Check off an id. `row`: the item if shown. `tag`: the hashtag if that alone shows it."""
        if not self.is_full:
            self.scanned = item_id
        self.below = item_id
        if row is None:
            return
        # A repost unknown to `find_folds`, published in the meantime, stands for itself.
        others = self.folds.get(item_id, 0) if row.is_repost else 0
        if others == FOLDED:
            return
        reason = f"#{tag}" if tag else "own" if row.said.sender_id == self.reader_id else "following"
        item = body(row, self.reader_id, reason)
        if others:
            self.others[item.id] = others
        if row.is_repost and item.reason != "own":
            item.reason = _reposted_by(item.sender.name, others)
        self.shown.append(item)


@dataclass(slots=True)
class Findings:
    """What a page learned about the reader's windows."""

    truth: Truth | None = None
    """The last answer of timeline.truth, if the page read windows."""
    sources: set[str] = field(default_factory=set)
    """What served the page, for the header X-Feed-Source."""
    missed: Missed | None = None
    """Why the windows did not suffice."""
    hinted: set[int] | None = None
    """The outboxes that were read because the hint in Redis named them."""
    tail_token: str = ""
    """Token needed to write the tail. Empty if the tail was found."""
    inbox_floor: int = 0
    """The inbox's floor, if there is a token. The tail begins at or below it."""
    commands: list[Command] = field(default_factory=list)
    """Lazy deletes, the tail and the hint, to send to Redis."""
    missing: list[tuple[Inbox | Outbox, int]] = field(default_factory=list)
    """The windows to build, each with its epoch."""
    is_shallow: bool = False
    """Whether the reader's level takes pushes that the inbox does not, so that it must be deepened."""
    hides_entries: bool = False
    """Whether most of the hidden items are entries (reposts, posts by hashtags alone). PostgreSQL's streams cannot skip
    those, so the page scans for the rest.
    """


@dataclass(slots=True)
class Walk:
    """A page of a home or list in the making."""

    reader: User
    progress: Progress
    findings: Findings = field(default_factory=Findings)

    @classmethod
    def of(cls, reader: User, limit: int, last_id: int | None = None, list_id: int = 0) -> "Walk":
        """A walk that starts below `last_id`, or at the top."""
        scope = Scope(reader.pk, list_id) if list_id else Scope.home_of(reader)
        return cls(reader, Progress(scope, limit, INFINITY if last_id is None else last_id))


def _reposted_by(name: str, others: int) -> str:
    return f"{name} reposted" if not others else f"{name} and {others} other{'s' * (others > 1)} reposted"


def home_page(reader: User, *, last_id: int | None = None, limit: int = 20) -> Page:
    """The items of the reader's home below `last_id` (exclusive, need not exist), newest first.

    Exact at every moment, whatever Redis holds. Without Redis the page comes from PostgreSQL.
    """
    walk = walked(reader, last_id=last_id, limit=limit)
    _count(walk.findings)
    _write_findings(walk)
    return page_of(walk)


def page_of(walk: Walk) -> Page:
    """The page from a finished walk."""
    progress = walk.progress
    has_more = bool(progress.more) or len(progress.shown) > progress.limit
    items = as_met(progress.shown[: progress.limit], walk.reader, Context.HOME)
    return Page(items, progress.scanned, has_more, sorted(walk.findings.sources), progress.others)


def walked(reader: User, *, last_id: int | None, limit: int) -> Walk:
    """Make a page without writing its findings."""
    walk = Walk.of(reader, limit, last_id)
    findings = walk.findings
    if expected.has_inbox(reader):
        try:
            for _ in range(REFILLS):
                if not _from_windows(walk):
                    break
        except FeedsUnavailableError:
            findings.missed = Missed.REDIS
    else:
        findings.missed = Missed.FEW if reader.level else Missed.DORMANT
    if not walk.progress.is_done:
        findings.missed = findings.missed or Missed.FLOOR
        from_sql(walk)
    return walk


def new_count(reader: User, *, since_id: int) -> tuple[int, bool]:
    """How many items home shows above `since_id`, without own reposts, and whether there may be more."""
    walk = Walk.of(reader, NEW_CAP)
    found: list[int] = []
    bound = INFINITY
    if expected.has_inbox(reader):
        with suppress(FeedsUnavailableError):
            read = _read_windows(walk, NEW_CAP + 1)
            truth = _verify(walk, read, []) if read else None
            if read and truth and (reading := _usable(walk, read, truth)):
                found = [one for one in reading.candidates(truth.pending, truth.pending_bound) if one > since_id]
                bound = max(reading.bound, truth.pending_bound)
    _write_findings(walk)
    scope = walk.progress.scope
    if bound <= since_id or len(found) > NEW_CAP:
        count = count_new(scope, verify_ids(scope, found))
        if len(found) <= NEW_CAP or count > NEW_CAP:
            return min(count, NEW_CAP), count > NEW_CAP
    candidates = pull_above(scope, since=since_id, count=NEW_SCAN, enough=NEW_CAP + 1)
    if candidates is None:
        return NEW_CAP, True
    count = count_new(scope, candidates)
    return min(count, NEW_CAP), count > NEW_CAP or len(candidates) == NEW_SCAN


# --- From the windows ------------------------------------------------------------------------------------
def _from_windows(walk: Walk) -> bool:
    """Add items from the windows to the page. True if another round makes sense.

    A page that reaches below the windows' bound is left to PostgreSQL: one query instead of two.
    """
    progress, findings = walk.progress, walk.findings
    count, room = progress.wanted, progress.room
    read = _read_windows(walk, count)
    if read is None:
        return False
    ids = read.candidates()
    below = asked_below = read.below(ids)
    if below and len(ids) < room:
        ids, asked_below = [], 0
    truth = _verify(walk, read, ids, asked_below)
    reading = _usable(walk, read, truth)
    if reading is None:
        return False
    asked = set(ids)
    ids = reading.candidates(truth.pending, truth.pending_bound)
    below = reading.below(ids, truth.pending_bound)
    if below and len(ids) < room:
        return False
    findings.sources.update(reading.sources(ids, truth.pending))
    new = [item_id for item_id in ids if item_id not in truth.rows and item_id not in asked]
    rows = truth.rows | verify_bodies(progress.scope, new)
    rows = _show(progress, ids, rows)
    if below and below == asked_below and len(progress.shown) == progress.limit and truth.rows:
        older = next(iter(truth.rows.values())).older
        progress.more = None if older == MAYBE else older == POSTS
    progress.ended = not progress.is_done and not below and len(ids) < count
    _forget(walk, read, ids, rows)
    if progress.is_done or below:
        return False
    hidden = [rows[item_id] for item_id in ids if item_id in rows and rows[item_id].is_hidden]
    if len(hidden) > len(ids) // 2:
        findings.missed = Missed.HIDDEN
        findings.hides_entries = sum(row.is_entry for row in hidden) > len(hidden) // 2
        return False
    return True


def _verify(walk: Walk, read: Reading, ids: Sequence[int], below: int = 0) -> Truth:
    truth = walk.findings.truth = ask(
        walk.progress.reader_id,
        ids,
        read.senders if ids else (),
        before=read.before,
        count=read.count,
        pushes=read.inbox.pushes,
        below=below,
        has_tags=walk.progress.scope.has_tags,
    )
    return truth


def _show(progress: Progress, ids: Sequence[int], rows: dict[int, Verified]) -> dict[int, Verified]:
    """Add the candidates to the page. Returns the rows, with originals of reposts."""
    entries = [rows[item_id] for item_id in ids if item_id in rows and rows[item_id].is_entry]
    rows = rows | progress.find_folds_of(entries)
    for item_id in ids:
        _pass(progress, item_id, rows)
        if progress.is_done:
            break
    return rows


def _pass(progress: Progress, item_id: int, rows: Mapping[int, Verified]) -> None:
    row = rows.get(item_id)
    if row and row.is_shown:
        progress.add(item_id, row.item, row.tag)
    else:
        progress.add(item_id, None)


def _read_windows(walk: Walk, count: int) -> Reading | None:
    """Read the inbox (or its tail) and the outboxes. None if a pull costs less than merging the outboxes."""
    reader, findings, truth, scope = walk.reader, walk.findings, walk.findings.truth, walk.progress.scope
    if truth:
        sources: Collection[int] = truth.outboxes
    else:
        findings.hinted = hint_of(reader.pk) if scope.has_tags or expected.merges(reader) else None
        sources = findings.hinted or ()
    if are_too_many(sources, reader):
        findings.missed = Missed.OUTBOXES
        if not truth:
            findings.commands.append(doubting(reader.pk))
        return None
    epoch = truth.epoch if truth else None
    return look(scope, before=walk.progress.below, count=count, sources=sources, epoch=epoch or 0)


def _usable(walk: Walk, read: Reading, truth: Truth) -> Reading | None:
    """The windows' content if it can serve the page, else None. `findings.missed` says why not.

    Reads the windows again if a delivery was completed since the first reading.
    """
    reader, findings = walk.reader, walk.findings
    if not truth.has_windows:
        findings.missed = truth.why_no_windows
        return None
    reading = read
    findings.is_shallow = _is_shallow(read, truth)
    if read.inbox.epoch == truth.epoch and not read.is_current(truth):
        if are_too_many(truth.outboxes, reader):
            findings.missed = Missed.OUTBOXES
            return None
        # `newest`: of two items published since, the windows may hold only the second.
        reading = look(
            walk.progress.scope,
            before=read.before,
            count=read.count,
            sources=truth.outboxes,
            epoch=truth.epoch,
            newest=truth.newest,
        )
    reading = reading.of(truth)
    missing = reading.missing(reader.pk, truth)
    findings.missing += missing
    findings.is_shallow = _is_shallow(reading, truth)
    if missing or not reading.is_whole(truth):
        findings.missed = Missed.MISSING
        return None
    if reading.token:
        findings.tail_token, findings.inbox_floor = reading.token, reading.inbox.floor
    return reading


def _is_shallow(reading: Reading, truth: Truth) -> bool:
    return reading.inbox.epoch == truth.epoch and truth.push_generation not in (0, reading.inbox.pushes)


def _forget(walk: Walk, read: Reading, ids: Sequence[int], rows: Mapping[int, Verified]) -> None:
    """Prepare commands that remove entries from windows in which they no longer belong.

    `read` is the first reading: a window forgets only for a limited time after it.
    """
    refused = {item_id for item_id in ids if item_id not in rows or not rows[item_id].belongs}
    unpublished = {item_id for item_id in refused if item_id not in rows or not rows[item_id].is_published}
    windows: list[tuple[Window, Slice, set[int]]] = []
    if refused:
        windows = [(Inbox(walk.progress.reader_id), read.inbox, refused)]
    for source, one in read.outboxes.items():
        if source > 0:
            windows.append((Outbox(source), one, unpublished))
        elif truth := walk.findings.truth:
            windows.append((Outbox(source), one, _without(truth, source, one)))
    for window, one, gone in windows:
        members = [
            Entry(item_id, sender_id).member
            for item_id, sender_id in zip(one.entries, one.senders, strict=True)
            if item_id in gone
        ]
        if members:
            walk.findings.commands.append(window.forget(members, one))


def _without(truth: Truth, source: int, read: Slice) -> set[int]:
    """Verified items of a hashtag's outbox that no longer have the hashtag."""
    tag = truth.tags.get(source)
    found = ((item_id, truth.rows.get(item_id)) for item_id in read.entries if tag)
    return {item_id for item_id, row in found if row and tag not in (row.tags or ())}


# --- From PostgreSQL -------------------------------------------------------------------------------------
def from_sql(walk: Walk) -> None:
    """Fill the page from PostgreSQL, and keep the rows beyond it as the tail.

    Scans if hidden or folded entries leave one pull short, or if most items in the windows were hidden.
    """
    progress, findings = walk.progress, walk.findings
    findings.sources.add("sql")
    if findings.hides_entries and not findings.tail_token:
        _scan(progress)
        return
    bodies, for_tail = progress.wanted, bool(findings.tail_token)
    count = max(Tail.LENGTH, bodies + 1) if for_tail else bodies + 1
    rows = pull_bodies(progress.scope, below=progress.below, count=count, bodies=bodies, for_window=for_tail)
    _keep_tail(walk, rows, count)
    if rows:
        expected.inbox_from = rows[0].inbox_from
    held = [row for row in rows[:bodies] if row.is_held]
    progress.find_folds(len(held), has_reposts=any(row.shown and row.shown.is_repost for row in held))
    for row in rows[:bodies]:
        progress.add(row.item_id, row.shown, row.tag)
        if progress.is_done:
            return
    progress.ended = len(rows) <= bodies
    if not progress.ended:
        _scan(progress)


def _keep_tail(walk: Walk, rows: Sequence[Pulled], count: int) -> None:
    progress, findings = walk.progress, walk.findings
    if not (findings.tail_token and rows and findings.truth and findings.truth.epoch):
        return
    floor = rows[-1].item_id - 1 if len(rows) == count else 0
    entries = [Entry(row.item_id, row.sender_id) for row in rows]
    top = min(progress.below, findings.inbox_floor + 1)
    tail = Tail(progress.reader_id)
    findings.commands.append(tail.complete(findings.tail_token, findings.truth.epoch, floor, top, entries))
    findings.tail_token = ""


def _scan(progress: Progress) -> None:
    candidates = pull_below(progress.scope, below=progress.below, count=SCAN)
    progress.find_folds(len(candidates), has_reposts=any(one.is_shown and one.repost_of for one in candidates))
    shown = [one.item_id for one in candidates if one.is_shown and progress.folds.get(one.item_id) != FOLDED]
    wanted = shown[: progress.wanted]
    end = wanted[-1] if len(wanted) < len(shown) else 0
    rows = verify_bodies(progress.scope, wanted)
    for item_id, _, _ in candidates:
        _pass(progress, item_id, rows)
        if progress.is_done:
            return
        if item_id == end:
            break
    progress.ended = not end and len(candidates) < SCAN
    progress.more = None if progress.ended else True


# --- After the page --------------------------------------------------------------------------------------
def _count(findings: Findings) -> None:
    """Count the page in the metrics. Caches metric labels, which take long to look up."""
    sources = ",".join(sorted(findings.sources)) or "none"
    if sources not in _pages_by_sources:
        _pages_by_sources[sources] = metrics.home_pages.labels(sources)
    _pages_by_sources[sources].inc()
    if findings.missed and "sql" in findings.sources:
        metrics.home_misses.labels(findings.missed).inc()


def _write_findings(walk: Walk) -> None:
    """Send the page's findings to Redis, and enqueue builds of missing windows.

    Errors do not fail the finished page. Replies come in the order of the commands: windows to begin, the inbox to
    deepen, the others.
    """
    findings, truth, inbox = walk.findings, walk.findings.truth, Inbox(walk.progress.reader_id)
    missing = [(window, epoch, secrets.token_hex(8)) for window, epoch in findings.missing]
    commands = [window.begin(token, epoch) for window, epoch, token in missing]
    if findings.is_shallow and truth and truth.epoch:
        commands.append(inbox.begin_deepening(truth.epoch))
    if truth and (hint := truth.hint) is not None and hint != findings.hinted:
        findings.commands.append(hinting(inbox.owner, hint))
    if not (commands or findings.commands):
        return
    try:
        with feeds_errors():
            replies = pipelined(feeds(), [*commands, *findings.commands])
    except FeedsUnavailableError:
        return
    # However many readers ask, only one begins, so one task builds.
    for (window, _, token), began in zip(missing, replies, strict=False):
        if began:
            window.build_later(token)
    if findings.is_shallow and (deepening := replies[len(missing)]):
        deepen.delay(inbox.owner, int(deepening))
