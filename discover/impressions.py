"""What every reader was shown in the last seven days (UTC), in Bloom filters.

One filter per day and shard of users. After data loss or a change of the filter's kind, items may be shown again. A
filter also reports a few items that were never shown (`IMPRESSION_ERROR_RATE`). A day beyond its capacity continues in
further filters (seen.bloom), because a full one would hide almost everything.

Functions raise FeedsUnavailableError and no other Redis error.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple, TypeVar

import redis
from django.conf import settings

from runtime import metrics
from seen.bitmap_bloom import BitmapFilter
from seen.bloom import Addition, KnownItems, SharedFilters, has_module, is_module_missing
from seen.hashing import splitmix64
from seen.module_bloom import ModuleFilter
from storage import keys
from storage.connections import feeds, feeds_errors, feeds_for_tasks, pipelined

logger = logging.getLogger(__name__)

DAYS = 7
ITEMS_AT_ONCE = 100
"""Items added by one command: a bitmap takes about 5 microseconds for each, and blocks others."""
KINDS: dict[str, type[BitmapFilter | ModuleFilter]] = {"bitmap": BitmapFilter, "module": ModuleFilter}

T = TypeVar("T")


class Impression(NamedTuple):
    """Items that a user was shown on a day (UTC)."""

    user_id: int
    day: date
    item_ids: Sequence[int]


class ShardFill(NamedTuple):
    """A shard's approximate impressions, and its capacity."""

    day: date
    shard: int
    impressions: int
    capacity: int

    @property
    def is_over(self) -> bool:
        """Whether it exceeds its first filter."""
        return self.impressions > self.capacity


def shown_among(user_id: int, ids: Sequence[int], *, today: date) -> set[int]:
    """Which items the user was shown in the last seven days, plus a few false positives.

    One round trip, and one for each further filter.
    """
    if not ids:
        return set()
    shard = shard_of(user_id)
    days = [keys.impressions(today - timedelta(days=ago), shard) for ago in range(DAYS)]

    def ask(chosen: SharedFilters) -> KnownItems:
        return chosen.known(feeds(), days, user_id, ids)

    with feeds_errors():
        answer = _chosen.run(feeds(), ask)
        if days[0] in answer.foreign_keys and _chosen.look_again(feeds()):
            answer = _chosen.run(feeds(), ask)
    return answer.item_ids


def record(impressions: Iterable[Impression]) -> None:
    """Store impressions: one round trip for up to 500 users and days with 100 items each. Idempotent. Ignores days over
    a week old.
    """
    shown_to: dict[tuple[int, date], dict[int, None]] = {}
    for user_id, day, item_ids in impressions:
        shown_to.setdefault((user_id, day), {}).update(dict.fromkeys(item_ids))
    additions = [
        Addition(keys.impressions(day, shard_of(user_id)), user_id, part, _expiry(day))
        for (user_id, day), items in shown_to.items()
        for part in _chunks(list(items))
    ]
    client = feeds_for_tasks()
    with feeds_errors():
        foreign = _chosen.run(client, lambda chosen: chosen.add(client, additions))
        if foreign:
            # The server gained or lost BF.*, or the setting changed: start the day again with the current kind.
            _chosen.look_again(client)
            logger.warning("replaced a filter of another format, for %d impressions", len(foreign))
            _chosen.run(client, lambda chosen: chosen.add(client, foreign, replace=True))


def shard_fills(today: date) -> list[ShardFill]:
    """How full the day's shards are."""
    shards = range(settings.IMPRESSION_SHARDS)
    with feeds_errors():
        client = feeds_for_tasks()
        fills = _chosen.run(
            client, lambda chosen: chosen.fill(client, [keys.impressions(today, each) for each in shards])
        )
    return [ShardFill(today, shard, *found) for shard, found in zip(shards, fills, strict=True) if found is not None]


def check_overfull(today: date) -> list[ShardFill]:
    """The overfull shards. Each is logged once, by one process."""
    found = shard_fills(today)
    metrics.impressions_fill.set(max((shard.impressions / shard.capacity for shard in found), default=0))
    over = [shard for shard in found if shard.is_over]
    with feeds_errors():
        marks = [("SET", keys.impressions_over(today, each.shard), 1, "NX", "EXAT", _expiry(today)) for each in over]
        is_news = pipelined(feeds_for_tasks(), marks)
    for shard, is_first in zip(over, is_news, strict=True):
        if is_first:
            logger.warning(
                "Shard %d of %s has about %d impressions, but room for %d. Each further filter hides %g of the unseen "
                "items. Raise FEEDSITE_IMPRESSION_CAPACITY: it takes effect the next day.",
                shard.shard,
                today,
                shard.impressions,
                shard.capacity,
                settings.IMPRESSION_ERROR_RATE,
            )
    return over


def shard_of(user_id: int) -> int:
    """The number of the user's shard, from 0."""
    return splitmix64(user_id) % int(settings.IMPRESSION_SHARDS)


def _expiry(day: date) -> int:
    return int(datetime.combine(day + timedelta(days=DAYS), time(), UTC).timestamp())


def _chunks(item_ids: list[int]) -> Iterable[list[int]]:
    return (item_ids[first : first + ITEMS_AT_ONCE] for first in range(0, len(item_ids), ITEMS_AT_ONCE))


class _FilterChoice:
    """The kind of filter in use. Detected at first use, and again if BF.* is unknown or the key is of another kind."""

    def __init__(self) -> None:
        self._found: str | None = None

    def run(self, client: redis.Redis, call: Callable[[SharedFilters], T]) -> T:
        """Call with the filter in use. If the server lacks BF.*, detect again and retry once."""
        kind = self._kind(client)
        try:
            return call(self._filter(kind))
        except redis.ResponseError as error:
            if not is_module_missing(error):
                raise
            self.look_again(client)
            if self._kind(client) == kind:
                raise
            return call(self._filter(self._kind(client)))

    def look_again(self, client: redis.Redis) -> bool:
        before, self._found = self._found, None
        return settings.BLOOM == "auto" and self._kind(client) != before

    @staticmethod
    def _filter(kind: str) -> SharedFilters:
        return KINDS[kind](settings.IMPRESSION_CAPACITY, settings.IMPRESSION_ERROR_RATE)

    def _kind(self, client: redis.Redis) -> str:
        if settings.BLOOM != "auto":
            return str(settings.BLOOM)
        if self._found is None:
            self._found = "module" if has_module(client) else "bitmap"
        return self._found


_chosen = _FilterChoice()
