"""The disk store of the month filters: LMDB beside the site by default, or a server that speaks the Redis protocol and
keeps its data on disk (Apache Kvrocks), by URL. One interface serves both.

A filter is read, changed and written back; that nobody else changes it meanwhile is the store's promise. LMDB has one
writer at a time, over all processes of the machine; a server compares what it has with what was read, and the change is
made again where it differs. What was written is there for good when `update` returns.

See docs/decisions.md: LMDB has one writer, servers compare and set.
See docs/decisions.md: Filters expire by the clock on the site's wall.
"""

import hashlib
import os
import struct
import threading
from calendar import monthrange
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import lmdb
import redis
from django.conf import settings

from seen.bloom import splitmix64
from storage import keys
from storage.breaker import Breaker
from storage.connections import client_of, pipelined, script

MONTHS = 4
"""That are asked what a user played: the running month is not whole, so three whole months need four."""
KEPT_MONTHS = 6
IDLE_HOURS = 5
"""Filters expire between midnight and this hour of the site's zone, when least is asked of the store."""
ATTEMPTS = 20
"""How often a change is made again that others made meanwhile."""
TIMEOUT = 5.0
"""Seconds that workers and commands wait for a server."""
FIRST_MONTH = 12
"""Months of the year 0 hold no filters: they are the shelves of a migration (seen.migration.old), and do not expire."""
NEVER = 2**32 - 1
BATCH = 10_000
"""Keys that are removed at once."""
READERS = 1024
"""Threads of all processes that read the LMDB file at a time."""
LOCK_BYTES = 64 * (READERS + 2)
"""LMDB's table of them: a line of the processor's cache each, and one or two before them."""


class StoreUnavailableError(Exception):
    """The store did not answer, or could not write."""


class StoreRefusedError(StoreUnavailableError):
    """The store answered, but would not do this: something is wrong with a key or a command."""


class FilterKey(NamedTuple):
    """The filter of a user and a month, in months since the year 0."""

    user_id: int
    month: int


class MonthStats(NamedTuple):
    """Number and size of the filters of a month."""

    filters: int
    size: int
    """In bytes."""


Change = Callable[[FilterKey, bytes | None], bytes | None]


def month_of(moment: datetime) -> int:
    """The month of a moment, as months since the year 0."""
    return moment.year * 12 + moment.month - 1


def expiry(key: FilterKey) -> int:
    """When a filter expires: on a day of the sixth month after its own, between 00:00 and 05:00, in seconds since 1970
    as the site's clocks show them (`clock`). No zone is in it, so it stays when the site moves to another.

    The moment is drawn by the user and the month, so it is the same however often the filter is written, and spread as
    evenly as chance does. Source: the deduplication article, 3.4.
    """
    if key.month < FIRST_MONTH:
        return NEVER
    year, month = divmod(key.month + KEPT_MONTHS, 12)
    days = monthrange(year, month + 1)[1]
    drawn = splitmix64(splitmix64(key.user_id) ^ key.month)
    seconds = drawn % (days * IDLE_HOURS * 3600)
    day, within = divmod(seconds, IDLE_HOURS * 3600)
    return int((datetime(year, month + 1, 1, tzinfo=UTC) + timedelta(days=day, seconds=within)).timestamp())


def clock(now: datetime) -> int:
    """Which time a clock of the site shows: seconds since 1970, as if it showed UTC."""
    return int(now.astimezone(settings.SITE_ZONE).replace(tzinfo=UTC).timestamp())


def expires_at(key: FilterKey) -> datetime:
    """The moment at which a filter expires, in UTC. A time that clocks skip is taken by those before the change, and of
    one that they show twice the first counts.
    """
    shown = datetime.fromtimestamp(expiry(key), UTC).replace(tzinfo=settings.SITE_ZONE)
    return shown.astimezone(UTC)


