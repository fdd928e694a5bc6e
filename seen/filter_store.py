"""The contract of every disk store of the month filters: its keys, its errors, and when a filter expires.

A filter is read, changed and written back; that no other writer changes it meanwhile is the store's promise. LMDB has
one writer at a time, over all processes of the machine; a server compares what it has with what was read, and the
change is made again where it differs. A filter is there for good when `update` returns.

A filter ends at a time of the wall clock, not at a moment, so another time zone leaves no entry that cannot be found.
"""

from calendar import monthrange
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

from django.conf import settings

from seen.hashing import splitmix64

MONTHS = 4
"""Months whose filters are asked for a play: the running month is not whole, so three whole months need four."""
KEPT_MONTHS = 6
IDLE_HOURS = 5
"""Filters expire between midnight and this hour of the site's zone, when least is asked of the store."""
FIRST_MONTH = 12
"""Months of the year 0 hold no filters: they are the shelves of a migration (seen.migration.old), and do not expire."""
NEVER = 2**32 - 1
BATCH = 10_000
"""Keys that are removed at once."""


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
        """Read filters for a request: a server has `PLAYED_TIMEOUT_SECONDS` seconds, and is left alone for a while
        after it failed to answer.
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


def more(old: bytes | None, new: bytes | None) -> int:
    """By how many the keys become more."""
    return int(old is None) - int(new is None)
