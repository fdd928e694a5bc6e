"""The feed of live sessions: what is live or upcoming in a frozen order, then replays (the seed's second half).

Live first, the newest start first; then upcoming, the soonest first; then replays, the newest end first. The first page
freezes what is live and upcoming into a snapshot (live/snapshot.py), and with it the position below which replays
belong to the walk; the following pages go by both, whatever changes meanwhile. Each session is verified when it is
shown: what may not be seen any more is dropped, the order of the others stays, and the page is filled up.

A page costs two SQL queries (context; verify and hydrate), a third where something is not in Redis, and one or two
round trips there, whatever the reader follows. The context query says which version each host's lineup must have; the
sessions of hosts whose lineup is lost or behind come from SQL. Pending deliveries are read before the windows: a replay
that was committed is either still pending then, or in the windows by the time they are read.

Exact at the seam: a session that ended before the freeze was committed has a position below `frozen`, and one whose
end began after it a higher one. Where an end was under way, the session was live in the snapshot; so replays which the
snapshot holds as live are left out of the walk, and nothing comes twice or not at all.

See docs/decisions.md: Readers mend lineups.
"""

import logging
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import DatabaseError

from accounts import policy
from accounts.models import User
from live.hydrate import COLUMNS, SessionBody, body
from live.lineup import SCHEDULED, SCORE, Lineup, Scheduled
from live.models import State
from live.pull import HOSTS, newest, pull_bodies
from live.replays import Replays
from live.snapshot import Slice, Snapshot
from relations import rules
from relations.rules import follows, is_wanted
from storage.connections import Command, FeedsUnavailableError, feeds, feeds_errors, fetch, id_array, pipelined
from storage.queue import enqueue
from storage.window import INFINITY, NO_SLICE, Entry, Window
from storage.window import Slice as WindowSlice

logger = logging.getLogger(__name__)

SLACK = 2
"""Candidates that are verified beyond the page: so many may fail before the page needs a second round."""
DEEPER = 8
"""Each round over what Redis holds is so many times as long as the one before, ..."""
LONGEST = 500
"""... and at most so long."""
BOUND = 2_000
"""Entries of a snapshot that one page looks at; then it answers short."""
REFILLS = 3
"""Rounds over the replays before the rest of the page comes from PostgreSQL."""
REPAIRS = 200
"""Lineups that one page writes at most."""
WRITTEN_WITHIN = timedelta(seconds=5)
"""How long after the first page a snapshot that is not there may still be on its way, ..."""
PATIENCE = 0.5
"""... and how many seconds a page waits for it then."""
PAUSE = 0.02

