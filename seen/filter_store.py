"""The interface of the disk stores of month filters.

No other writer changes a filter between a store's read and write. When `update` returns, the filters are on disk.
"""

from calendar import monthrange
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

from django.conf import settings

from seen.hashing import splitmix64
from storage.breaker import UnavailableError

MONTHS = 4
"""Months to ask for a play. Three whole months need four, because the current one is not over."""
KEPT_MONTHS = 6
IDLE_HOURS = 5
"""Filters expire between midnight and this hour of the site's zone, when the store is least busy."""
FIRST_MONTH = 12
"""Months of the year 0 hold the shelves of a migration (seen.migration.old), which never expire."""
NEVER = 2**32 - 1
BATCH = 10_000
"""Keys to remove at once."""


class StoreUnavailableError(UnavailableError):
    """The store did not answer, or could not write."""


class StoreRefusedError(StoreUnavailableError):
    """The store refused a key or a command."""


class FilterKey(NamedTuple):
    """A user and a month, in months since the year 0."""

    user_id: int
    month: int


class MonthStats(NamedTuple):
    """Number and bytes of a month's filters."""

    filters: int
    size: int
    """In bytes."""


Change = Callable[[FilterKey, bytes | None], bytes | None]


def month_of(moment: datetime) -> int:
    """The month of a moment, in months since the year 0."""
    return moment.year * 12 + moment.month - 1


def expiry(key: FilterKey) -> int:
    """When a filter expires: in the sixth month after its own, between 00:00 and 05:00, by the site's `clock`.

    Always the same for user and month, spread evenly. Source: the deduplication article, 3.4.
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
    """The site's wall clock, in seconds since 1970 as if it were UTC."""
    return int(now.astimezone(settings.SITE_ZONE).replace(tzinfo=UTC).timestamp())


def expires_at(key: FilterKey) -> datetime:
    """The moment of `expiry`. A skipped time uses the offset before the change, a repeated one the first."""
    shown = datetime.fromtimestamp(expiry(key), UTC).replace(tzinfo=settings.SITE_ZONE)
    return shown.astimezone(UTC)


class FilterStore(Protocol):
    """A disk store of month filters. All methods raise StoreUnavailableError."""

    def read(self, keys: Sequence[FilterKey]) -> list[bytes | None]:
        """The filters of these keys, in order. One call."""
        ...

    def read_briefly(self, keys: Sequence[FilterKey]) -> list[bytes | None]:
        """Like `read`, for requests: with a short time-out and a breaker."""
        ...

    def update(self, keys: Sequence[FilterKey], change: Change) -> None:
        """Replace each filter by what `change` returns (None: no filter). May call it more than once for a key."""
        ...

    def purge(self, *, now: datetime, limit: int) -> int:
        """Remove at most `limit` expired filters. Returns how many."""
        ...

    def stats(self) -> dict[int, MonthStats]:
        """Number and bytes of the filters, by month."""
        ...

    def count(self, month: int) -> int:
        """The number of a month's keys."""
        ...

    def holds_any(self) -> bool:
        """Whether anything was ever stored. For requests."""
        ...

    def clear(self, month: int) -> Iterator[int]:
        """Remove all keys of a shelf, yielding each batch's size."""
        ...


def key_count_change(old: bytes | None, new: bytes | None) -> int:
    """The change in the number of keys by a write: -1, 0 or 1."""
    return int(old is None) - int(new is None)
