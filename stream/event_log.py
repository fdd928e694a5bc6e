"""The stream of events as one process reads it: batch after batch, from a place that it knows.

A read that failed may have lost something, and so may a server that came back empty or with another clock. Then the log
gets a `Gap`, which every connection is told of, also those that resume later.

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

from runtime.cluster_address import names_cluster, parse
from storage import keys
from storage.cluster import Cluster
from storage.connections import feeds_for_tasks
from storage.events import Entry, Gap, Position, entry, event_of

GATHER_SECONDS = 0.05
"""Seconds between one query and the next: what comes meanwhile is one batch; what comes after a quiet time does not
wait."""
BATCH = 500
BLOCK_SECONDS = 2.0
"""Seconds that a read waits for events; the server has as many again to answer at all."""
REPLAY = 500
"""Events that a connection may have missed and still resume. They are read and decoded on the loop that serves all."""
OUTAGES_OF_REDIS = (redis.RedisError, OSError)


class EventLog:
    """The place of one process in the stream. Its methods raise `OUTAGES_OF_REDIS`, unless they say otherwise."""

    def __init__(self) -> None:
        self.position: Position | None = None
        """Down to here everything was read; None until Redis has answered once."""
        self._is_joined = self._may_have_lost = False
        self._connect(_some_node(settings.REDIS_URL))

    def _connect(self, url: str) -> None:
        self._url = url
        self._reader = _client(url, 2 * BLOCK_SECONDS)
        self._commands = _client(url, settings.REDIS_TIMEOUT_SECONDS)

    async def _find(self) -> None:
        """Connect to the node of a cluster that has the stream now."""
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
        """Find the place to read on from, unless it is known; the place of a loss that no entry will tell of, or None.

        A process that cannot rule out a loss says so in the stream, for all connections that resume.
        """
        if self._is_joined:
            return None
        try:
            lost = await self._join()
        except OUTAGES_OF_REDIS:
            self.leave(has_lost=True)
            raise
        self._is_joined = True
        return lost

    async def _join(self) -> Position | None:
        await self._find()
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
            # The first read, or the clock of the server that came back is behind: no connection reads the gap.
            self.position = gap
            return gap
        return None

    def leave(self, *, has_lost: bool = False) -> None:
        """Join anew before the next read: the stream may be trimmed meanwhile, or something may have been lost."""
        self._is_joined = False
        self._may_have_lost = self._may_have_lost or has_lost

    def stay(self) -> None:
        """The stream cannot have been trimmed since it was left."""
        self._is_joined = True

    async def read(self, asked_at: float) -> list[Entry]:
        """The next batch, `GATHER_SECONDS` after the last question was asked; empty if nothing happened for a while."""
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
            self.leave(has_lost=True)
            raise
        return entries

    async def ahead(self, after: Position) -> list[Entry]:
        """At most a batch of what follows a place, without waiting; the next batch begins where it would anyway."""
        return _parsed(await self._commands.xread({keys.events(): str(after)}, count=BATCH))

    async def missed(self, since: Position, upto: Position) -> list[Entry] | None:
        """The events after `since`, up to `upto`; None if the stream does not hold them all, or too many, or if Redis
        does not answer.
        """
        try:
            async with self._commands.pipeline(transaction=False) as pipeline:
                pipeline.xrange(keys.events(), count=1)
                pipeline.xrevrange(keys.events(), count=1)
                pipeline.xrange(keys.events(), min=f"({since}", max=str(upto), count=REPLAY + 1)
                first, last, found = await pipeline.execute()
        except OUTAGES_OF_REDIS:
            return None
        # It is all there if something older is, too. A place younger than the youngest is of another stream, which was
        # lost.
        if not first or not Position.parse(first[0][0]) <= since <= Position.parse(last[0][0]) or len(found) > REPLAY:
            return None
        return _parsed(found)


def _some_node(url: str) -> str:
    """The address itself, or of a node of the cluster that it names."""
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
    """The entries of a reply, of XRANGE or of XREAD of the one stream."""
    if found and isinstance(found[0][0], bytes) and found[0][0] == keys.events().encode():
        found = found[0][1]
    return [(Position.parse(position), event_of(fields)) for position, fields in found or []]