# Replays of hosts who were big-V are pulled; who has some is few, who one follows may be many.
READER = f"""
    WITH scanned AS MATERIALIZED (
        SELECT d.position, d.host_id FROM live_replaydelivery d WHERE d.position < %(below)s
        ORDER BY d.position DESC LIMIT %(pending)s
    )
    SELECT u.level, u.window_epoch, coalesce({policy.GENERATION}, 0),
        ARRAY(
            SELECT scanned.position FROM scanned WHERE {follows(rules.READER, "scanned.host_id")}
        ),
        CASE WHEN (SELECT count(*) FROM scanned) = %(pending)s THEN (SELECT min(position) - 1 FROM scanned) ELSE 0 END,
        ARRAY(
            SELECT host.user_id FROM live_host host
            WHERE host.has_pulled AND {follows(rules.READER, "host.user_id")}
        )
"""  # noqa: S608 (constants)
FIRST = f"""
    {READER}, (SELECT coalesce(max(position), 0) + 1 FROM live_livesession), lineups.hosts, lineups.versions,
        lineups.scheduled
    FROM accounts_user u CROSS JOIN LATERAL (
        SELECT coalesce(array_agg(host.id), '{{}}') AS hosts, coalesce(array_agg(host.version), '{{}}') AS versions,
            coalesce(sum(host.scheduled), 0)::bigint AS scheduled
        FROM ({HOSTS} AND host.scheduled > 0) host
    ) lineups WHERE u.id = %(reader)s
"""  # noqa: S608 (constants)
NEXT = f"{READER} FROM accounts_user u WHERE u.id = %(reader)s"
# What has ended since the freeze was live then; it has no other place in the walk.
LINEUPS = f"""
    SELECT h.user_id, h.version, s.id, {SCORE} FROM unnest(%(hosts)s::bigint[]) AS wanted (id)
    CROSS JOIN LATERAL (SELECT * FROM live_host h WHERE h.user_id = wanted.id OFFSET 0) h
    LEFT JOIN live_livesession s ON s.host_id = h.user_id AND {SCHEDULED}
    UNION ALL
    SELECT s.host_id, 0, s.id, (extract(epoch FROM s.started_at) * 1000)::bigint
    FROM unnest(%(hosts)s::bigint[]) AS wanted (id)
    JOIN live_livesession s ON s.host_id = wanted.id AND s.state = 'replay' AND s.position >= %(frozen)s
        AND s.hidden_at IS NULL
"""  # noqa: S608
BELONGS = f"({follows(rules.READER, 'l.host_id')} AND {is_wanted(rules.READER, 'l.host_id')})"
# Of the replays that are pulled only those are candidates which may be seen.
PULLED_HOSTS = f"""
    SELECT l.host_id AS id FROM unnest(%(hosts)s::bigint[]) AS l (host_id) CROSS JOIN LATERAL (
        SELECT FROM accounts_user u WHERE u.id = l.host_id AND u.is_active OFFSET 0
    ) u WHERE {BELONGS}
"""  # noqa: S608
VERIFY = f"""
    WITH {newest(PULLED_HOSTS, "l.pulled AND l.hidden_at IS NULL")},
    wanted AS (
        SELECT id, false AS is_pulled FROM unnest(%(ids)s::bigint[]) AS entry (id)
        UNION ALL
        SELECT l.id, false FROM unnest(%(positions)s::bigint[]) AS replay (position)
        CROSS JOIN LATERAL (SELECT s.id FROM live_livesession s WHERE s.position = replay.position OFFSET 0) l
        UNION ALL
        SELECT id, true FROM pulled
    )
    SELECT wanted.is_pulled, {BELONGS},
        l.hidden_at IS NULL AND h.is_active AND l.state IN ('upcoming', 'live', 'replay'), l.position, {COLUMNS}
    FROM wanted
    CROSS JOIN LATERAL (SELECT * FROM live_livesession s WHERE s.id = wanted.id OFFSET 0) l
    CROSS JOIN LATERAL (SELECT * FROM accounts_user u WHERE u.id = l.host_id OFFSET 0) h
"""  # noqa: S608


class Verified(NamedTuple):
    """A row of `VERIFY`: a session, and whether the reader may be shown it."""

    is_pulled: bool
    """Whether it is a replay that no window holds."""
    belongs: bool
    """Whether the reader follows its host; the window forgets a session that does not belong."""
    is_visible: bool
    position: int | None
    """Of a replay."""
    columns: Sequence[Any]
    """live.hydrate.COLUMNS"""

    @classmethod
    def of(cls, row: Sequence[Any]) -> "Verified":
        """The entry of a row of the verifying columns."""
        is_pulled, belongs, is_visible, position, *columns = row
        return cls(is_pulled, belongs, is_visible, position, columns)

    @property
    def session_id(self) -> int:
        """The session's id."""
        session_id: int = self.columns[0]
        return session_id

    @property
    def is_shown(self) -> bool:
        """Whether the session belongs to the feed and may be shown."""
        return self.belongs and self.is_visible


class UnknownSnapshotError(LookupError):
    """The reader was never given that session_id."""


class SnapshotExpiredError(Exception):
    """The walk paused for too long, or what it goes by was lost; a new one can begin."""


