"""Builds a page of the live feed: takes the walk's next entries, verifies them, and fills the page up."""

import logging
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.db import DatabaseError

from accounts.models import User
from live.hydrate import COLUMNS, SessionBody, SessionRow, body
from live.models import State
from live.pull import newest_replays, pull_bodies
from live.replays import Replays
from live.snapshot import SnapshotExpiredError, WalkSnapshot
from live.visibility import concerns_others, host_in_feed, join_active_host, shown, unhidden
from storage.connections import Command, FeedsUnavailableError, feeds, feeds_errors, fetch, id_array, pipelined
from storage.window import NO_SLICE, Window, WindowEntry
from storage.window import Slice as WindowSlice

logger = logging.getLogger(__name__)

SLACK = 2
"""Extra candidates per page: this many may fail before a second round."""
DEEPER = 8
"""Factor by which each round over Redis is longer than the one before."""
LONGEST = 500
"""Maximum entries per round."""
BOUND = 2_000
"""Maximum entries of a snapshot checked per page. Then the page is short."""
REFILLS = 3
"""Rounds over the replays before PostgreSQL serves the rest."""

BELONGS = host_in_feed("l.host_id")
# Only visible replays are candidates among the pulled ones.
PULLED_HOSTS = f"""
    SELECT l.host_id AS id FROM unnest(%(hosts)s::bigint[]) AS l (host_id) {join_active_host("l.host_id")}
    WHERE {BELONGS}
"""
VERIFY = f"""
    WITH {newest_replays(PULLED_HOSTS, f"l.pulled AND {unhidden('l')}")},
    wanted AS (
        SELECT id, false AS is_pulled FROM unnest(%(ids)s::bigint[]) AS entry (id)
        UNION ALL
        SELECT l.id, false FROM unnest(%(positions)s::bigint[]) AS replay (position)
        CROSS JOIN LATERAL (SELECT s.id FROM live_livesession s WHERE s.position = replay.position OFFSET 0) l
        UNION ALL
        SELECT id, true FROM pulled
    )
    SELECT wanted.is_pulled, {BELONGS},
        {shown("l", "h")} AND {concerns_others("l")}, l.position, {COLUMNS}
    FROM wanted
    CROSS JOIN LATERAL (SELECT * FROM live_livesession s WHERE s.id = wanted.id OFFSET 0) l
    CROSS JOIN LATERAL (SELECT * FROM accounts_user u WHERE u.id = l.host_id OFFSET 0) h
"""


class VerifiedSession(NamedTuple):
    """A row of `VERIFY`."""

    is_pulled: bool
    """True for a replay that no window has."""
    belongs: bool
    """Whether the reader follows its host. If not, the entry is removed from the window."""
    is_visible: bool
    position: int | None
    """The replay's position in the feed, else None."""
    session: SessionRow

    @classmethod
    def of(cls, row: Sequence[Any]) -> "VerifiedSession":
        is_pulled, belongs, is_visible, position, *columns = row
        return cls(is_pulled, belongs, is_visible, position, SessionRow._make(columns))

    @property
    def is_shown(self) -> bool:
        """Whether it belongs to the feed and is visible."""
        return self.belongs and self.is_visible


@dataclass(slots=True)
class LivePage:
    """A page of the feed. `last_id` is the last one checked. `has_more` is true only if another session exists, or the
    page is short. Call `keep` after sending it.
    """

    items: list[SessionBody]
    last_id: int | None
    session_id: str | None
    has_more: bool
    sources: list[str]
    news: "PendingWrites"

    def store(self) -> None:
        """Write snapshot and repairs to Redis. Never fails."""
        self.news.tell()


@dataclass(slots=True)
class ReaderFacts:
    """The reader's facts from PostgreSQL, read before Redis."""

    level: int
    window_epoch: int
    generation: int
    """The policy's generation. 0: do not use windows and lineups."""
    pending: list[int]
    """Positions of followed hosts' replays with incomplete fan-out."""
    pending_bound: int
    """`pending` is complete above this position."""
    pulled: list[int]
    """Followed hosts with pulled replays."""
    frozen: int = 0
    hosts: list[int] = field(default_factory=list)
    """Followed hosts with something scheduled."""
    versions: list[int] = field(default_factory=list)
    """Versions of the lineups of `hosts`."""
    scheduled: int = 0

    @property
    def epoch(self) -> int:
        """The epoch that the reader's window must have."""
        return self.window_epoch ^ self.generation


