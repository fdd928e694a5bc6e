"""The home timeline: the page that merges inbox, pending deliveries and outboxes, verifies, and goes on in
PostgreSQL.

The windows are read first (timeline.reading), then one statement says what they are worth, what is pending, and what of
all that may be shown (timeline.truth): one statement and one round trip to Redis, whatever the reader follows, and one
more where outboxes are merged. Where a delivery was completed in between, which a busy site sees often, the windows are
read once more, and only ids that are new are verified. Pages with reposts ask a second statement (which of them are
folded). At the end the page tells Redis its findings, in one round trip.

See docs/decisions.md: A page has a bound of work, and answers short at it.
See docs/decisions.md: Windows are read first, then one statement judges them.
See docs/decisions.md: Home and the live feed share windows, and no walk.
See docs/decisions.md: Experiments for speed are kept by their processor time.
"""

import secrets
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from accounts.models import User
from items.bodies import ItemBody
from items.filters import filtered
from items.hydrate import ItemRow, body
from runtime import metrics
from storage.connections import Command, FeedsUnavailableError, feeds, feeds_errors, pipelined
from storage.queue import enqueue
from storage.window import INFINITY, Entry, Slice, Window
from timeline.fold import FOLDED, count_new, folds, folds_and_originals
from timeline.hydrate import POSTS, REPOSTS, Verified, verify_bodies, verify_ids
from timeline.inbox import Inbox, Tail
from timeline.outbox import Outbox
from timeline.pull import pull_above, pull_below, pull_bodies
from timeline.reading import Reading, are_too_many, doubting, hint_of, hinting, look
from timeline.truth import Missed, Truth, ask, expected

SLACK = 1
"""Candidates that are verified beyond the page: so many may fail before the page needs a second round."""
REFILLS = 3
"""Rounds over the windows before the rest of the page comes from PostgreSQL."""
SCAN = 100
"""Entries that PostgreSQL looks through for the rest of a page, should most of them be hidden or folded reposts. At
this bound a page answers short, with `has_more`.
"""
NEW_CAP = 100
NEW_SCAN = 200
"""The bound and the scan of a count, which says then that there may be more."""
_pages_by_sources: dict[str, Any] = {}


@dataclass(slots=True)
class Page:
    """A page of a feed. `last_id` is the last id scanned. `has_more` is true if another item exists, or may exist
    beyond the bound of the page's work: such a page is shorter than asked for, or empty.
    """

    items: list[ItemBody]
    last_id: int | None
    has_more: bool
    sources: list[str]
    others: dict[str, int] = field(default_factory=dict)
    """By the id of a repost: how many other reposts of the same item close by are folded into it, if any."""


@dataclass(slots=True)
class Walk:
    """A page in the making: what is shown so far, how far down everything was looked at, and what Redis is to be
    told.
    """

    reader: User
    limit: int
    top: int
    """The page shows items below this id."""
    below: int
    """The page has passed all items down to this id."""
    passed: int = 0
    """Entries of the home from `top` on, shown, folded or hidden, as far as they were looked at."""
    shown: list[ItemBody] = field(default_factory=list)
    """Bodies for the page, newest first; one beyond `limit` proves that there is more."""
    others: dict[str, int] = field(default_factory=dict)
    """By the id of a shown repost: how many others it stands for, where it does."""
    folds: dict[int, int] = field(default_factory=dict)
    """By repost: how many others it stands for, or `FOLDED`."""
    truth: Truth | None = None
    """PostgreSQL's last word on the reader, where it was asked beside windows."""
    scanned: int | None = None
    """The `last_id` of the page: the last id passed while it was not full."""
    ended: bool = False
    """Whether the home has nothing below `below`."""
    more: bool | None = None
    """Whether more follows a full page, where that is known without having seen it."""
    sources: set[str] = field(default_factory=set)
    """Names of what served the page, as in the header X-Feed-Source."""
    hint: set[int] | None = None
    """The big-Vs whose outboxes were read because a hint in Redis named them."""
    mark: str = ""
    """The token under which the tail may be written, where reading it left a mark."""
    floor: int = 0
    """The floor of the inbox where there is a mark: the tail begins at or below it."""
    news: list[Command] = field(default_factory=list)
    """Lazy deletes, the tail and the hint, for `_tell`."""
    wishes: list[tuple[Inbox | Outbox, int]] = field(default_factory=list)
    """The windows that were missed, with the epochs that they are wanted for, for `_tell`."""
    is_shallow: bool = False
    """Whether the inbox does not take the pushes that the reader's level takes, so it is to be deepened."""
    scans: bool = False
    """Whether most of what is hidden are reposts: no stream of PostgreSQL leaves those out, so it scans for them."""
    missed: Missed | None = None
    """Why the windows did not suffice, if they did not."""
    list_id: int = 0
    """The list that is walked instead of home (timeline.lists)."""
    reader_id: int = field(init=False)
    """The reader's id."""

    def __post_init__(self) -> None:
        self.reader_id = self.reader.pk

    @property
    def is_done(self) -> bool:
        """Whether the walk ended, knows what follows, or has more items than the page shows."""
        return self.ended or self.more is not None or len(self.shown) > self.limit

    @property
    def wanted(self) -> int:
        """Candidates for the rest: one more than the page shows proves that there is more."""
        return self.limit + 1 - len(self.shown) + SLACK

    def look_at(self, entries: int, *, has_reposts: bool) -> None:
        """Find out which reposts among so many next entries are folded, if any are shown, before they are passed."""
        self.passed += entries
        if has_reposts:
            self.folds = folds(self.reader_id, last_id=self.top, count=self.passed, list_id=self.list_id)

    def look_at_rows(self, entries: Sequence[Verified]) -> dict[int, Verified]:
        """Find out which of the next verified entries are folded; the reposts of them, with the originals that they
        lacked.
        """
        reposts = [row.item.id for row in entries if row.item.is_repost]
        if all(row.has_shown_original is not None for row in entries):
            self.look_at(len(entries), has_reposts=any(row.is_shown and row.item.is_repost for row in entries))
            return {}
        self.passed += len(entries)
        self.folds, verified = folds_and_originals(self.reader_id, last_id=self.top, count=self.passed, reposts=reposts)
        return verified

    def scan(self, item_id: int, row: ItemRow | None) -> None:
        """Pass an id; `row` makes its body if the reader sees it."""
        if len(self.shown) < self.limit:
            self.scanned = item_id
        self.below = item_id
        if row is None:
            return
        # A repost that `look_at` did not count, because something was published above since, stands for itself.
        others = self.folds.get(item_id, 0) if row.is_repost else 0
        if others == FOLDED:
            return
        item = body(row, self.reader_id, "own" if row.said.sender_id == self.reader_id else "following")
        if others:
            self.others[item.id] = others
        if row.is_repost and item.reason != "own":
            item.reason = _reposted_by(item.sender.name, others)
        self.shown.append(item)