@dataclass(slots=True)
class Page:
    """A page of the feed. `last_id` is the session or position that was looked at last, `session_id` names the walk;
    `has_more` is true only if another session exists, or if the page is short because it came to its bound of work.
    The sender of the page calls `keep` afterwards.
    """

    items: list[SessionBody]
    last_id: int | None
    session_id: str | None
    has_more: bool
    sources: list[str]
    news: "_News"

    def keep(self) -> None:
        """Tell Redis what the page froze and found out, off the reader's path. Nothing of it can fail the page: a
        snapshot that is lost is a walk that has to begin anew.
        """
        self.news.tell()


@dataclass(slots=True)
class _Context:
    """The reader's facts in PostgreSQL, read before Redis is asked."""

    level: int
    window_epoch: int
    generation: int
    """The policy's; 0: neither window nor lineup is to be used."""
    pending: list[int]
    """Positions of followed hosts' replays whose fan-out is not complete, ..."""
    pending_bound: int
    """... complete above this one."""
    pulled: list[int]
    """Followed hosts some of whose replays are pulled."""
    frozen: int = 0
    hosts: list[int] = field(default_factory=list)
    """Followed hosts who have something scheduled, ..."""
    versions: list[int] = field(default_factory=list)
    """... and the versions of their lineups."""
    scheduled: int = 0

    @property
    def epoch(self) -> int:
        """What the reader's window must have been built for, as policy.EPOCH says it."""
        return self.window_epoch ^ self.generation


@dataclass(slots=True)
class _News:
    """The commands for Redis when the page is sent."""

    now: datetime
    commands: list[Command] = field(default_factory=list)
    wished: tuple[Replays, int] | None = None
    """The inbox of replays, where it is missing, and the epoch that it is wanted for."""
    snapshot: Snapshot | None = None
    entries: list[int] = field(default_factory=list)
    lives: int = 0

    def tell(self) -> None:
        commands, token = list(self.commands), secrets.token_hex(8)
        if self.snapshot:
            commands.insert(0, self.snapshot.writing(self.entries, self.lives))
        if self.wished:
            window, epoch = self.wished
            commands.insert(0, window.begin(token, epoch))
        if not commands:
            return
        try:
            with feeds_errors():
                replies = pipelined(feeds(), commands)
        except FeedsUnavailableError:
            self._keep()
            return
        # However many pages ask at once, one of them begins, and one task builds.
        if self.wished and replies[0]:
            enqueue(self.wished[0].builder, self.wished[0].user_id, token)

    def _keep(self) -> None:
        if self.snapshot:
            try:
                self.snapshot.keep(self.entries, self.lives, self.now)
            except DatabaseError:
                logger.exception("a snapshot is lost; its walk begins anew")


class _Entries:
    """The entries of a walk that are still ahead, in the frozen order: ids, minus the id where upcoming."""

    def __init__(self, entries: list[int], lives: Iterable[int], *, more: Snapshot | None = None) -> None:
        self._entries = entries
        self._more = more  # where the rest is to be read
        self.held = set(lives)
        """Sessions that were live and so have no place among the replays; known when the last entry is taken."""

    def take(self, count: int, last_id: int | None) -> list[int]:
        """The next ones, at most `count`; fewer only where the snapshot ends. Raises SnapshotExpiredError."""
        if not self._entries and self._more:
            try:
                with feeds_errors():
                    read = Snapshot.slice(pipelined(feeds(), [self._more.reading(last_id, count)])[0])
            except FeedsUnavailableError:
                read = None
            if read is None:
                raise SnapshotExpiredError
            self._entries, self._more = read.entries, self._more if len(read.entries) == count else None
            self.held.update(read.lives)
        taken, self._entries = self._entries[:count], self._entries[count:]
        return taken


