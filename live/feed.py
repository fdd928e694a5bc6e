"""The feed of live sessions: live (newest start first), upcoming (soonest first), replays (newest end first).

Pending deliveries are read before windows, so a committed replay is in one of them. An end committed before the freeze
has a position below `frozen`. If the end was still in progress, the snapshot has the session as live, and the replays
leave it out.

See docs/decisions.md: Lineups are whole, walks are frozen.
"""

import time
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings

from accounts.levels import policy
from accounts.models import User
from live.lineup import SCORE, Lineup, ScheduledEntry
from live.pull import HOSTS
from live.snapshot import SnapshotExpiredError, SnapshotSlice, UnknownSnapshotError, WalkSnapshot
from live.visibility import in_lineup, unhidden
from live.walk import FrozenEntries, LivePage, LiveWalk, PendingWrites, ReaderFacts
from relations import rules
from relations.rules import follows
from storage.connections import FeedsUnavailableError, feeds_errors, fetch, id_array
from storage.window import INFINITY

REPAIRS = 200
"""Maximum lineups that one page rewrites."""
WRITTEN_WITHIN = timedelta(seconds=5)
"""A missing snapshot may still be on its way for this long after the first page."""
WAIT_SECONDS = 0.5
"""How long a page waits for a missing snapshot."""
PAUSE_SECONDS = 0.02

# Few hosts have pulled replays, but a reader may follow many hosts.
SNAPSHOT_OF = f"""
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
"""
FIRST = f"""
    {SNAPSHOT_OF}, (SELECT coalesce(max(position), 0) + 1 FROM live_livesession), lineups.hosts, lineups.versions,
        lineups.scheduled
    FROM accounts_user u CROSS JOIN LATERAL (
        SELECT coalesce(array_agg(host.id), '{{}}') AS hosts, coalesce(array_agg(host.version), '{{}}') AS versions,
            coalesce(sum(host.scheduled), 0)::bigint AS scheduled
        FROM ({HOSTS} AND host.scheduled > 0) host
    ) lineups WHERE u.id = %(reader)s
"""
NEXT = f"{SNAPSHOT_OF} FROM accounts_user u WHERE u.id = %(reader)s"
# A session that has ended since the freeze was live then, and appears nowhere else in the walk.
LINEUPS = f"""
    SELECT h.user_id, h.version, s.id, {SCORE} FROM unnest(%(hosts)s::bigint[]) AS wanted (id)
    CROSS JOIN LATERAL (SELECT * FROM live_host h WHERE h.user_id = wanted.id OFFSET 0) h
    LEFT JOIN live_livesession s ON s.host_id = h.user_id AND {in_lineup("s")}
    UNION ALL
    SELECT s.host_id, 0, s.id, (extract(epoch FROM s.started_at) * 1000)::bigint
    FROM unnest(%(hosts)s::bigint[]) AS wanted (id)
    JOIN live_livesession s ON s.host_id = wanted.id AND s.state = 'replay' AND s.position >= %(frozen)s
        AND {unhidden("s")}
"""


class HostLineupRow(NamedTuple):
    """A row of `LINEUPS`."""

    host_id: int
    version: int
    """The host's version; 0 for a replay."""
    session_id: int | None
    """None if the host has no sessions."""
    score: int


def live_page(
    reader: User,
    *,
    session_id: str | None = None,
    last_id: int | None = None,
    page_size: int = 20,
    now: datetime,
) -> LivePage:
    """The page after `last_id` of a walk, or the first of a new one. Without a walk, `last_id` is a replay's position.
    Raises UnknownSnapshotError and SnapshotExpiredError.
    """
    if session_id is None and last_id is None:
        return _first_page(reader, page_size, now)
    snapshot = None
    if session_id is not None:
        snapshot = WalkSnapshot.named(session_id, reader.pk)
        if snapshot is None:
            raise UnknownSnapshotError
    return _next_page(reader, snapshot, last_id, page_size, now)


