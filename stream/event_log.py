"""Reads the stream of events in batches, from a known position.

If events may be lost (a failed read, a server that comes back empty or with another clock), it appends a `Gap`, which
also reaches connections that resume later.

See docs/decisions.md: One event stream, one question for all connections.
"""

import asyncio
import time
from typing import Any

import redis
import redis.asyncio
from django.conf import settings
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from runtime.addresses import names_cluster, parse
from storage import keys
from storage.cluster import Cluster
from storage.connections import feeds_for_tasks
from storage.events import Entry, Gap, Position, entry, event_of

GATHER_SECONDS = 0.05
"""The least time between two queries. Events in between form one batch. After a quiet time an event does not wait."""
BATCH = 500
BLOCK_SECONDS = 2.0
"""How long a read waits for events. The server has twice as long to answer at all."""
REPLAY = 500
"""The most missed events that a connection can resume. They are read and decoded on the loop that serves everybody."""
OUTAGES_OF_REDIS = (redis.RedisError, OSError)


class EventLog:
    """One process's position in the stream. Raises `OUTAGES_OF_REDIS`."""

    def __init__(self) -> None:
        self.position: Position | None = None
        """Everything up to here was read. None until Redis has answered."""
        self._is_joined = self._may_have_lost = False
        self._connect(_some_node(settings.REDIS_URL))

    def _connect(self, url: str) -> None:
        self._url = url
        self._reader = _client(url, 2 * BLOCK_SECONDS)
        self._commands = _client(url, settings.REDIS_TIMEOUT_SECONDS)

    async def _find_server(self) -> None:
        feeds = feeds_for_tasks()
        if not isinstance(feeds, Cluster):
            return
        url = await asyncio.to_thread(feeds.owner_url, keys.events())
        if url != self._url:
            former = self._reader, self._commands
            self._connect(url)
            for client in former:
                await client.aclose()

    async def join(self) -> Position | None:
        """Find the position to read from. Appends a `Gap` if events may be lost.

        Returns the position of a loss that no entry tells of.
        """
        if self._is_joined:
            return None
        try:
            lost = await self._join()
        except OUTAGES_OF_REDIS:
            self.require_rejoin(has_lost=True)
            raise
        self._is_joined = True
        return lost

    async def _join(self) -> Position | None:
        await self._find_server()
        first: Any = await self._reader.xrange(keys.events(), count=1)
        last: Any = await self._reader.xrevrange(keys.events(), count=1)
        if first and last and not self._may_have_lost:
            if self.position is None:
                self.position = Position.parse(last[0][0])
            if Position.parse(first[0][0]) <= self.position:
                return None
        gap = Position.parse(await self._reader.execute_command(*entry(Gap())))  # type: ignore[no-untyped-call]
        self._may_have_lost = False
        if self.position is None or gap <= self.position:
            # The first read, or the server's clock went back: no connection will read the gap.
            self.position = gap
            return gap
        return None

    def require_rejoin(self, *, has_lost: bool = False) -> None:
        """Join again before the next read: events may be trimmed or lost."""
        self._is_joined = False
        self._may_have_lost = self._may_have_lost or has_lost

    def cancel_rejoin(self) -> None:
        """Undo `require_rejoin`."""
        self._is_joined = True

    async def read(self, asked_at: float) -> list[Entry]:
        """The next batch, at least `GATHER_SECONDS` after `asked_at`."""
        try:
            found = await self._reader.xread(
                {keys.events(): str(self.position)}, block=int(BLOCK_SECONDS * 1000), count=BATCH
            )
            entries = _parsed(found)
            if entries and len(entries) < BATCH and time.monotonic() < asked_at + GATHER_SECONDS:
                await asyncio.sleep(asked_at + GATHER_SECONDS - time.monotonic())
                more = await self._reader.xread({keys.events(): str(entries[-1][0])}, count=BATCH - len(entries))
                entries += _parsed(more)
        except OUTAGES_OF_REDIS:
            self.require_rejoin(has_lost=True)
            raise
        return entries

    async def peek(self, after: Position) -> list[Entry]:
        """The events after a position, at most a batch. Does not wait or move."""
        return _parsed(await self._commands.xread({keys.events(): str(after)}, count=BATCH))

    async def missed(self, since: Position, upto: Position) -> list[Entry] | None:
        """The events between two positions. None if some are missing, if there are too many, or if Redis fails."""
        try:
            async with self._commands.pipeline(transaction=False) as pipeline:
                pipeline.xrange(keys.events(), count=1)
                pipeline.xrevrange(keys.events(), count=1)
                pipeline.xrange(keys.events(), min=f"({since}", max=str(upto), count=REPLAY + 1)
                first, last, found = await pipeline.execute()
        except OUTAGES_OF_REDIS:
            return None
        # Complete if an older entry is still there. A position after the newest is of another stream, which was lost.
        if not first or not Position.parse(first[0][0]) <= since <= Position.parse(last[0][0]) or len(found) > REPLAY:
            return None
        return _parsed(found)


def _some_node(url: str) -> str:
    if not names_cluster(url):
        return url
    address = parse(url)
    return address.url_of(*address.nodes[0])


def _client(url: str, timeout: float) -> redis.asyncio.Redis:
    return redis.asyncio.Redis.from_url(
        url,
        protocol=2,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 0),
    )


def _parsed(found: Any) -> list[Entry]:
    if found and isinstance(found[0][0], bytes) and found[0][0] == keys.events().encode():
        found = found[0][1]
    return [(Position.parse(position), event_of(fields)) for position, fields in found or []]