@dataclass(slots=True)
class _Walk:
    """A page in the making."""

    reader: User
    limit: int
    context: _Context
    below: int
    """The position that the replays have come to."""
    news: _News
    window: WindowSlice | None = None
    """The inbox of replays, read `window_count` deep below `below`; None where that is still to be done, ..."""
    window_count: int = 0
    is_windowless: bool = False
    """... or where it cannot be used."""
    shown: list[SessionBody] = field(default_factory=list)
    scanned: int | None = None
    ended: bool = False
    is_short: bool = False
    """Whether the bound of work was reached before the page was full."""
    sources: set[str] = field(default_factory=set)

    @property
    def is_done(self) -> bool:
        return self.ended or len(self.shown) > self.limit

    @property
    def wanted(self) -> int:
        """Candidates for the rest: one more than the page shows proves that there is more."""
        return self.limit + 1 - len(self.shown) + SLACK

    def scan(self, last_id: int, columns: Sequence[Any] | None, shown_as: str) -> None:
        """Pass what stands at `last_id`; `columns` make its body if the reader sees it."""
        if len(self.shown) < self.limit:
            self.scanned = last_id
        if columns is not None:
            self.shown.append(body(columns, shown_as))


def live_page(
    reader: User,
    *,
    session_id: str | None = None,
    last_id: int | None = None,
    page_size: int = 20,
    now: datetime,
) -> Page:
    """A page of the walk `session_id` after `last_id`; of a new one without both. Without a walk, `last_id` is a
    position among the replays. Raises UnknownSnapshotError, SnapshotExpiredError.
    """
    if session_id is None and last_id is None:
        return _first_page(reader, page_size, now)
    snapshot = None
    if session_id is not None:
        snapshot = Snapshot.named(session_id, reader.pk)
        if snapshot is None:
            raise UnknownSnapshotError
    return _next_page(reader, snapshot, last_id, page_size, now)


# --- The first page --------------------------------------------------------------------------------------
def _first_page(reader: User, page_size: int, now: datetime) -> Page:
    context = _context(reader, FIRST, INFINITY)
    walk = _begin(reader, context, page_size, context.frozen, now)
    scheduled = _freeze(walk)
    lives = sum(score > 0 for score, _ in scheduled)
    entries = [session_id if place < lives else -session_id for place, (_, session_id) in enumerate(scheduled)]
    snapshot = walk.news.snapshot = Snapshot.take(reader.pk, context.frozen, entries, lives, now)
    walk.news.entries, walk.news.lives = entries, lives
    _fill(walk, _Entries(entries, entries[:lives]))
    return _page(walk, snapshot)


def _freeze(walk: _Walk) -> list[tuple[int, int]]:
    """What all followed hosts have live and upcoming, in the feed's order, as (score, id)."""
    context, found = walk.context, list[tuple[int, int]]()
    lost: list[int] = []
    commands = list(map(Lineup.packed, context.hosts))
    mark = Lineup.mark(context.generation)
    # Scheduled sessions fill the page, as far as PostgreSQL has counted: then no replay is asked for.
    count = walk.wanted if context.scheduled < walk.wanted else 0
    try:
        with feeds_errors():
            replies = _read(walk, commands, count)
        for host, version, reply in zip(context.hosts, context.versions, replies, strict=True):
            entries = Lineup.scheduled(reply, mark, version)
            if entries is None:
                lost.append(host)
            else:
                found += entries
        if len(lost) < len(context.hosts) or not lost:
            walk.sources.add("lineup")
        repairs = REPAIRS if context.generation else 0
    except FeedsUnavailableError:
        walk.is_windowless = True
        found, lost, repairs = [], context.hosts, 0
    if lost:
        found += _from_sql(walk, lost, repairs)
    live = sorted((entry for entry in found if entry[0] > 0), reverse=True)
    upcoming = sorted((-score, session_id) for score, session_id in found if score <= 0)
    return live + [(-start, session_id) for start, session_id in upcoming]


def _from_sql(walk: _Walk, hosts: list[int], repairs: int) -> list[tuple[int, int]]:
    """The same for hosts whose lineup cannot be used; `repairs` of them are written again when the page is sent."""
    walk.sources.add("sql")
    versions: dict[int, int] = {}
    lineups: dict[int, list[Scheduled]] = {}
    found: list[tuple[int, int]] = []
    for host, version, session_id, score in fetch(LINEUPS, {"hosts": id_array(hosts), "frozen": walk.context.frozen}):
        if version:
            versions[host] = version
        if session_id is not None:
            found.append((score, session_id))
            if version:
                lineups.setdefault(host, []).append(Scheduled(session_id, score))
    walk.news.commands += [
        Lineup(host).put(walk.context.generation, version, lineups.get(host, []))
        for host, version in list(versions.items())[:repairs]
    ]
    return found