def _reposted_by(name: str, others: int) -> str:
    """The reason of a repost, as the API says it."""
    return f"{name} reposted" if not others else f"{name} and {others} other{'s' * (others > 1)} reposted"


def home_page(reader: User, *, last_id: int | None = None, limit: int = 20) -> Page:
    """The items below `last_id` (exclusive, need not exist) that the reader's home shows, newest first, at most
    `limit`.

    Exact at every moment, whatever Redis holds or does not hold; without Redis it comes from PostgreSQL.
    """
    walk = walked(reader, last_id=last_id, limit=limit)
    _count(walk)
    _tell(walk)
    return page_of(walk)


def page_of(walk: Walk) -> Page:
    """The page that a walk has come to."""
    has_more = bool(walk.more) or len(walk.shown) > walk.limit
    items = filtered(walk.shown[: walk.limit], walk.reader)
    return Page(items, walk.scanned, has_more, sorted(walk.sources), walk.others)


def walked(reader: User, *, last_id: int | None, limit: int) -> Walk:
    """The walk of a page, before Redis is told what it found out."""
    top = INFINITY if last_id is None else last_id
    walk = Walk(reader, limit, top, top)
    if expected.has_inbox(reader):
        try:
            for _ in range(REFILLS):
                if not _from_windows(walk):
                    break
        except FeedsUnavailableError:
            walk.missed = Missed.REDIS
    else:
        walk.missed = Missed.FEW if reader.level else Missed.DORMANT
    if not walk.is_done:
        walk.missed = walk.missed or Missed.FLOOR
        from_sql(walk)
    return walk


def new_count(reader: User, *, since_id: int) -> tuple[int, bool]:
    """How many items the reader's home shows above `since_id`, reposts of the reader's own left out, at most `NEW_CAP`,
    and whether there are more, or may be more beyond `NEW_SCAN` entries.
    """
    walk = Walk(reader, NEW_CAP, INFINITY, INFINITY)
    found: list[int] = []
    bound = INFINITY
    if expected.has_inbox(reader):
        with suppress(FeedsUnavailableError):
            read = _look(walk, NEW_CAP + 1)
            truth = _ask(walk, read, []) if read else None
            if read and truth and (reading := _settle(walk, read, truth)):
                found = [one for one in reading.candidates(truth.pending, truth.pending_bound) if one > since_id]
                bound = max(reading.bound, truth.pending_bound)
    _tell(walk)
    if bound <= since_id or len(found) > NEW_CAP:
        count = count_new(reader.pk, verify_ids(reader.pk, found))
        if len(found) <= NEW_CAP or count > NEW_CAP:
            return min(count, NEW_CAP), count > NEW_CAP
    candidates = pull_above(reader.pk, since=since_id, count=NEW_SCAN, enough=NEW_CAP + 1)
    if candidates is None:
        return NEW_CAP, True
    count = count_new(reader.pk, candidates)
    return min(count, NEW_CAP), count > NEW_CAP or len(candidates) == NEW_SCAN