# --- The first page --------------------------------------------------------------------------------------
def _first_page(reader: User, page_size: int, now: datetime) -> LivePage:
    context = _fetch_reader_facts(reader, FIRST, INFINITY)
    walk = _walk_for_page(reader, context, page_size, context.frozen, now)
    scheduled = _freeze_entries(walk)
    lives = sum(score > 0 for score, _ in scheduled)
    entries = [session_id if place < lives else -session_id for place, (_, session_id) in enumerate(scheduled)]
    snapshot = walk.news.snapshot = WalkSnapshot.take(reader.pk, context.frozen, entries, lives, now)
    walk.news.entries, walk.news.lives = entries, lives
    walk.fill(FrozenEntries(entries, entries[:lives]))
    return walk.page(snapshot)


def _freeze_entries(walk: LiveWalk) -> list[tuple[int, int]]:
    context, found = walk.context, list[tuple[int, int]]()
    lost: list[int] = []
    commands = list(map(Lineup.packed, context.hosts))
    mark = Lineup.mark(context.generation)
    # If scheduled sessions fill the page, as PostgreSQL has counted, do not read replays.
    count = walk.wanted if context.scheduled < walk.wanted else 0
    try:
        with feeds_errors():
            replies = walk.read(commands, count)
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


def _from_sql(walk: LiveWalk, hosts: list[int], repairs: int) -> list[tuple[int, int]]:
    """Sessions of these hosts from PostgreSQL, as (score, id). Up to `repairs` of their lineups are written to Redis
    again.
    """
    walk.sources.add("sql")
    versions: dict[int, int] = {}
    lineups: dict[int, list[ScheduledEntry]] = {}
    found: list[tuple[int, int]] = []
    params = {"hosts": id_array(hosts), "frozen": walk.context.frozen}
    for row in fetch(LINEUPS, params, into=HostLineupRow._make):
        if row.version:
            versions[row.host_id] = row.version
        if row.session_id is not None:
            found.append((row.score, row.session_id))
            if row.version:
                lineups.setdefault(row.host_id, []).append(ScheduledEntry(row.session_id, row.score))
    walk.news.commands += [
        Lineup(host).put(walk.context.generation, version, lineups.get(host, []))
        for host, version in list(versions.items())[:repairs]
    ]
    return found


# --- Following pages -------------------------------------------------------------------------------------
def _next_page(
    reader: User, snapshot: WalkSnapshot | None, last_id: int | None, page_size: int, now: datetime
) -> LivePage:
    top = snapshot.frozen if snapshot else INFINITY
    context = _fetch_reader_facts(reader, NEXT, top)
    # Most pages that need replays continue among them. If `last_id` is a session, replays begin at the top.
    walk = _walk_for_page(reader, context, page_size, min(top, last_id or top), now)
    if snapshot is None:
        walk.fill(FrozenEntries([], []))
        return walk.page(None)
    read, more = _resume(walk, snapshot, last_id, now)
    if read.is_entry:
        walk.sources.add("snapshot")
        if walk.below != top:
            walk.below, walk.window = top, None
    walk.fill(FrozenEntries(read.entries, read.lives, more=more))
    return walk.page(snapshot)


def _resume(
    walk: LiveWalk, snapshot: WalkSnapshot, last_id: int | None, now: datetime
) -> tuple[SnapshotSlice, WalkSnapshot | None]:
    """The next sessions, and the snapshot if more. Waits for one being written."""
    count, deadline = walk.wanted, time.monotonic() + WAIT_SECONDS
    while True:
        with suppress(FeedsUnavailableError), feeds_errors():
            replies = walk.read([snapshot.read_command(last_id, count)], count)
            if read := WalkSnapshot.slice(replies[0]):
                return read, snapshot if len(read.entries) == count else None
        if kept := snapshot.read_from_postgresql(last_id, now):
            return kept, None
        if snapshot.age(now) > WRITTEN_WITHIN or time.monotonic() > deadline:
            raise SnapshotExpiredError
        time.sleep(PAUSE_SECONDS)


# --- Parts that all pages share --------------------------------------------------------------------------
def _fetch_reader_facts(reader: User, query: str, below: int) -> ReaderFacts:
    params = {"reader": reader.pk, "below": below, "pending": settings.PENDING_CAP + 1}
    return ReaderFacts(*fetch(query, params)[0])


def _walk_for_page(reader: User, context: ReaderFacts, page_size: int, below: int, now: datetime) -> LiveWalk:
    walk = LiveWalk(reader, page_size, context, below, PendingWrites(now))
    if not (context.level and context.generation):
        walk.is_windowless = True
    return walk