# --- Following pages -------------------------------------------------------------------------------------
def _next_page(reader: User, snapshot: Snapshot | None, last_id: int | None, page_size: int, now: datetime) -> Page:
    top = snapshot.frozen if snapshot else INFINITY
    context = _context(reader, NEXT, top)
    # Most pages that need replays go on among them; where `last_id` is a session's, they begin at the top.
    walk = _begin(reader, context, page_size, min(top, last_id or top), now)
    if snapshot is None:
        _fill(walk, _Entries([], []))
        return _page(walk, None)
    read, more = _resume(walk, snapshot, last_id, now)
    if read.is_entry:
        walk.sources.add("snapshot")
        if walk.below != top:
            walk.below, walk.window = top, None
    _fill(walk, _Entries(read.entries, read.lives, more=more))
    return _page(walk, snapshot)


def _resume(walk: _Walk, snapshot: Snapshot, last_id: int | None, now: datetime) -> tuple[Slice, Snapshot | None]:
    """What the snapshot holds after `last_id`, and the snapshot itself where it may hold more.

    One that is so young that it may not be written yet is waited for.
    """
    count, deadline = walk.wanted, time.monotonic() + PATIENCE
    while True:
        with suppress(FeedsUnavailableError), feeds_errors():
            replies = _read(walk, [snapshot.reading(last_id, count)], count)
            if read := Snapshot.slice(replies[0]):
                return read, snapshot if len(read.entries) == count else None
        if kept := snapshot.kept(last_id, now):
            return kept, None
        if snapshot.age(now) > WRITTEN_WITHIN or time.monotonic() > deadline:
            raise SnapshotExpiredError
        time.sleep(PAUSE)


# --- What all pages share --------------------------------------------------------------------------------
def _context(reader: User, query: str, below: int) -> _Context:
    params = {"reader": reader.pk, "below": below, "pending": settings.PENDING_CAP + 1}
    return _Context(*fetch(query, params)[0])


def _begin(reader: User, context: _Context, page_size: int, below: int, now: datetime) -> _Walk:
    walk = _Walk(reader, page_size, context, below, _News(now))
    if not (context.level and context.generation):
        walk.is_windowless = True
    return walk


def _read(walk: _Walk, commands: Sequence[Command | bytes], count: int) -> list[Any]:
    """The replies to commands, in the same round trip as the inbox of replays, which `count` asks for."""
    if walk.is_windowless or not count:
        return pipelined(feeds(), commands)
    window = Replays(walk.reader.pk)
    *replies, reply = pipelined(feeds(), [*commands, window.reading(walk.below, count)])
    walk.window, walk.window_count = Window.slice(reply, count, walk.context.epoch), count
    if not walk.window.is_usable:
        walk.is_windowless = True
        walk.news.wished = (window, walk.context.epoch)
    return replies


def _fill(walk: _Walk, entries: _Entries) -> None:
    """Fill the page: entries first, then replays from the inbox, the pending deliveries and those that are pulled, and
    from PostgreSQL what these do not have. Past `BOUND` entries that may not be seen any more the page is short.
    """
    count = walk.wanted
    refills = looked = 0
    while not walk.is_done:
        if looked == BOUND:
            walk.is_short = True
            return
        count = min(count, BOUND - looked)
        chunk = entries.take(count, walk.scanned)
        looked += len(chunk)
        positions: list[int] | None = None
        if len(chunk) < count and refills < REFILLS:
            refills += 1
            positions = _candidates(walk, count - len(chunk), needed=walk.limit - len(walk.shown) - len(chunk))
        if chunk or positions is not None:
            _verify(walk, chunk, positions, count, entries.held)
        if len(chunk) < count and positions is None:
            break
        count = min(count * DEEPER, LONGEST)
    if not walk.is_done:
        _pull(walk, entries.held)


