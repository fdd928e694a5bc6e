"""A reader's last views in Redis: the posts that they opened and the replies that they saw.

Each list is as in the seed article: item ids, newest first, without duplicates, 10 of them (`RECENT_VIEWS`), deleted 7
days after the last view. A second key in the same slot has the times: milliseconds since 1970, unique within a list, so
that a time is also a cursor.

Without Redis nothing is recorded, and views are unknown.
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
    register_script,
)

logger = logging.getLogger(__name__)

LIFE = timedelta(days=7)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)

# KEYS: list, times. ARGV: now in ms, cap, seconds to live, then ids, newest last. If the clocks of two processes
# differ, the later call is the later view. Times without a list are of evicted entries.
RECORD = register_script(
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
READ = register_script(
    """
    local ids = redis.call('LRANGE', KEYS[1], 0, -1)
    if #ids == 0 then return {{}, {}} end
    return {ids, redis.call('HMGET', KEYS[2], unpack(ids))}
    """
)


class View(NamedTuple):
    """A viewed item. `moment`: milliseconds since 1970, unique within the list."""

    item_id: int
    moment: int

    @property
    def viewed_at(self) -> datetime:
        """The moment of the view, in UTC."""
        return EPOCH + self.moment * MILLISECOND

    def age(self, now: datetime) -> timedelta:
        """How long ago the view was. Negative if the clocks of two machines differ."""
        return now - self.viewed_at


class Views(NamedTuple):
    """Views within 7 days, newest first."""

    items: list[View]
    """Posts that they opened."""
    replies: list[View]
    """Replies that they opened, or saw below an opened post."""


class RecentViews:
    """A list of recent views in Redis. Methods return commands for `connections.pipelined`."""

    __slots__ = ("cap", "key", "times")

    def __init__(self, key: str, cap: int) -> None:
        self.key, self.times, self.cap = key, keys.view_times(key), cap

    @classmethod
    def of_items(cls, user_id: int) -> "RecentViews":
        """The list of posts that a user opened."""
        return cls(keys.views(user_id), settings.RECENT_VIEWS)

    @classmethod
    def of_replies(cls, user_id: int) -> "RecentViews":
        """The list of replies that a user saw."""
        return cls(keys.reply_views(user_id), settings.RECENT_REPLY_VIEWS)

    def recording(self, ids: Sequence[int], now: datetime) -> Command:
        """Move or add these ids to the top, the last one first."""
        arguments = ((now - EPOCH) // MILLISECOND, self.cap, int(LIFE.total_seconds()), *ids)
        return ("EVALSHA", RECORD, 2, self.key, self.times, *arguments)

    def read_command(self) -> Command:
        """Read the list with its times."""
        return ("EVALSHA", READ, 2, self.key, self.times)

    @staticmethod
    def views(reply: Sequence[Sequence[bytes | None]], now: datetime) -> list[View]:
        """The views in a reply to `read_command`, without old ones."""
        oldest = (now - LIFE - EPOCH) // MILLISECOND
        pairs = zip(*reply, strict=True)
        views = [View(int(item), int(moment)) for item, moment in pairs if item is not None and moment is not None]
        return [view for view in views if view.moment > oldest]

    def clearing(self) -> Command:
        """Delete the list."""
        return ("DEL", self.key, self.times)


def record(user_id: int, *, items: Sequence[int] = (), replies: Sequence[int] = (), now: datetime) -> None:
    """Record views at `now`, in the order of viewing.

    Waits briefly for Redis and never fails. Does nothing in read-only mode.
    """
    if not current().is_writable:
        return
    lists = ((RecentViews.of_items(user_id), items), (RecentViews.of_replies(user_id), replies))
    commands = [views.recording(ids, now) for views, ids in lists if ids and views.cap > 0]
    if not commands:
        return
    try:
        with feeds_errors():
            pipelined(feeds(), commands)
    except FeedsRefusedError:
        logger.exception("the feeds server refused to record a viewed item")
    except FeedsUnavailableError:
        return


def views_of(user_id: int, *, now: datetime) -> Views | None:
    """A user's recent views. None if Redis does not answer."""
    items, replies = RecentViews.of_items(user_id), RecentViews.of_replies(user_id)
    try:
        with feeds_errors():
            answers = pipelined(feeds(), [items.read_command(), replies.read_command()])
    except FeedsRefusedError:
        logger.exception("the feeds server refused to list viewed items")
        return None
    except FeedsUnavailableError:
        return None
    return Views(*(RecentViews.views(answer, now) for answer in answers))


def clear(user_id: int) -> None:
    """Delete a user's recent views. Raises FeedsUnavailableError if it may have failed."""
    commands = [RecentViews.of_items(user_id).clearing(), RecentViews.of_replies(user_id).clearing()]
    with feeds_errors():
        pipelined(feeds(), commands)