def _from_windows(walk: Walk) -> bool:
    """Add a round of candidates from the windows, verified. True if the page wants another round and the windows may
    have it.

    A page that the windows cannot fill, because it reaches below their bound, is left to PostgreSQL as a whole: one
    query, not two. So its candidates are not verified here.
    """
    count, room = walk.wanted, walk.limit - len(walk.shown)
    read = _look(walk, count)
    if read is None:
        return False
    ids = read.candidates()
    below = asked_below = read.below(ids)
    if below and len(ids) < room:
        ids, asked_below = [], 0
    truth = _ask(walk, read, ids, asked_below)
    reading = _settle(walk, read, truth)
    if reading is None:
        return False
    asked = set(ids)
    ids = reading.candidates(truth.pending, truth.pending_bound)
    below = reading.below(ids, truth.pending_bound)
    if below and len(ids) < room:
        return False
    walk.sources.update(reading.sources(ids, truth.pending))
    new = [item_id for item_id in ids if item_id not in truth.rows and item_id not in asked]
    rows = truth.rows | verify_bodies(walk.reader_id, new)
    rows = _show(walk, ids, rows)
    if below and below == asked_below and len(walk.shown) == walk.limit and truth.rows:
        older = next(iter(truth.rows.values())).older
        walk.more = None if older == REPOSTS else older == POSTS
    walk.ended = not walk.is_done and not below and len(ids) < count
    _forget(walk, read, ids, rows)
    if walk.is_done or below:
        return False
    hidden = [rows[item_id] for item_id in ids if item_id in rows and rows[item_id].is_hidden]
    if len(hidden) > len(ids) // 2:
        walk.missed = Missed.HIDDEN
        walk.scans = sum(row.item.is_repost for row in hidden) > len(hidden) // 2
        return False
    return True


def _ask(walk: Walk, read: Reading, ids: Sequence[int], below: int = 0) -> Truth:
    walk.truth = ask(
        walk.reader_id,
        ids,
        read.senders if ids else (),
        before=read.before,
        count=read.count,
        pushes=read.inbox.pushes,
        below=below,
    )
    return walk.truth


def _show(walk: Walk, ids: Sequence[int], rows: dict[int, Verified]) -> dict[int, Verified]:
    """Pass the candidates, newest first, until the page is full; the rows, with the originals of reposts."""
    rows = rows | walk.look_at_rows([rows[item_id] for item_id in ids if item_id in rows and rows[item_id].is_entry])
    for item_id in ids:
        row = rows.get(item_id)
        walk.scan(item_id, row.item if row and row.is_shown else None)
        if walk.is_done:
            break
    return rows


def _look(walk: Walk, count: int) -> Reading | None:
    """Read the windows, before the truth is asked for the first time, or for another round of the page; None where
    more outboxes were to be merged than a pull costs.
    """
    truth = walk.truth
    if truth:
        big_vs: Collection[int] = truth.big_vs or ()
    else:
        walk.hint = hint_of(walk.reader_id) if expected.merges(walk.reader) else None
        big_vs = walk.hint or ()
    if are_too_many(big_vs, walk.reader.following_count):
        walk.missed = Missed.OUTBOXES
        if not truth:
            walk.news.append(doubting(walk.reader_id))
        return None
    epoch = truth.epoch if truth else None
    return look(walk.reader_id, before=walk.below, count=count, big_vs=big_vs, epoch=epoch or 0)


def _settle(walk: Walk, read: Reading, truth: Truth) -> Reading | None:
    """The windows as far as they may be used: as read before the truth was asked, or read again where that was too
    early. None where a window is lacking, or too many outboxes were to be merged; `walk.missed` says why then.
    """
    if not truth.has_windows:
        walk.missed = truth.why_no_windows
        return None
    reading = read
    walk.is_shallow = _is_shallow(read, truth)
    if read.inbox.epoch == truth.epoch and not read.is_current(truth):
        big_vs: Collection[int] = truth.big_vs or ()
        if are_too_many(big_vs, walk.reader.following_count):
            walk.missed = Missed.OUTBOXES
            return None
        # Of two items that were published since, perhaps only the second is in a window: so neither is on the page.
        reading = look(
            walk.reader_id,
            before=read.before,
            count=read.count,
            big_vs=big_vs,
            epoch=truth.epoch,
            newest=truth.newest,
        )
    reading = reading.of(truth)
    missing = reading.missing(walk.reader_id, truth)
    walk.wishes += missing
    walk.is_shallow = _is_shallow(reading, truth)
    if missing or not reading.is_whole(truth):
        walk.missed = Missed.MISSING
        return None
    if reading.token:
        walk.mark, walk.floor = reading.token, reading.inbox.floor
    return reading