@dataclass(slots=True)
class PendingWrites:
    """Commands for Redis after the page is sent."""

    now: datetime
    commands: list[Command] = field(default_factory=list)
    wished: tuple[Replays, int] | None = None
    """A missing inbox of replays to build, and its epoch."""
    snapshot: WalkSnapshot | None = None
    entries: list[int] = field(default_factory=list)
    lives: int = 0

    def tell(self) -> None:
        """Send the commands. Without Redis, keep the snapshot in PostgreSQL."""
        commands, token = list(self.commands), secrets.token_hex(8)
        if self.snapshot:
            commands.insert(0, self.snapshot.write_command(self.entries, self.lives))
        if self.wished:
            window, epoch = self.wished
            commands.insert(0, window.begin(token, epoch))
        if not commands:
            return
        try:
            with feeds_errors():
                replies = pipelined(feeds(), commands)
        except FeedsUnavailableError:
            self._store_snapshot()
            return
        # Of concurrent pages, one begins the construction, and one task builds.
        if self.wished and replies[0]:
            self.wished[0].build_later(token)

    def _store_snapshot(self) -> None:
        if self.snapshot:
            try:
                self.snapshot.store_in_postgresql(self.entries, self.lives, self.now)
            except DatabaseError:
                logger.exception(
                    "a snapshot of live sessions could not be saved. Its reader starts from the first page"
                )


class FrozenEntries:
    """Remaining entries in frozen order: ids, negative if upcoming."""

    def __init__(self, entries: list[int], lives: Iterable[int], *, more: WalkSnapshot | None = None) -> None:
        self._entries = entries
        self._more = more  # where to read the rest
        self.held = set(lives)
        """Sessions that were live, and must not repeat among the replays. Complete when the last entry is taken."""

    def take(self, count: int, last_id: int | None) -> list[int]:
        """The next entries. Fewer than `count` only at the end. Raises SnapshotExpiredError."""
        if not self._entries and self._more:
            try:
                with feeds_errors():
                    read = WalkSnapshot.slice(pipelined(feeds(), [self._more.read_command(last_id, count)])[0])
            except FeedsUnavailableError:
                read = None
            if read is None:
                raise SnapshotExpiredError
            self._entries, self._more = read.entries, self._more if len(read.entries) == count else None
            self.held.update(read.lives)
        taken, self._entries = self._entries[:count], self._entries[count:]
        return taken


