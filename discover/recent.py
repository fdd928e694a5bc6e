"""A reader's last views: two lists of ids in Redis, of the posts that they opened and of the replies that they saw.

A list is what the seed article describes: item ids, newest first, each once, 10 of them (`RECENT_VIEWS`), gone 7 days
after the last. Beside it, in a second key of its slot, stands when each was viewed: milliseconds since 1970, no two of
a list the same, so that a time is also a place in it. Both are written by one script. An entry whose time was lost
counts for nothing, and so does one older than `LIFE` in a list that lives on.

The lists are per user, whatever device they read on. They are a hint: without Redis nothing is recorded, and what was
viewed is unknown.
"""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.conf import settings

from accounts.about.site import current
from storage import keys
from storage.connections import (
    Command,
    FeedsRefusedError,
    FeedsUnavailableError,
    feeds,
    feeds_errors,
    pipelined,
    script,
)

logger = logging.getLogger(__name__)

LIFE = timedelta(days=7)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)

# KEYS: list, times; ARGV: now in ms, cap, seconds to live, then ids, the newest last. Of two processes whose clocks
# differ, the later call counts as the later view. Times without a list are those of entries that were evicted.
RECORD = script(
    """
    local list, times, time = KEYS[1], KEYS[2], tonumber(ARGV[1])
    local newest = redis.call('LINDEX', list, 0)
    if not newest then redis.call('DEL', times) end
    local latest = newest and redis.call('HGET', times, newest)
    if latest and tonumber(latest) >= time then time = tonumber(latest) + 1 end
    for n = 4, #ARGV do
        redis.call('LREM', list, 0, ARGV[n])
        redis.call('LPUSH', list, ARGV[n])
        redis.call('HSET', times, ARGV[n], string.format('%.0f', time))
        time = time + 1
    end
    local over = redis.call('LRANGE', list, ARGV[2], -1)
    if #over > 0 then
        redis.call('LTRIM', list, 0, ARGV[2] - 1)
        redis.call('HDEL', times, unpack(over))
    end
    redis.call('EXPIRE', list, ARGV[3])
    redis.call('EXPIRE', times, ARGV[3])
    """
)
READ = script(
    """
    local ids = redis.call('LRANGE', KEYS[1], 0, -1)
    if #ids == 0 then return {{}, {}} end
    return {ids, redis.call('HMGET', KEYS[2], unpack(ids))}
    """
)


class View(NamedTuple):
    """A view of an item by a reader. `moment`: milliseconds since 1970, unlike that of any other view in its list."""

    item_id: int
    moment: int

    @property
    def viewed_at(self) -> datetime:
        """The moment of the view, in UTC."""
        return EPOCH + self.moment * MILLISECOND

    def age(self, now: datetime) -> timedelta:
        """How long ago it was at `now`; less than nothing if the clocks of two machines differ."""
        return now - self.viewed_at


class Views(NamedTuple):
    """The views of a reader within the last 7 days, newest first, as far as the lists reach."""

    items: list[View]
    """Posts that they opened."""
    replies: list[View]
    """Replies that they opened, or met below a post that they opened."""


class RecentViews:
    """One list of views. Methods return commands for `connections.pipelined`; `views` understands what `reading`
    replied.
    """

    __slots__ = ("cap", "key", "times")

    def __init__(self, key: str, cap: int) -> None:
        self.key, self.times, self.cap = key, keys.view_times(key), cap

    @classmethod
    def of_items(cls, user_id: int) -> "RecentViews":
        """The list of the posts that a user opened."""
        return cls(keys.views(user_id), settings.RECENT_VIEWS)

    @classmethod
    def of_replies(cls, user_id: int) -> "RecentViews":
        """The list of the replies that a user saw."""
        return cls(keys.reply_views(user_id), settings.RECENT_REPLY_VIEWS)

    def recording(self, ids: Sequence[int], now: datetime) -> Command:
        """Put these ids on top, the last of them uppermost; those that are in the list already move there."""
        arguments = ((now - EPOCH) // MILLISECOND, self.cap, int(LIFE.total_seconds()), *ids)
        return ("EVALSHA", RECORD, 2, self.key, self.times, *arguments)

    def reading(self) -> Command:
        """The command that reads the list with its times."""
        return ("EVALSHA", READ, 2, self.key, self.times)

    @staticmethod
    def views(reply: Sequence[Sequence[bytes | None]], now: datetime) -> list[View]:
        """The views in a reply to `reading`, without those that are too old."""
        oldest = (now - LIFE - EPOCH) // MILLISECOND
        pairs = zip(*reply, strict=True)
        views = [View(int(item), int(moment)) for item, moment in pairs if item is not None and moment is not None]
        return [view for view in views if view.moment > oldest]

    def clearing(self) -> Command:
        """The command that deletes the list."""
        return ("DEL", self.key, self.times)


def record(user_id: int, *, items: Sequence[int] = (), replies: Sequence[int] = (), now: datetime) -> None:
    """Record that a user viewed these at `now`, each list in the order of viewing; one round trip.

    It waits for Redis as briefly as a page does, and never fails. Nothing is recorded in the read-only mode.
    """
    if not current().takes_notes:
        return
    lists = ((RecentViews.of_items(user_id), items), (RecentViews.of_replies(user_id), replies))
    commands = [views.recording(ids, now) for views, ids in lists if ids and views.cap > 0]
    if not commands:
        return
    try:
        with feeds_errors():
            pipelined(feeds(), commands)
    except FeedsRefusedError:
        logger.exception("The feeds server refused a view")
    except FeedsUnavailableError:
        return


def views_of(user_id: int, *, now: datetime) -> Views | None:
    """The last views of a user; None if Redis does not answer. One round trip."""
    items, replies = RecentViews.of_items(user_id), RecentViews.of_replies(user_id)
    try:
        with feeds_errors():
            answers = pipelined(feeds(), [items.reading(), replies.reading()])
    except FeedsRefusedError:
        logger.exception("The feeds server refused to say what was viewed")
        return None
    except FeedsUnavailableError:
        return None
    return Views(*(RecentViews.views(answer, now) for answer in answers))


def clear(user_id: int) -> None:
    """Forget what a user viewed. Raises FeedsUnavailableError: then it is not known to be forgotten."""
    commands = [RecentViews.of_items(user_id).clearing(), RecentViews.of_replies(user_id).clearing()]
    with feeds_errors():
        pipelined(feeds(), commands)
