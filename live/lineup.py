"""The lineup of a host in Redis: their live and upcoming sessions, with a version.

Members of the ZSET, which is in the feed's order from the top:

- a live session's id; score: ms since 1970 of its start
- an upcoming session's id; score: minus the ms of its planned start
- `version:{generation}`; score: minus the host's version, an id above 2^50, so always the lowest

Readers compare version and generation with PostgreSQL and ignore others, so late, repeated or unordered writes are
harmless.

See docs/decisions.md: Lineups are whole, walks are frozen.
"""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import F

from accounts.levels import policy
from live.models import Host
from live.visibility import in_lineup
from storage import ids, keys
from storage.connections import (
    Command,
    FeedsUnavailableError,
    feeds_errors,
    feeds_for_tasks,
    fetch,
    pipelined,
    register_script,
)
from storage.queue import task

logger = logging.getLogger(__name__)

TTL_SECONDS = int(timedelta(days=30).total_seconds())
UNAPPLIED = timedelta(seconds=5)
"""How long the queue may take before the sweeper queues again."""
SWEEP_LENGTH = 1000

SCORE = """
    (CASE s.state WHEN 'live' THEN extract(epoch FROM s.started_at) ELSE -extract(epoch FROM s.starts_at) END
        * 1000)::bigint
"""
"""The score of a live or upcoming session `s`."""
CURRENT = f"""
    SELECT {policy.GENERATION}, h.version, s.id, {SCORE} FROM live_host h
    LEFT JOIN live_livesession s ON s.host_id = h.user_id AND {in_lineup("s")}
    WHERE h.user_id = %(host)s
"""
LEFT = "(SELECT NULL::timestamptz FROM live_host WHERE applied <> version)"
# KEYS[1]; ARGV: generation, version, TTL in seconds, then pairs of score and member. Returns the stored version.
PUT = register_script(
    """
    local mark = 'version:' .. ARGV[1]
    local stored = redis.call('ZSCORE', KEYS[1], mark)
    if stored and -tonumber(stored) >= tonumber(ARGV[2]) then return string.format('%.0f', -tonumber(stored)) end
    redis.call('DEL', KEYS[1])
    redis.call('ZADD', KEYS[1], -tonumber(ARGV[2]), mark, unpack(ARGV, 4))
    redis.call('EXPIRE', KEYS[1], ARGV[3])
    return ARGV[2]
    """
)


READING = b"*5\r\n$6\r\nZRANGE\r\n$%d\r\n%b\r\n$1\r\n0\r\n$2\r\n-1\r\n$10\r\nWITHSCORES\r\n"


class ScheduledEntry(NamedTuple):
    """An entry of a lineup."""

    session_id: int
    score: int


class Lineup:
    """A host's lineup. Methods named after a command return it for `connections.pipelined`."""

    __slots__ = ("key",)

    def __init__(self, host_id: int) -> None:
        self.key = keys.lineup(host_id)

    def read_command(self) -> Command:
        """Read the whole lineup. `read` parses the reply."""
        return ("ZRANGE", self.key, 0, -1, "WITHSCORES")

    @staticmethod
    def read(reply: Sequence[bytes]) -> tuple[int, list[ScheduledEntry]]:
        """The version (0: no lineup), and entries by score."""
        if len(reply) < 2 or not reply[0].startswith(b"version:"):
            return 0, []
        entries = [
            ScheduledEntry(int(member), int(float(score)))
            for member, score in zip(reply[2::2], reply[3::2], strict=True)
        ]
        return -int(float(reply[1])), entries

    @staticmethod
    def packed(host_id: int) -> bytes:
        """Raw RESP of `read_command`: a page may read very many."""
        key = keys.lineup(host_id).encode()
        return READING % (len(key), key)

    @staticmethod
    def scheduled(reply: Sequence[bytes], mark: bytes, version: int) -> list[tuple[int, int]] | None:
        """Entries of the raw reply as (score, session id), unordered. None for another version or generation."""
        if len(reply) < 2 or reply[0] != mark or -int(float(reply[1])) != version:
            return None
        return list(zip(map(int, reply[3::2]), map(int, reply[2::2]), strict=True))

    def put(self, generation: int, version: int, entries: Sequence[ScheduledEntry]) -> Command:
        """Write the whole lineup, unless the stored one is as new or newer. Returns the stored version."""
        pairs = [part for entry in entries for part in (entry.score, entry.session_id)]
        return ("EVALSHA", PUT, 1, self.key, generation, version, TTL_SECONDS, *pairs)

    @staticmethod
    def mark(generation: int) -> bytes:
        """The member with the version."""
        return b"version:%d" % generation

    def drop(self) -> Command:
        """Delete the lineup. Always safe: readers fall back to PostgreSQL."""
        return ("UNLINK", self.key)


@task("live.apply")
def apply(host_id: int) -> bool:
    """Write the committed lineup. False without Redis."""
    generation, version, entries = _fetch_current(host_id)
    if not version:
        return True
    if generation is None:
        return False
    lineup = Lineup(host_id)
    try:
        with feeds_errors():
            if _write_lineup(lineup, generation, version, entries) > version:
                # The newer version came from PostgreSQL, so PostgreSQL must know it by now. If not, somebody restored
                # an older database without our command, and the lineup is from a lost future.
                generation, version, entries = _fetch_current(host_id)
                if generation is not None and _write_lineup(lineup, generation, version, entries) > version:
                    pipelined(feeds_for_tasks(), [lineup.drop(), lineup.put(generation, version, entries)])
    except FeedsUnavailableError as error:
        logger.warning("the lineup of host %s was not updated. It is tried again: %s", host_id, error)
        return False
    Host.objects.behind().filter(pk=host_id, version=version).update(applied=F("version"))
    return True


class _LineupRow(NamedTuple):
    generation: int | None
    version: int
    session_id: int | None
    score: int


def _fetch_current(host_id: int) -> tuple[int | None, int, list[ScheduledEntry]]:
    rows = fetch(CURRENT, {"host": host_id}, into=_LineupRow._make)
    if not rows:
        return None, 0, []
    entries = [ScheduledEntry(row.session_id, row.score) for row in rows if row.session_id is not None]
    return rows[0].generation, rows[0].version, entries


def _write_lineup(lineup: Lineup, generation: int, version: int, entries: Sequence[ScheduledEntry]) -> int:
    return int(pipelined(feeds_for_tasks(), [lineup.put(generation, version, entries)])[0])


def queue_outdated(*, now: datetime) -> int:
    """Queue outdated lineups again. Return their number."""
    behind = Host.objects.behind().filter(version__lt=ids.compose(now - UNAPPLIED, 0)).order_by("version")
    host_ids = list(behind.values_list("pk", flat=True)[:SWEEP_LENGTH])
    for host_id in host_ids:
        if not apply.delay(host_id):
            break
    return len(host_ids)