@dataclass(slots=True)
class LiveWalk:
    """A page being built."""

    reader: User
    limit: int
    context: ReaderFacts
    below: int
    """The position that the replays have reached."""
    news: PendingWrites
    window: WindowSlice | None = None
    """The inbox of replays below `below`, `window_count` deep. None if not read yet, or unusable."""
    window_count: int = 0
    is_windowless: bool = False
    """Whether the inbox cannot be used."""
    shown: list[SessionBody] = field(default_factory=list)
    scanned: int | None = None
    ended: bool = False
    is_short: bool = False
    """Whether the bound of work was reached before the page was full."""
    sources: set[str] = field(default_factory=set)

    @property
    def is_done(self) -> bool:
        """Whether there is one session more than the page shows, or the feed has ended."""
        return self.ended or len(self.shown) > self.limit

    @property
    def wanted(self) -> int:
        """How many candidates to ask for. One session more than the page shows proves that there is more."""
        return self.limit + 1 - len(self.shown) + SLACK

    def scan(self, last_id: int, session: SessionRow | None, shown_as: str) -> None:
        """Pass `last_id`, and add a visible session."""
        if len(self.shown) < self.limit:
            self.scanned = last_id
        if session is not None:
            self.shown.append(body(session, shown_as))

    def read(self, commands: Sequence[Command | bytes], count: int) -> list[Any]:
        """Run commands, and read the inbox in the same round trip. Returns the replies to the commands."""
        if self.is_windowless or not count:
            return pipelined(feeds(), commands)
        window = Replays(self.reader.pk)
        *replies, reply = pipelined(feeds(), [*commands, window.read_command(self.below, count)])
        self.window, self.window_count = Window.slice(reply, count, self.context.epoch), count
        if not self.window.is_usable:
            self.is_windowless = True
            self.news.wished = (window, self.context.epoch)
        return replies

    def fill(self, entries: FrozenEntries) -> None:
        """Take entries, then replays from inbox, deliveries and pulled ones, then PostgreSQL."""
        count = self.wanted
        refills = looked = 0
        while not self.is_done:
            if looked == BOUND:
                self.is_short = True
                return
            count = min(count, BOUND - looked)
            chunk = entries.take(count, self.scanned)
            looked += len(chunk)
            positions: list[int] | None = None
            if len(chunk) < count and refills < REFILLS:
                refills += 1
                positions = self._candidates(count - len(chunk), needed=self.limit - len(self.shown) - len(chunk))
            if chunk or positions is not None:
                self._verify(chunk, positions, count, entries.held)
            if len(chunk) < count and positions is None:
                break
            count = min(count * DEEPER, LONGEST)
        if not self.is_done:
            self._fill_from_sql(entries.held)

    def _candidates(self, count: int, needed: int) -> list[int] | None:
        """Positions of the next replays to verify. None if PostgreSQL must serve the rest."""
        if self.is_windowless:
            return None
        if self.window is None or self.window_count < count:
            try:
                with feeds_errors():
                    self.read([], count)
            except FeedsUnavailableError:
                self.is_windowless = True
            if self.is_windowless or self.window is None:
                return None
        bound = max(self.window.bound, self.context.pending_bound)
        pending = [position for position in self.context.pending if bound < position < self.below]
        found = {*pending, *(position for position in self.window.entries if position > bound)}
        if bound > 0 and len(found) < min(count, needed):
            return None
        self.sources.add("inbox")
        if pending:
            self.sources.add("pending")
        return sorted(found, reverse=True)[:count]

    def _verify(self, chunk: list[int], positions: list[int] | None, count: int, held: set[int]) -> None:
        context = self.context
        hosts = () if positions is None else context.pulled
        params = {
            "reader": self.reader.pk,
            "ids": id_array(map(abs, chunk)),
            "positions": id_array(positions or ()),
            "hosts": id_array(hosts),
            "below": self.below,
            "count": count,
        }
        rows = fetch(VERIFY, params, into=VerifiedSession.of) if chunk or positions or hosts else []
        by_id = {row.session.id: row for row in rows}
        for signed in chunk:
            row = by_id.get(abs(signed))
            session = row.session if row and row.is_shown else None
            self.scan(abs(signed), session, State.LIVE if signed > 0 else State.UPCOMING)
            if self.is_done:
                return
        if positions is None:
            return
        window = self.window or NO_SLICE
        pulled = sorted((row.position for row in rows if row.is_pulled and row.position is not None), reverse=True)
        bound = max(window.bound, context.pending_bound)
        if len(positions) == count - len(chunk):
            bound = max(bound, positions[-1] - 1)
        if len(pulled) == count:
            bound = max(bound, pulled[-1] - 1)
        by_position = {row.position: row for row in rows if row.position is not None}
        self._remove_from_inbox(by_position)
        for position in sorted({*positions, *pulled}, reverse=True):
            if position <= bound:
                break
            row = by_position.get(position)
            is_shown = row is not None and row.is_shown and row.session.id not in held
            self.scan(position, row.session if row and is_shown else None, State.REPLAY)
            self.below = position
            if self.is_done:
                return
        self.ended = bound <= 0
        self.below = min(self.below, bound + 1)
        # Read the window again from the new position, if it continues there.
        self.is_windowless = bound == max(window.floor, context.pending_bound)
        self.window = None

    def _remove_from_inbox(self, by_position: Mapping[int, VerifiedSession]) -> None:
        """Remove replays of hosts outside the feed from the inbox. Hidden ones stay: showing one again sends no
        delivery.
        """
        window = self.window
        if window is None:
            return
        members = [
            WindowEntry(position, host).member
            for position, host in zip(window.entries, window.senders, strict=True)
            if position in by_position and not by_position[position].belongs
        ]
        if members:
            self.news.commands.append(Replays(self.reader.pk).forget(members, window))

    def _fill_from_sql(self, held: set[int]) -> None:
        self.sources.add("sql")
        count = self.wanted
        rows = pull_bodies(self.reader.pk, below=self.below, count=count, held=id_array(held))
        for replay in rows:
            self.scan(replay.position, replay.session, State.REPLAY)
            if self.is_done:
                return
        self.ended = len(rows) < count

    def page(self, snapshot: WalkSnapshot | None) -> LivePage:
        """The finished page."""
        return LivePage(
            self.shown[: self.limit],
            self.scanned,
            snapshot.session_id if snapshot else None,
            self.is_short or len(self.shown) > self.limit,
            sorted(self.sources),
            self.news,
        )
