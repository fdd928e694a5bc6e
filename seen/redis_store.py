"""Month filters on a server with the Redis protocol that stores on disk (Apache Kvrocks).

See docs/decisions.md: A play leaves Redis only after it is on disk.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import redis
from django.conf import settings

from seen.filter_store import (
    BATCH,
    KEPT_MONTHS,
    Change,
    FilterKey,
    MonthStats,
    StoreRefusedError,
    StoreUnavailableError,
    expires_at,
    key_count_change,
    month_of,
)
from storage import keys
from storage.breaker import Breaker
from storage.connections import client_of, pipelined, register_script

ATTEMPTS = 20
"""How often to repeat a change that others overtook."""
TIMEOUT_SECONDS = 5.0
"""How long workers and commands wait for a server."""

# KEYS: filter; ARGV: digest of what was read (or empty), the new value (or empty), Unix time of the expiry
REPLACE = register_script(
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
    try:
        yield
    except redis.OutOfMemoryError as error:  # not about this key or command
        raise StoreUnavailableError(str(error)) from error
    except redis.ResponseError as error:
        raise StoreRefusedError(str(error)) from error
    except (redis.RedisError, OSError) as error:
        raise StoreUnavailableError(str(error)) from error


class RedisStore:
    """A store of filters on a server: strings with an expiry."""

    def __init__(self, url: str) -> None:
        self.client = client_of(url, TIMEOUT_SECONDS)
        self._patience = settings.PLAYED_TIMEOUT_SECONDS
        self._request_client = client_of(url, self._patience)

    def read(self, keys: Sequence[FilterKey]) -> list[bytes | None]:
        """Implements `FilterStore.read` in one round trip."""
        return self._execute([("GET", self._key(key)) for key in keys])

    def read_briefly(self, keys: Sequence[FilterKey]) -> list[bytes | None]:
        commands = [("GET", self._key(key)) for key in keys]
        with _errors(), breaker.guard(self._patience):
            return pipelined(self._request_client, commands, patience_seconds=self._patience)

    def update(self, keys: Sequence[FilterKey], change: Change) -> None:
        """Implements `FilterStore.update` with at most `ATTEMPTS` tries."""
        left = list(keys)
        for _ in range(ATTEMPTS):
            if not left:
                return
            olds = self.read(left)
            news = [change(key, old) for key, old in zip(left, olds, strict=True)]
            replies = self._execute(
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
        """Does nothing and returns 0: the server removes expired filters."""
        return 0

    def stats(self) -> dict[int, MonthStats]:
        """Implements `FilterStore.stats`. Approximate after a failure."""
        end = month_of(datetime.now(UTC)) - KEPT_MONTHS
        return {month: one for month, one in self._counts().items() if one.filters and month >= end}

    def count(self, month: int) -> int:
        """Implements `FilterStore.count`, as exactly as `stats`."""
        return self._counts().get(month, MonthStats(0, 0)).filters

    def holds_any(self) -> bool:
        with _errors(), breaker.guard(self._patience):
            (found,) = pipelined(
                self._request_client, [("EXISTS", keys.played_months())], patience_seconds=self._patience
            )
        return bool(found)

    def clear(self, month: int) -> Iterator[int]:
        cursor: Any = 0
        pattern = keys.played_filter(0, month)[:-1] + "*"
        while True:
            ((cursor, found),) = self._execute([("SCAN", cursor, "MATCH", pattern, "COUNT", BATCH)])
            cleared = sum(self._execute([("UNLINK", key) for key in found]))
            if cleared:
                yield cleared
            if int(cursor) == 0:
                self._execute([("HDEL", keys.played_months(), f"{month}:filters", f"{month}:size")])
                return

    def _counts(self) -> dict[int, MonthStats]:
        (found,) = self._execute([("HGETALL", keys.played_months())])
        counts = dict(zip(found[::2], found[1::2], strict=True))
        months = {int(name.split(b":")[0]) for name in counts}
        return {
            month: MonthStats(int(counts.get(b"%d:filters" % month, 0)), int(counts.get(b"%d:size" % month, 0)))
            for month in months
        }

    def _count(self, written: Sequence[tuple[FilterKey, bytes | None, bytes | None]]) -> None:
        counts: dict[str, int] = {}
        for key, old, new in written:
            for name, number in (("filters", key_count_change(old, new)), ("size", len(new or b"") - len(old or b""))):
                counts[f"{key.month}:{name}"] = counts.get(f"{key.month}:{name}", 0) + number
        self._execute([("HINCRBY", keys.played_months(), name, number) for name, number in counts.items() if number])

    def _execute(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        with _errors():
            return pipelined(self.client, commands)

    @staticmethod
    def _key(key: FilterKey) -> str:
        return keys.played_filter(key.user_id, key.month)


def _digest(old: bytes | None) -> str:
    return "" if old is None else hashlib.sha1(old, usedforsecurity=False).hexdigest()
