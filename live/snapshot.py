"""Snapshots: what was live and upcoming when a reader's walk began, in that order, for as long as the walk goes on.

The seed's answer to states that change under the reader: the first page freezes the order, the following ones read it.

`session_id` names a walk, of which a reader may have any number on any number of devices. It is what the server needs
to know and nobody can guess or forge: the position at which the replays were frozen, the time, a random number, and an
HMAC over these and the reader. So a foreign or malformed one is seen to be none, and a true one whose snapshot is
gone is known to have expired.

In Redis a snapshot is a LIST: `h` and the number of live entries, then the sessions' ids in the frozen order, minus the
id where a session was upcoming (a number takes 11 bytes). It is written whole by one script. What Redis does not take
is kept as a row of PostgreSQL (models.KeptSnapshot), where pages look when Redis has nothing: so walks work without it.
"""

import base64
import hmac
import secrets
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.utils.crypto import salted_hmac

from feedsite import keys
from feedsite.connections import Command, fetch, id_array, script
from live.models import KeptSnapshot

SALT = "live.snapshot"
SEAL_BYTES = 16
FIELDS = struct.Struct(">QQ12s")
"""Frozen position, ms since 1970, random."""
FORGET_LENGTH = 1_000

# KEYS[1]; ARGV: last id (0: from the top), count, seconds to live. Where the entries end before the count is reached,
# the live ones come too: the replays that follow leave them out.
READ = script(
    """
    local key = KEYS[1]
    local head = redis.call('LINDEX', key, 0)
    if not head then return false end
    redis.call('EXPIRE', key, ARGV[3])
    local lives = tonumber(string.sub(head, 2))
    local at = 0
    if ARGV[1] ~= '0' then at = redis.call('LPOS', key, ARGV[1]) or redis.call('LPOS', key, '-' .. ARGV[1]) end
    local entries = at and redis.call('LRANGE', key, at + 1, at + ARGV[2]) or {}
    if #entries == tonumber(ARGV[2]) then return {1, entries, {}} end
    return {at and 1 or 0, entries, lives > 0 and redis.call('LRANGE', key, 1, lives) or {}}
    """
)
# KEYS[1]; ARGV: live entries, seconds to live, entries
WRITE = script(
    """
    local key = KEYS[1]
    redis.call('DEL', key)
    redis.call('RPUSH', key, 'h' .. ARGV[1])
    for first = 3, #ARGV, 1000 do
        redis.call('RPUSH', key, unpack(ARGV, first, math.min(first + 999, #ARGV)))
    end
    redis.call('EXPIRE', key, ARGV[2])
    return 1
    """
)
READ_KEPT = """
    UPDATE live_keptsnapshot SET expires_at = %(expires_at)s
    WHERE key = %(key)s AND expires_at > %(now)s RETURNING lives, entries
"""
KEEP = """
    INSERT INTO live_keptsnapshot (key, lives, entries, expires_at)
    VALUES (%(key)s, %(lives)s, %(entries)s::bigint[], %(expires_at)s) ON CONFLICT DO NOTHING RETURNING key
"""


@dataclass(frozen=True, slots=True)
class Slice:
    """Entries of a snapshot. `is_entry`: what was asked for is one of them, or their beginning; else it is a position
    among the replays. `lives` are all that were live, as far as replays may follow within the slice.
    """

    is_entry: bool
    entries: list[int]
    lives: list[int]


