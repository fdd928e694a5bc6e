"""The home timeline: a page merges inbox, outboxes and pending deliveries, verifies, and continues in PostgreSQL.

`home_page` makes a `HomeWalk`, which reads the page in this order:

1. `read_windows` reads inbox and outboxes in one round trip (timeline.reading).
2. `verify` checks them by one statement (timeline.truth). If a delivery was completed in between, the windows are read
   again. Merged outboxes and reposts cost one more each.
3. `fill_from_sql` continues where the windows end (timeline.pull).
4. `write_findings` tells Redis what the page learned.

See docs/decisions.md: A page looks through a bounded number of rows.
See docs/decisions.md: Windows first, then one statement.
See docs/decisions.md: A followed hashtag is an outbox.
See docs/decisions.md: Experiments that were not worth it.
"""

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from accounts.models import User
from items.bodies import ItemBody
from items.hydrate import body, decorate
from items.models import Context
from runtime import metrics
from storage.connections import Command, FeedsUnavailableError, feeds, feeds_errors, pipelined
from storage.window import INFINITY, Slice, Window, WindowEntry
from timeline.fold import FOLDED, count_new, folds, folds_and_originals
from timeline.inbox import Inbox, Tail, deepen
from timeline.outbox import Outbox
from timeline.pull import PulledItem, pull_above, pull_below, pull_bodies
from timeline.reading import Reading, expire_hint, is_pull_cheaper, read_hint, read_windows, set_hint
from timeline.senders import Scope
from timeline.truth import MAYBE, POSTS, MissReason, Truth, VerifiedItem, expected, fetch_items, verify, verify_ids

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
class HomePage:
    """One page of a home or list. `last_id`: the last id checked. `has_more`: more items follow, or may follow."""

    items: list[ItemBody]
    last_id: int | None
    has_more: bool
    sources: list[str]
    others: dict[str, int] = field(default_factory=dict)
    """By id of a repost: how many other reposts of the same item are folded into it. Only if there are any."""