class FilterStore(Protocol):
    """The interface of every store. All methods raise StoreUnavailableError."""

    def read(self, keys: Sequence[FilterKey]) -> list[bytes | None]:
        """The filters, in order; one call, however many."""
        ...

    def read_briefly(self, keys: Sequence[FilterKey]) -> list[bytes | None]:
        """As `read`, for requests: a server has `PLAYED_TIMEOUT_SECONDS` seconds, and is left alone for a while after
        it failed to answer.
        """
        ...

    def update(self, keys: Sequence[FilterKey], change: Change) -> None:
        """Write what `change` makes of each filter (None: there is none). It may be called more than once for a key.

        The writes are done in the order of the keys.
        """
        ...

    def purge(self, *, now: datetime, limit: int) -> int:
        """Remove filters that have expired, at most `limit`; how many. Servers do so by themselves."""
        ...

    def stats(self) -> dict[int, MonthStats]:
        """Number and size of the filters, by month."""
        ...

    def count(self, month: int) -> int:
        """How many keys a month has."""
        ...

    def holds_any(self) -> bool:
        """Whether anything was ever kept, for requests; as `read_briefly`."""
        ...

    def clear(self, month: int) -> Iterator[int]:
        """Remove all keys of a shelf, some at a time: how many."""
        ...


