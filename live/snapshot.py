"""Snapshots: the frozen order of live and upcoming sessions of a walk.

`session_id` names a walk: frozen position, time, digest of the order, and an HMAC over these and the reader. Walks of
equal order share a snapshot.

In Redis it is a LIST: `h` and the number of live entries, then ids in frozen order, negative if upcoming (11 bytes
each). Without Redis it is a row (models.KeptSnapshot).

See docs/decisions.md: Lineups are whole, walks are frozen.
"""

import base64
import hashlib
import hmac
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.utils.crypto import salted_hmac

from storage import keys
from storage.connections import Command, fetch, id_array, register_script
from storage.site_key import known_keys
from web.refusals import RefusalError

SALT = "live.snapshot"
SEAL_BYTES = 16
DIGEST_BYTES = 12
FIELDS = struct.Struct(f">QQ{DIGEST_BYTES}s")
"""Frozen position, ms since 1970, digest."""
FORGET_LENGTH = 1_000

# Mark a snapshot as used. The least recently used one is dropped first.
USE = """
    local function use(index, key, digest, seconds, option)
        local moment = redis.call('TIME')
        redis.call('ZADD', index, option, string.format('%.0f', moment[1] * 1000000 + moment[2]), digest)
        redis.call('EXPIRE', index, seconds)
        redis.call('EXPIRE', key, seconds)
    end
"""
# KEYS: snapshot, index; ARGV: digest, last id (0: from the top), count, TTL in seconds. If fewer than `count` entries
# are left, also returns the live ones, which the following replays leave out.
READ = register_script(
    USE
    + """
    local key = KEYS[1]
    local head = redis.call('LINDEX', key, 0)
    if not head then return false end
    local last, count = ARGV[2], tonumber(ARGV[3])
    use(KEYS[2], key, ARGV[1], ARGV[4], 'XX')
    local lives = tonumber(string.sub(head, 2))
    local at = 0
    if last ~= '0' then at = redis.call('LPOS', key, last) or redis.call('LPOS', key, '-' .. last) end
    local entries = at and redis.call('LRANGE', key, at + 1, at + count) or {}
    if #entries == count then return {1, entries, {}} end
    return {at and 1 or 0, entries, lives > 0 and redis.call('LRANGE', key, 1, lives) or {}}
    """
)
# KEYS: snapshot, index; ARGV: digest, TTL in seconds, maximum snapshots, live entries, entries. Dropped snapshots are
# in the same slot, because keys differ only in the digest at the end.
WRITE = register_script(
    USE
    + """
    local key, index = KEYS[1], KEYS[2]
    if redis.call('EXISTS', key) == 0 then
        redis.call('RPUSH', key, 'h' .. ARGV[4])
        for first = 5, #ARGV, 1000 do
            redis.call('RPUSH', key, unpack(ARGV, first, math.min(first + 999, #ARGV)))
        end
    end
    use(index, key, ARGV[1], ARGV[2], 'GT')
    local prefix, over = string.sub(key, 1, -1 - #ARGV[1]), redis.call('ZCARD', index) - ARGV[3]
    if over > 0 then
        local popped = redis.call('ZPOPMIN', index, over)
        for at = 1, #popped, 2 do redis.call('UNLINK', prefix .. popped[at]) end
    end
    return 1
    """
)
READ_KEPT = """
    UPDATE live_walksnapshot SET expires_at = %(expires_at)s
    WHERE reader_id = %(reader)s AND digest = %(digest)s AND expires_at > %(now)s RETURNING lives, entries
"""
# Concurrent calls may each keep one too many. The next call deletes them.
KEEP = """
    WITH over AS (
        DELETE FROM live_walksnapshot WHERE id = ANY(ARRAY(
            SELECT id FROM live_walksnapshot WHERE reader_id = %(reader)s AND digest <> %(digest)s
            ORDER BY expires_at DESC OFFSET %(others)s FOR UPDATE SKIP LOCKED
        ))
    )
    INSERT INTO live_walksnapshot (reader_id, digest, lives, entries, expires_at)
    VALUES (%(reader)s, %(digest)s, %(lives)s, %(entries)s::bigint[], %(expires_at)s)
    ON CONFLICT (reader_id, digest) DO UPDATE SET expires_at = excluded.expires_at RETURNING id
"""
OVER = """
    DELETE FROM live_walksnapshot WHERE id = ANY(ARRAY(
        SELECT id FROM live_walksnapshot WHERE expires_at <= %(now)s ORDER BY expires_at LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
    )) RETURNING 1
"""


class UnknownSnapshotError(RefusalError, LookupError):
    """The reader was never given this session_id."""

    status = HTTPStatus.NOT_FOUND


class SnapshotExpiredError(RefusalError):
    """The walk paused too long, or its snapshot was lost."""

    status = HTTPStatus.GONE
    code = "snapshot_expired"
    sentence = "This walk has expired; begin a new one."


@dataclass(frozen=True, slots=True)
class SnapshotSlice:
    """Entries of a snapshot. If not `is_entry`, the requested id is a replay's position."""

    is_entry: bool
    entries: list[int]
    lives: list[int]