def _candidates(walk: _Walk, count: int, needed: int) -> list[int] | None:
    """Positions of replays below `walk.below`, newest first, at most `count`, from the inbox and the deliveries; None
    where PostgreSQL has to serve the rest: without a window, and where it ends before the page does.
    """
    if walk.is_windowless:
        return None
    if walk.window is None or walk.window_count < count:
        try:
            with feeds_errors():
                _read(walk, [], count)
        except FeedsUnavailableError:
            walk.is_windowless = True
        if walk.is_windowless or walk.window is None:
            return None
    bound = max(walk.window.bound, walk.context.pending_bound)
    pending = [position for position in walk.context.pending if bound < position < walk.below]
    found = {*pending, *(position for position in walk.window.entries if position > bound)}
    if bound > 0 and len(found) < min(count, needed):
        return None
    walk.sources.add("inbox")
    if pending:
        walk.sources.add("pending")
    return sorted(found, reverse=True)[:count]


def _verify(walk: _Walk, chunk: list[int], positions: list[int] | None, count: int, held: set[int]) -> None:
    """Ask PostgreSQL for the candidates, and pass those that are known to come next."""
    context, replays = walk.context, positions is not None
    rows = fetch(
        VERIFY,
        {
            "reader": walk.reader.pk,
            "ids": id_array(map(abs, chunk)),
            "positions": id_array(positions or ()),
            "hosts": id_array(context.pulled if replays else ()),
            "below": walk.below,
            "count": count,
        },
        into=Verified.of,
    )
    by_id = {row.session_id: row for row in rows}
    for signed in chunk:
        row = by_id.get(abs(signed))
        columns = row.columns if row and row.is_shown else None
        walk.scan(abs(signed), columns, State.LIVE if signed > 0 else State.UPCOMING)
        if walk.is_done:
            return
    if positions is None:
        return
    window = walk.window or NO_SLICE
    pulled = sorted((row.position for row in rows if row.is_pulled and row.position is not None), reverse=True)
    bound = max(window.bound, context.pending_bound)
    if len(positions) == count - len(chunk):
        bound = max(bound, positions[-1] - 1)
    if len(pulled) == count:
        bound = max(bound, pulled[-1] - 1)
    by_position = {row.position: row for row in rows if row.position is not None}
    _forget(walk, by_position)
    for position in sorted({*positions, *pulled}, reverse=True):
        if position <= bound:
            break
        row = by_position.get(position)
        is_shown = row is not None and row.is_shown and row.session_id not in held
        walk.scan(position, row.columns if row and is_shown else None, State.REPLAY)
        walk.below = position
        if walk.is_done:
            return
    walk.ended = bound <= 0
    walk.below = min(walk.below, bound + 1)
    # The window is read again from where the page has come to, if it goes on there.
    walk.is_windowless = bound == max(window.floor, context.pending_bound)
    walk.window = None


def _forget(walk: _Walk, by_position: Mapping[int, Verified]) -> None:
    """Lazy delete of what the reader does not follow any more. Hidden replays stay: the windows are not told when one
    is shown again.
    """
    window = walk.window
    if window is None:
        return
    members = [
        Entry(position, host).member
        for position, host in zip(window.entries, window.senders, strict=True)
        if position in by_position and not by_position[position].belongs
    ]
    if members:
        walk.news.commands.append(Replays(walk.reader.pk).forget(members, window))


def _pull(walk: _Walk, held: set[int]) -> None:
    """Fill the page with replays from PostgreSQL, which knows all of them."""
    walk.sources.add("sql")
    count = walk.wanted
    rows = pull_bodies(walk.reader.pk, below=walk.below, count=count, held=id_array(held))
    for position, *columns in rows:
        walk.scan(position, columns, State.REPLAY)
        if walk.is_done:
            return
    walk.ended = len(rows) < count


def _page(walk: _Walk, snapshot: Snapshot | None) -> Page:
    return Page(
        walk.shown[: walk.limit],
        walk.scanned,
        snapshot.session_id if snapshot else None,
        walk.is_short or len(walk.shown) > walk.limit,
        sorted(walk.sources),
        walk.news,
    )