# --- LMDB ------------------------------------------------------------------------------------------------
class LmdbStore:
    """Filters in one file, which the processes of a machine share.

    Three tables: `filters` month, user -> bytes; `expiry` what `expiry` says, month, user -> nothing; `months` month ->
    how many filters and bytes. A transaction is on disk when it ends. An environment belongs to the process that opened
    it.
    """

    _FILTER = struct.Struct(">IQ")
    _EXPIRY = struct.Struct(">IIQ")
    _MONTH = struct.Struct(">I")
    _STATS = struct.Struct("<QQ")

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._opening = threading.Lock()
        self._opened: tuple[int, Any, list[Any]] | None = None

    def read(self, keys: Sequence[FilterKey]) -> list[bytes | None]:
        """The filters, in order. One transaction."""
        with self._transaction(write=False) as (transaction, (filters, _, _)):
            return [transaction.get(self._FILTER.pack(key.month, key.user_id), db=filters) for key in keys]

    def read_briefly(self, keys: Sequence[FilterKey]) -> list[bytes | None]:
        """The filters, in order; a file on this machine needs no other patience."""
        return self.read(keys)

    def update(self, keys: Sequence[FilterKey], change: Change) -> None:
        """The changes are made before the transaction, which others wait for, and again where another writer was
        faster.
        """
        read = self.read(keys)
        changed = [change(key, old) for key, old in zip(keys, read, strict=True)]
        with self._transaction(write=True) as (transaction, (filters, expiries, months)):
            for key, expected, new in zip(keys, read, changed, strict=True):
                place = self._FILTER.pack(key.month, key.user_id)
                old = transaction.get(place, db=filters)
                if old != expected:
                    new = change(key, old)
                if new == old:
                    continue
                if new is None:
                    transaction.delete(place, db=filters)
                    transaction.delete(self._EXPIRY.pack(expiry(key), key.month, key.user_id), db=expiries)
                else:
                    transaction.put(place, new, db=filters)
                if old is None and key.month >= FIRST_MONTH:
                    transaction.put(self._EXPIRY.pack(expiry(key), key.month, key.user_id), b"", db=expiries)
                self._count(transaction, months, key.month, _more(old, new), len(new or b"") - len(old or b""))

    def purge(self, *, now: datetime, limit: int) -> int:
        """Remove filters that have expired, at most `limit`; returns their number."""
        purged = 0
        end = clock(now)
        with self._transaction(write=True) as (transaction, (filters, expiries, months)):
            cursor = transaction.cursor(db=expiries)
            while purged < limit and cursor.first():
                expires_at, month, user_id = self._EXPIRY.unpack(cursor.key())
                if expires_at > end:
                    break
                cursor.delete()
                gone = transaction.pop(self._FILTER.pack(month, user_id), db=filters) or b""
                self._count(transaction, months, month, -1, -len(gone))
                purged += 1
        return purged

    def copy(self, handle: int) -> None:
        """Write all of it, as of one moment, to an open file, without the room that it does not use."""
        environment, _ = self._environment()
        environment.copyfd(handle, compact=True)

    def stats(self) -> dict[int, MonthStats]:
        """Number and bytes of the filters, by month."""
        return {month: stats for month, stats in self._counts().items() if stats.filters and month >= FIRST_MONTH}

    def count(self, month: int) -> int:
        """The number of keys of a month."""
        return self._counts().get(month, MonthStats(0, 0)).filters

    def holds_any(self) -> bool:
        """Whether the file holds a filter. The file is not made for it."""
        # Opening makes the file, which a site that keeps no plays need not have.
        return (self.folder / "data.mdb").exists() and any(stats.filters for stats in self._counts().values())

    def clear(self, month: int) -> Iterator[int]:
        """Remove the keys of a month, part by part; yields how many each part had."""
        first = self._FILTER.pack(month, 0)
        while True:
            cleared = size = 0
            with self._transaction(write=True) as (transaction, (filters, _, months)):
                cursor = transaction.cursor(db=filters)
                found = cursor.set_range(first)
                while found and cleared < BATCH and self._FILTER.unpack(cursor.key())[0] == month:
                    size += len(cursor.value())
                    cleared += 1
                    cursor.delete()
                    found = bool(cursor.key())
                self._count(transaction, months, month, -cleared, -size)
            if not cleared:
                return
            yield cleared

    def _counts(self) -> dict[int, MonthStats]:
        with self._transaction(write=False) as (transaction, (_, _, months)):
            return {
                self._MONTH.unpack(key)[0]: MonthStats(*self._STATS.unpack(value))
                for key, value in transaction.cursor(db=months)
            }

    def _count(self, transaction: Any, months: Any, month: int, filters: int, size: int) -> None:
        place = self._MONTH.pack(month)
        before = MonthStats(*self._STATS.unpack(transaction.get(place, default=bytes(16), db=months)))
        transaction.put(place, self._STATS.pack(before.filters + filters, before.size + size), db=months)

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[tuple[Any, list[Any]]]:
        try:
            environment, tables = self._environment()
            with environment.begin(write=write) as transaction:
                yield transaction, tables
        except (lmdb.Error, OSError) as error:
            raise StoreUnavailableError(f"{self.folder}: {error}") from error

    def _environment(self) -> tuple[Any, list[Any]]:
        with self._opening:
            if self._opened is None or self._opened[0] != os.getpid():
                if self._opened is not None:
                    self._opened[1].close()  # the parent's, which a fork took along; it goes on there
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._reserve_locks()
                environment = lmdb.open(
                    str(self.folder), map_size=settings.PLAYED_STORE_BYTES, max_dbs=3, max_readers=READERS, mode=0o600
                )
                environment.reader_check()  # places of processes that were killed
                tables = [environment.open_db(name) for name in (b"filters", b"expiry", b"months")]
                self._opened = os.getpid(), environment, tables
            return self._opened[1], self._opened[2]

    def _reserve_locks(self) -> None:
        """LMDB maps its table of readers into memory, and a process that writes there dies by SIGBUS on a full disk: so
        the table is on the disk before it is used. Raises OSError where there is no room for it.
        """
        file = os.open(self.folder / "lock.mdb", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(file, 0, LOCK_BYTES)
        finally:
            os.close(file)


# --- A server that speaks the Redis protocol ---------------------------------------------------------------
# KEYS: filter; ARGV: digest of what was read (empty: nothing), what it shall be (empty: nothing), Unix time of the end
REPLACE = script(
    """
    local old = redis.call('GET', KEYS[1])
    local found = ''
    if old then found = redis.sha1hex(old) end
    if found ~= ARGV[1] then return 0 end
    if ARGV[2] == '' then
        redis.call('DEL', KEYS[1])
    else
        redis.call('SET', KEYS[1], ARGV[2])
        redis.call('EXPIREAT', KEYS[1], ARGV[3])
    end
    return 1
    """
)


breaker = Breaker(name="filters")


@contextmanager
def _errors() -> Iterator[None]:
    """Turn every way in which a server can fail into `StoreUnavailableError`."""
    try:
        yield
    except redis.OutOfMemoryError as error:  # not of this key or command
        raise StoreUnavailableError(str(error)) from error
    except redis.ResponseError as error:
        raise StoreRefusedError(str(error)) from error
    except (redis.RedisError, OSError) as error:
        raise StoreUnavailableError(str(error)) from error


class RedisStore:
    """Filters as strings of a server, each with its end."""

    def __init__(self, url: str) -> None:
        self.client = client_of(url, TIMEOUT)
        self._patience = settings.PLAYED_TIMEOUT_SECONDS
        self._request_client = client_of(url, self._patience)

    def read(self, keys: Sequence[FilterKey]) -> list[bytes | None]:
        """The filters, in order. One round trip."""
        return self._ask([("GET", self._key(key)) for key in keys])

    def read_briefly(self, keys: Sequence[FilterKey]) -> list[bytes | None]:
        """The filters, in order, within the patience of a request."""
        commands = [("GET", self._key(key)) for key in keys]
        with _errors(), breaker.asking(self._patience):
            return pipelined(self._request_client, commands, patience_seconds=self._patience)

    def update(self, keys: Sequence[FilterKey], change: Change) -> None:
        """Write what `change` makes of each filter; at most `ATTEMPTS` times for keys that change in between."""
        left = list(keys)
        for _ in range(ATTEMPTS):
            if not left:
                return
            olds = self.read(left)
            news = [change(key, old) for key, old in zip(left, olds, strict=True)]
            replies = self._ask(
                [
                    ("EVALSHA", REPLACE, 1, self._key(key), _digest(old), new or b"", int(expires_at(key).timestamp()))
                    for key, old, new in zip(left, olds, news, strict=True)
                ]
            )
            written = list(zip(left, olds, news, replies, strict=True))
            self._count([(key, old, new) for key, old, new, reply in written if reply])
            left = [key for key, _, _, reply in written if not reply]
        raise StoreUnavailableError(f"{len(left)} filters are written by others all the time")

    def purge(self, *, now: datetime, limit: int) -> int:
        """Nothing: the server removes expired filters by itself."""
        return 0

    def stats(self) -> dict[int, MonthStats]:
        """Counted beside the filters: about right after a server failed, and of expired months not at all."""
        end = month_of(datetime.now(UTC)) - KEPT_MONTHS
        return {month: one for month, one in self._counts().items() if one.filters and month >= end}

    def count(self, month: int) -> int:
        """As exact as `stats`."""
        return self._counts().get(month, MonthStats(0, 0)).filters

    def holds_any(self) -> bool:
        """Whether the server holds a filter, within the patience of a request."""
        with _errors(), breaker.asking(self._patience):
            (found,) = pipelined(
                self._request_client, [("EXISTS", keys.played_months())], patience_seconds=self._patience
            )
        return bool(found)

    def clear(self, month: int) -> Iterator[int]:
        """Remove the keys of a month, part by part; yields how many each part had."""
        cursor: Any = 0
        pattern = keys.played_filter(0, month)[:-1] + "*"
        while True:
            ((cursor, found),) = self._ask([("SCAN", cursor, "MATCH", pattern, "COUNT", BATCH)])
            cleared = sum(self._ask([("UNLINK", key) for key in found]))
            if cleared:
                yield cleared
            if int(cursor) == 0:
                self._ask([("HDEL", keys.played_months(), f"{month}:filters", f"{month}:size")])
                return

    def _counts(self) -> dict[int, MonthStats]:
        (found,) = self._ask([("HGETALL", keys.played_months())])
        counts = dict(zip(found[::2], found[1::2], strict=True))
        months = {int(name.split(b":")[0]) for name in counts}
        return {
            month: MonthStats(int(counts.get(b"%d:filters" % month, 0)), int(counts.get(b"%d:size" % month, 0)))
            for month in months
        }

    def _count(self, written: Sequence[tuple[FilterKey, bytes | None, bytes | None]]) -> None:
        counts: dict[str, int] = {}
        for key, old, new in written:
            for name, number in (("filters", _more(old, new)), ("size", len(new or b"") - len(old or b""))):
                counts[f"{key.month}:{name}"] = counts.get(f"{key.month}:{name}", 0) + number
        self._ask([("HINCRBY", keys.played_months(), name, number) for name, number in counts.items() if number])

    def _ask(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        with _errors():
            return pipelined(self.client, commands)

    @staticmethod
    def _key(key: FilterKey) -> str:
        return keys.played_filter(key.user_id, key.month)


def _more(old: bytes | None, new: bytes | None) -> int:
    """By how many the keys become more."""
    return int(old is None) - int(new is None)


def _digest(old: bytes | None) -> str:
    return "" if old is None else hashlib.sha1(old, usedforsecurity=False).hexdigest()


# --- The site's ------------------------------------------------------------------------------------------
_store: FilterStore | None = None


def store() -> FilterStore:
    """The store that the settings name."""
    global _store
    if _store is None:
        url = settings.PLAYED_STORE_URL
        _store = RedisStore(url) if url else LmdbStore(settings.DATA_DIR / "played")
    return _store