class WalkSnapshot:
    """The snapshot of a walk. Methods named after a command return it for `connections.pipelined`."""

    __slots__ = ("digest", "frozen", "index", "key", "reader_id", "session_id", "taken_at")

    def __init__(self, session_id: str, reader_id: int, frozen: int, taken_at: int, digest: bytes) -> None:
        self.session_id = session_id
        self.reader_id = reader_id
        self.frozen = frozen
        self.taken_at = taken_at
        self.digest = digest.hex()
        self.key = keys.snapshot(reader_id, self.digest)
        self.index = keys.snapshots(reader_id)

    @classmethod
    def take(cls, reader_id: int, frozen: int, entries: Sequence[int], lives: int, now: datetime) -> "WalkSnapshot":
        """Name a new walk. The first `lives` of `entries` were live."""
        taken_at = int(now.timestamp() * 1000)
        order = ",".join(map(str, (frozen, lives, *entries)))
        digest = hashlib.blake2b(order.encode(), digest_size=DIGEST_BYTES).digest()
        fields = FIELDS.pack(frozen, taken_at, digest)
        text = base64.urlsafe_b64encode(fields + _seal(reader_id, fields, settings.SECRET_KEY)).rstrip(b"=").decode()
        return cls(text, reader_id, frozen, taken_at, digest)

    @classmethod
    def named(cls, session_id: str, reader_id: int) -> "WalkSnapshot | None":
        """The walk, or None if the name is not this reader's."""
        try:
            text = session_id.encode("ascii")
            data = base64.b64decode(text + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except ValueError:
            return None
        fields, seal = data[: FIELDS.size], data[FIELDS.size :]
        # Only one spelling per walk: the last letter has unused bits.
        if len(data) != FIELDS.size + SEAL_BYTES or base64.urlsafe_b64encode(data).rstrip(b"=") != text:
            return None
        if not any(hmac.compare_digest(seal, _seal(reader_id, fields, secret)) for secret in known_keys()):
            return None
        frozen, taken_at, digest = FIELDS.unpack(fields)
        return cls(session_id, reader_id, frozen, taken_at, digest)

    def age(self, now: datetime) -> timedelta:
        """The time since the walk began."""
        return timedelta(milliseconds=now.timestamp() * 1000 - self.taken_at)

    def read_command(self, last_id: int | None, count: int) -> Command:
        """Read `count` entries after `last_id`, and renew the TTL."""
        seconds = int(settings.LIVE_SNAPSHOT_TTL.total_seconds())
        return ("EVALSHA", READ, 2, self.key, self.index, self.digest, last_id or 0, count, seconds)

    @staticmethod
    def slice(reply: Sequence[bytes] | None) -> SnapshotSlice | None:
        """The slice, or None without a snapshot."""
        if reply is None:
            return None
        found, entries, lives = reply
        return SnapshotSlice(bool(found), list(map(int, entries)), list(map(int, lives)))

    def write_command(self, entries: Sequence[int], lives: int) -> Command:
        """Write the snapshot to Redis unless it exists."""
        seconds, most = int(settings.LIVE_SNAPSHOT_TTL.total_seconds()), settings.LIVE_SNAPSHOTS_CAP
        return ("EVALSHA", WRITE, 2, self.key, self.index, self.digest, seconds, most, lives, *entries)

    # --- Where Redis does not take it --------------------------------------------------------------------
    def store_in_postgresql(self, entries: Sequence[int], lives: int, now: datetime) -> None:
        """Write the snapshot to PostgreSQL."""
        params = {"lives": lives, "entries": id_array(entries), "others": settings.LIVE_SNAPSHOTS_CAP - 1}
        fetch(KEEP, self._params(now) | params)

    def read_from_postgresql(self, last_id: int | None, now: datetime) -> SnapshotSlice | None:
        """All entries after `last_id` in PostgreSQL. Renews their expiry."""
        rows = fetch(READ_KEPT, self._params(now) | {"now": now})
        if not rows:
            return None
        lives, entries = rows[0]
        if last_id is None:
            return SnapshotSlice(True, entries, entries[:lives])
        for signed in (last_id, -last_id):
            if signed in entries:
                return SnapshotSlice(True, entries[entries.index(signed) + 1 :], entries[:lives])
        return SnapshotSlice(False, [], entries[:lives])

    def _params(self, now: datetime) -> dict[str, Any]:
        return {"reader": self.reader_id, "digest": self.digest, "expires_at": now + settings.LIVE_SNAPSHOT_TTL}


def delete_expired(*, now: datetime) -> int:
    """Delete expired rows. Return how many."""
    forgotten = 0
    while taken := len(fetch(OVER, {"now": now, "limit": FORGET_LENGTH})):
        forgotten += taken
        if taken < FORGET_LENGTH:
            break
    return forgotten


def _seal(reader_id: int, fields: bytes, secret: str) -> bytes:
    value = b"%d:" % reader_id + fields
    return salted_hmac(SALT, value, secret=secret, algorithm="sha256").digest()[:SEAL_BYTES]