@dataclass(slots=True)
class Findings:
    """What a page learned about the reader's windows."""

    truth: Truth | None = None
    """The last answer of timeline.truth, if the page read windows."""
    sources: set[str] = field(default_factory=set)
    """What served the page, for the header X-Feed-Source."""
    missed: MissReason | None = None
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
class HomeWalk:
    """A page of a home or list in the making: the items found so far, and the id down to which all is checked."""

    reader: User
    scope: Scope
    limit: int
    top: int
    """The page shows items below this id."""
    below: int
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
    findings: Findings = field(default_factory=Findings)

    @classmethod
    def of(cls, reader: User, scope: Scope, limit: int, last_id: int | None = None) -> Self:
        """The page of a home or list below `last_id`, or at the top."""
        top = INFINITY if last_id is None else last_id
        return cls(reader, scope, limit, top, top)

    @property
    def is_done(self) -> bool:
        """Whether the home has ended, or the page knows whether more items follow."""
        return self.ended or self.more is not None or len(self.shown) > self.limit

    @property
    def wanted(self) -> int:
        """How many candidates to read: those still needed, one that proves more items, and some spare ones."""
        return self.limit - len(self.shown) + 1 + SLACK

    def page(self) -> HomePage:
        """The finished page."""
        has_more = bool(self.more) or len(self.shown) > self.limit
        items = decorate(self.shown[: self.limit], self.reader, Context.HOME)
        return HomePage(items, self.scanned, has_more, sorted(self.findings.sources), self.others)

    def fill(self) -> None:
        """Fill the page from the windows, and the rest from PostgreSQL. Writes nothing."""
        findings = self.findings
        if expected.has_inbox(self.reader):
            try:
                for _ in range(REFILLS):
                    if not self.fill_from_windows():
                        break
            except FeedsUnavailableError:
                findings.missed = MissReason.REDIS
        else:
            findings.missed = MissReason.FEW if self.reader.level else MissReason.DORMANT
        if not self.is_done:
            findings.missed = findings.missed or MissReason.FLOOR
            self.fill_from_sql()

    # --- From the windows ----------------------------------------------------------------------------------
    def fill_from_windows(self) -> bool:
        """Add items from the windows to the page. True if another round makes sense.

        A page that reaches below the windows' bound is left to PostgreSQL: one query instead of two.
        """
        count, room = self.wanted, self.limit - len(self.shown)
        read = self.read_windows(count)
        if read is None:
            return False
        asked, asked_below = read.ids, read.below(read.ids, read.bound)
        if asked_below and len(asked) < room:
            asked, asked_below = [], 0
        truth = self.verify(read, asked, asked_below)
        reading = self.usable(read, truth)
        if reading is None:
            return False
        ids, below = reading.candidates(truth)
        if below and len(ids) < room:
            return False
        self.findings.sources |= reading.sources(truth, ids)
        rows = truth.rows
        if ids is not asked and (new := [one for one in ids if one not in rows and one not in asked]):
            rows = rows | fetch_items(self.scope, new)
        rows = self.show_candidates(ids, rows)
        if below and below == asked_below and len(self.shown) == self.limit and truth.rows:
            older = next(iter(truth.rows.values())).older
            self.more = None if older == MAYBE else older == POSTS
        self.ended = not self.is_done and not below and len(ids) < count
        self.forget(read, truth, ids, rows)
        if self.is_done or below:
            return False
        hidden = [rows[item_id] for item_id in ids if item_id in rows and rows[item_id].is_hidden]
        if len(hidden) > len(ids) // 2:
            self.findings.missed = MissReason.HIDDEN
            self.findings.hides_entries = sum(row.is_entry for row in hidden) > len(hidden) // 2
            return False
        return True

    def read_windows(self, count: int) -> Reading | None:
        """Read the inbox (or its tail) and the outboxes. None if a pull costs less than merging the outboxes."""
        reader, findings, truth = self.reader, self.findings, self.findings.truth
        if truth:
            sources: Collection[int] = truth.outboxes
        else:
            findings.hinted = read_hint(reader.pk) if self.scope.has_tags or expected.merges(reader) else None
            sources = findings.hinted or ()
        if is_pull_cheaper(sources, reader):
            findings.missed = MissReason.OUTBOXES
            if not truth:
                findings.commands.append(expire_hint(reader.pk))
            return None
        epoch = truth.epoch if truth else None
        return read_windows(self.scope, before=self.below, count=count, sources=sources, epoch=epoch or 0)

    def verify(self, read: Reading, ids: Sequence[int], below: int = 0) -> Truth:
        """Ask PostgreSQL about candidates, and what the windows must be."""
        truth = self.findings.truth = verify(
            self.scope,
            ids,
            read.senders if ids else (),
            before=read.before,
            count=read.count,
            pushes=read.inbox.pushes,
            below=below,
        )
        return truth

    def usable(self, read: Reading, truth: Truth) -> Reading | None:
        """The windows' content if it can serve the page, else None. `findings.missed` says why not.

        Reads the windows again if a delivery was completed since the first reading.
        """
        findings, reading = self.findings, read
        if not truth.has_windows:
            findings.missed = truth.why_no_windows
            return None
        findings.is_shallow = read.is_shallow(truth)
        if read.inbox.epoch == truth.epoch and not read.is_current(truth):
            if is_pull_cheaper(truth.outboxes, self.reader):
                findings.missed = MissReason.OUTBOXES
                return None
            # `newest`: of two items published since, the windows may hold only the second.
            reading = read_windows(
                self.scope,
                before=read.before,
                count=read.count,
                sources=truth.outboxes,
                epoch=truth.epoch,
                newest=truth.newest,
            )
            findings.is_shallow = reading.is_shallow(truth)
        reading = reading.only_needed(truth)
        missing = reading.missing(self.scope.reader_id, truth)
        findings.missing += missing
        if missing or not reading.is_whole(truth):
            findings.missed = MissReason.MISSING
            return None
        if reading.token:
            findings.tail_token, findings.inbox_floor = reading.token, reading.inbox.floor
        return reading

    def show_candidates(self, ids: Sequence[int], rows: dict[int, VerifiedItem]) -> dict[int, VerifiedItem]:
        """Add the candidates to the page. Returns the rows, with originals of reposts."""
        entries = [row for item_id in ids if (row := rows.get(item_id)) and row.is_entry]
        reposts = {row.item.said.id: row for row in entries if row.item.said.repost_of_id}
        if any(row.has_shown_original is None for row in reposts.values()):
            self.passed += len(entries)
            self.folds, verified = folds_and_originals(
                self.scope, last_id=self.top, count=self.passed, reposts=[*reposts]
            )
            rows = rows | verified
        else:
            self.find_folds(len(entries), has_reposts=any(row.shown for row in reposts.values()))
        self.show(ids, rows)
        return rows

    def forget(self, read: Reading, truth: Truth, ids: Sequence[int], rows: Mapping[int, VerifiedItem]) -> None:
        """Prepare commands that remove entries from windows in which they no longer belong.

        `read` is the first reading: a window forgets only for a limited time after it.
        """
        refused = {item_id for item_id in ids if item_id not in rows or not rows[item_id].belongs}
        windows: list[tuple[Window, Slice, Collection[int]]] = []
        if refused:
            unpublished = {item_id for item_id in refused if item_id not in rows or not rows[item_id].is_published}
            windows.append((Inbox(self.scope.reader_id), read.inbox, refused))
            if unpublished:
                windows += [(Outbox(source), one, unpublished) for source, one in read.outboxes.items() if source > 0]
        for source, tag in truth.tags.items():
            if (one := read.outboxes.get(source)) and (untagged := truth.without_tag(tag, one.entries)):
                windows.append((Outbox(source), one, untagged))
        for window, one, gone in windows:
            members = [
                WindowEntry(item_id, sender_id).member
                for item_id, sender_id in zip(one.entries, one.senders, strict=True)
                if item_id in gone
            ]
            if members:
                self.findings.commands.append(window.forget(members, one))

    # --- From PostgreSQL -----------------------------------------------------------------------------------
    def fill_from_sql(self) -> None:
        """Fill the page from PostgreSQL, and keep the rows beyond it as the tail.

        Scans if hidden or folded entries leave one pull short, or if most items in the windows were hidden.
        """
        findings = self.findings
        findings.sources.add("sql")
        if findings.hides_entries and not findings.tail_token:
            self.scan()
            return
        bodies, for_tail = self.wanted, bool(findings.tail_token)
        count = max(Tail.LENGTH, bodies + 1) if for_tail else bodies + 1
        rows = pull_bodies(self.scope, below=self.below, count=count, bodies=bodies, for_window=for_tail)
        self.save_tail(rows, count)
        if rows:
            expected.inbox_from = rows[0].inbox_from
        page = {row.item_id: row for row in rows[:bodies]}
        held = [row for row in page.values() if row.is_held]
        self.find_folds(len(held), has_reposts=any(row.shown and row.shown.said.repost_of_id for row in held))
        self.show(page, page)
        if self.is_done:
            return
        self.ended = len(rows) <= bodies
        if not self.ended:
            self.scan()

    def save_tail(self, rows: Sequence[PulledItem], count: int) -> None:
        """Prepare the command that writes the tail, if there is a token."""
        findings = self.findings
        if not (findings.tail_token and rows and findings.truth and findings.truth.epoch):
            return
        floor = rows[-1].item_id - 1 if len(rows) == count else 0
        entries = [WindowEntry(row.item_id, row.sender_id) for row in rows]
        top = min(self.below, findings.inbox_floor + 1)
        tail = Tail(self.scope.reader_id)
        findings.commands.append(tail.complete(findings.tail_token, findings.truth.epoch, floor, top, entries))
        findings.tail_token = ""

    def scan(self) -> None:
        """Fill the page from the next `SCAN` entries, of which it reads only the shown ones with bodies."""
        candidates = pull_below(self.scope, below=self.below, count=SCAN)
        self.find_folds(len(candidates), has_reposts=any(one.is_shown and one.repost_of for one in candidates))
        shown = [one.item_id for one in candidates if one.is_shown and self.folds.get(one.item_id) != FOLDED]
        wanted = shown[: self.wanted]
        end = wanted[-1] if len(wanted) < len(shown) else 0
        self.show([one.item_id for one in candidates if one.item_id >= end], fetch_items(self.scope, wanted))
        if not self.is_done:
            self.ended = not end and len(candidates) < SCAN
            self.more = None if self.ended else True

    # --- The items -----------------------------------------------------------------------------------------
    def find_folds(self, entries: int, *, has_reposts: bool) -> None:
        """Count `entries` as checked. Find the folds if reposts are shown."""
        self.passed += entries
        if has_reposts:
            self.folds = folds(self.scope, last_id=self.top, count=self.passed)

    def show(self, ids: Iterable[int], rows: Mapping[int, VerifiedItem | PulledItem]) -> None:
        """Check off ids, newest first, until the page has one item too many. `rows`: those that exist."""
        reader_id = self.scope.reader_id
        for item_id in ids:
            if len(self.shown) < self.limit:
                self.scanned = item_id
            self.below = item_id
            found = rows.get(item_id)
            if found is None or (row := found.shown) is None:
                continue
            # A repost unknown to `find_folds`, published in the meantime, stands for itself.
            others = self.folds.get(item_id, 0) if row.said.repost_of_id else 0
            if others == FOLDED:
                continue
            reason = f"#{found.tag}" if found.tag else "own" if row.said.sender_id == reader_id else "following"
            item = body(row, reader_id, reason)
            if others:
                self.others[item.id] = others
            if item.repost_of and reason != "own":
                item.reason = _reposted_by(item.sender.name, others)
            self.shown.append(item)
            if len(self.shown) > self.limit:
                return

    # --- After the page ------------------------------------------------------------------------------------
    def write_findings(self) -> None:
        """Send the page's findings to Redis, and enqueue builds of missing windows.

        Errors do not fail the finished page. Replies come in the order of the commands: windows to begin, the inbox to
        deepen, the others.
        """
        findings, truth, reader_id = self.findings, self.findings.truth, self.scope.reader_id
        if truth and (hint := truth.hint) is not None and hint != findings.hinted:
            findings.commands.append(set_hint(reader_id, hint))
        deepens = findings.is_shallow and truth is not None and truth.epoch
        if not (findings.missing or deepens or findings.commands):
            return
        missing = [(window, epoch, secrets.token_hex(8)) for window, epoch in findings.missing]
        commands = [window.begin(token, epoch) for window, epoch, token in missing]
        if deepens:
            commands.append(Inbox(reader_id).begin_deepening(deepens))
        try:
            with feeds_errors():
                replies = pipelined(feeds(), [*commands, *findings.commands])
        except FeedsUnavailableError:
            return
        # However many readers ask, only one begins, so one task builds.
        for (window, _, token), began in zip(missing, replies, strict=False):
            if began:
                window.build_later(token)
        if deepens and (deepening := replies[len(missing)]):
            deepen.delay(reader_id, int(deepening))