def _is_shallow(reading: Reading, truth: Truth) -> bool:
    """Whether an inbox in use does not take the pushes that the reader's level takes."""
    return reading.inbox.epoch == truth.epoch and truth.push_generation not in (0, reading.inbox.pushes)


def _forget(walk: Walk, read: Reading, ids: Sequence[int], rows: Mapping[int, Verified]) -> None:
    """Lazy delete: what does not belong leaves the inbox; what is not published leaves the outboxes too.

    `read` is what was read before PostgreSQL was asked: from then on counts the time within which a window forgets.
    """
    refused = {item_id for item_id in ids if item_id not in rows or not rows[item_id].belongs}
    if not refused:
        return
    unpublished = {item_id for item_id in refused if item_id not in rows or not rows[item_id].is_published}
    windows: list[tuple[Window, Slice, set[int]]] = [(Inbox(walk.reader_id), read.inbox, refused)]
    windows += [(Outbox(big_v), one, unpublished) for big_v, one in read.outboxes.items()]
    for window, one, gone in windows:
        members = [
            Entry(item_id, sender_id).member
            for item_id, sender_id in zip(one.entries, one.senders, strict=True)
            if item_id in gone
        ]
        if members:
            walk.news.append(window.forget(members, one))


def from_sql(walk: Walk) -> None:
    """Fill the page from PostgreSQL, and keep what was pulled beyond it as the tail.

    One pull serves almost every page. Where it meets so many hidden or folded reposts that the page is not full, one
    more looks through `SCAN` entries and hydrates only what is shown; where the windows have met hidden reposts, that
    one alone.
    """
    walk.sources.add("sql")
    reader_id = walk.reader_id
    if walk.scans and not walk.mark:
        _scan_sql(walk)
        return
    bodies = walk.wanted
    count = max(Tail.LENGTH, bodies + 1) if walk.mark else bodies + 1
    rows = pull_bodies(
        reader_id, below=walk.below, count=count, bodies=bodies, for_window=bool(walk.mark), list_id=walk.list_id
    )
    if walk.mark and rows and walk.truth and walk.truth.epoch:
        floor = rows[-1].item_id - 1 if len(rows) == count else 0
        entries = [Entry(row.item_id, row.sender_id) for row in rows]
        top = min(walk.below, walk.floor + 1)
        walk.news.append(Tail(reader_id).complete(walk.mark, walk.truth.epoch, floor, top, entries))
        walk.mark = ""
    if rows:
        expected.inbox_from = rows[0].inbox_from
    held = [row for row in rows[:bodies] if row.is_held]
    walk.look_at(len(held), has_reposts=any(row.shown and row.shown.is_repost for row in held))
    for row in rows[:bodies]:
        walk.scan(row.item_id, row.shown)
        if walk.is_done:
            return
    walk.ended = len(rows) <= bodies
    if not walk.ended:
        _scan_sql(walk)


def _scan_sql(walk: Walk) -> None:
    """Look through the next `SCAN` entries for the rest of the page, which ends with them, full or not."""
    reader_id = walk.reader_id
    candidates = pull_below(reader_id, below=walk.below, count=SCAN, list_id=walk.list_id)
    walk.look_at(len(candidates), has_reposts=any(one.is_shown and one.repost_of for one in candidates))
    shown = [one.item_id for one in candidates if one.is_shown and walk.folds.get(one.item_id) != FOLDED]
    wanted = shown[: walk.wanted]
    end = wanted[-1] if len(wanted) < len(shown) else 0
    rows = verify_bodies(reader_id, wanted, list_id=walk.list_id)
    for item_id, _, _ in candidates:
        row = rows.get(item_id)
        walk.scan(item_id, row.item if row and row.is_shown else None)
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


def _tell(walk: Walk) -> None:
    """Tell Redis what the page found out, and workers what to build. The page is ready without it, so no error
    of Redis or of the broker fails the page.

    In one round trip: windows to begin (`walk.wishes`), the inbox to deepen, and `walk.news`, in this order; the
    replies are told apart by it.
    """
    wishes = [(window, window.builder, epoch, secrets.token_hex(8)) for window, epoch in walk.wishes]
    commands = [window.begin(token, epoch) for window, _, epoch, token in wishes]
    inbox, truth = Inbox(walk.reader_id), walk.truth
    if walk.is_shallow and truth and truth.epoch:
        commands.append(inbox.begin_deepening(truth.epoch))
    if truth and truth.push_generation == 0 and truth.big_vs is not None and truth.big_vs.keys() != walk.hint:
        walk.news.append(hinting(walk.reader_id, truth.big_vs))
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