class Snapshot:
    """One walk's. Methods named after a command return it for `connections.pipelined`."""

    __slots__ = ("frozen", "key", "session_id", "taken_at")

    def __init__(self, session_id: str, frozen: int, taken_at: int) -> None:
        self.session_id = session_id
        self.key = keys.snapshot(session_id)
        self.frozen = frozen
        self.taken_at = taken_at

    @classmethod
    def take(cls, reader_id: int, frozen: int, now: datetime) -> "Snapshot":
        """Name a walk that begins now; replays below the position `frozen` belong to it."""
        taken_at = int(now.timestamp() * 1000)
        fields = FIELDS.pack(frozen, taken_at, secrets.token_bytes(12))
        text = base64.urlsafe_b64encode(fields + _seal(reader_id, fields, settings.SECRET_KEY)).rstrip(b"=").decode()
        return cls(text, frozen, taken_at)

    @classmethod
    def named(cls, session_id: str, reader_id: int) -> "Snapshot | None":
        """The walk that a reader names; None for what this site never gave them."""
        try:
            text = session_id.encode("ascii")
            data = base64.b64decode(text + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except ValueError:
            return None
        fields, seal = data[: FIELDS.size], data[FIELDS.size :]
        # One walk has one name: the last letter holds bits that say nothing.
        if len(data) != FIELDS.size + SEAL_BYTES or base64.urlsafe_b64encode(data).rstrip(b"=") != text:
            return None
        known = [str(secret) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]
        if not any(hmac.compare_digest(seal, _seal(reader_id, fields, secret)) for secret in known):
            return None
        frozen, taken_at, _ = FIELDS.unpack(fields)
        return cls(session_id, frozen, taken_at)

    def age(self, now: datetime) -> timedelta:
        """How long ago the walk began."""
        return timedelta(milliseconds=now.timestamp() * 1000 - self.taken_at)

    def reading(self, last_id: int | None, count: int) -> Command:
        """Read `count` entries after `last_id`, and keep the snapshot for another while."""
        return ("EVALSHA", READ, 1, self.key, last_id or 0, count, int(settings.LIVE_SNAPSHOT_TTL.total_seconds()))

    @staticmethod
    def slice(reply: Sequence[bytes] | None) -> Slice | None:
        """What `reading` replied; None where there is no snapshot."""
        if reply is None:
            return None
        found, entries, lives = reply
        return Slice(bool(found), list(map(int, entries)), list(map(int, lives)))

    def writing(self, entries: Sequence[int], lives: int) -> Command:
        """Write all of it: signed ids in the frozen order, of which the first `lives` were live."""
        return ("EVALSHA", WRITE, 1, self.key, lives, int(settings.LIVE_SNAPSHOT_TTL.total_seconds()), *entries)

    # --- Where Redis does not take it --------------------------------------------------------------------
    def keep(self, entries: Sequence[int], lives: int, now: datetime) -> None:
        """Write it to PostgreSQL."""
        expires_at = now + settings.LIVE_SNAPSHOT_TTL
        fetch(KEEP, {"key": self.session_id, "lives": lives, "entries": id_array(entries), "expires_at": expires_at})

    def kept(self, last_id: int | None, now: datetime) -> Slice | None:
        """All entries after `last_id` of the snapshot in PostgreSQL, if it is there; it stays for another while."""
        params = {"key": self.session_id, "now": now, "expires_at": now + settings.LIVE_SNAPSHOT_TTL}
        rows = fetch(READ_KEPT, params)
        if not rows:
            return None
        lives, entries = rows[0]
        if last_id is None:
            return Slice(True, entries, entries[:lives])
        for signed in (last_id, -last_id):
            if signed in entries:
                return Slice(True, entries[entries.index(signed) + 1 :], entries[:lives])
        return Slice(False, [], entries[:lives])


def forget_kept(*, now: datetime) -> int:
    """Delete the rows of walks that ended; how many."""
    over = KeptSnapshot.objects.filter(expires_at__lte=now).values_list("pk", flat=True)
    return KeptSnapshot.objects.filter(pk__in=list(over[:FORGET_LENGTH])).delete()[0]


def _seal(reader_id: int, fields: bytes, secret: str) -> bytes:
    value = b"%d:" % reader_id + fields
    return salted_hmac(SALT, value, secret=secret, algorithm="sha256").digest()[:SEAL_BYTES]