def _reposted_by(name: str, others: int) -> str:
    return f"{name} reposted" if not others else f"{name} and {others} other{'s' * (others > 1)} reposted"


def _count_page(findings: Findings) -> None:
    """Count the page in the metrics. Caches metric labels, which take long to look up."""
    sources = ",".join(sorted(findings.sources)) or "none"
    if sources not in _pages_by_sources:
        _pages_by_sources[sources] = metrics.home_pages.labels(sources)
    _pages_by_sources[sources].inc()
    if findings.missed and "sql" in findings.sources:
        metrics.home_misses.labels(findings.missed).inc()


def home_page(reader: User, *, last_id: int | None = None, limit: int = 20) -> HomePage:
    """The items of the reader's home below `last_id` (exclusive, need not exist), newest first.

    Exact at every moment, whatever Redis holds. Without Redis the page comes from PostgreSQL.
    """
    walk = HomeWalk.of(reader, Scope.home_of(reader), limit, last_id)
    walk.fill()
    _count_page(walk.findings)
    walk.write_findings()
    return walk.page()


def new_count(reader: User, *, since_id: int, of_others: bool = False) -> tuple[int, bool]:
    """How many items home shows above `since_id`, without own reposts, and whether there may be more."""
    walk = HomeWalk.of(reader, Scope.home_of(reader), NEW_CAP)
    found: list[int] = []
    bound = INFINITY
    if expected.has_inbox(reader):
        with suppress(FeedsUnavailableError):
            read = walk.read_windows(NEW_CAP + 1)
            truth = walk.verify(read, []) if read else None
            if read and truth and (reading := walk.usable(read, truth)):
                ids, _ = reading.candidates(truth)
                found = [one for one in ids if one > since_id]
                bound = max(reading.bound, truth.pending_bound)
    walk.write_findings()
    if bound <= since_id or len(found) > NEW_CAP:
        count = count_new(walk.scope, verify_ids(walk.scope, found), of_others=of_others)
        if len(found) <= NEW_CAP or count > NEW_CAP:
            return min(count, NEW_CAP), count > NEW_CAP
    return count_above(walk.scope, since_id=since_id, of_others=of_others)


def count_above(scope: Scope, *, since_id: int, of_others: bool = False) -> tuple[int, bool]:
    """How many items a home or list shows above `since_id`, by PostgreSQL, and whether there may be more."""
    candidates = pull_above(scope, since=since_id, count=NEW_SCAN, enough=NEW_CAP + 1)
    if candidates is None:
        return NEW_CAP, True
    count = count_new(scope, candidates, of_others=of_others)
    return min(count, NEW_CAP), count > NEW_CAP or len(candidates) == NEW_SCAN
