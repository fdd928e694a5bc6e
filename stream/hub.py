"""The open connections of one process: hears of what happened, asks who may know, and writes it to them.

One task reads the stream of events; what comes within `GATHER` seconds of a query is one batch and the next query,
however many are connected. A connection that is opened while a batch is under way finds the batch in its replay. Redis
or PostgreSQL may be gone for any time: connections stay open, and nothing is lost that the stream still holds; where it
may have lost something, every page is told to ask (`reset`), and apps, whose protocol has no word for it, are ended, so
that they ask when they come back. A task that fails by any other error is supervised: the error is logged and counted,
and the task goes on. An error while the messages of one dialect are made costs the others nothing.

See docs/decisions.md: A gap ends in a reset instead of a promise.
See docs/decisions.md: A dialect fails alone.
See docs/decisions.md: Listeners of a session are found in the room of the stream.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import redis
import redis.asyncio
from django.conf import settings
from django.db import close_old_connections
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from accounts.grants import BORROWED_SECONDS, Grant, standing
from accounts.levels import touch
from runtime import metrics
from runtime.cluster_address import names_cluster, parse
from storage import keys
from storage.cluster import Cluster
from storage.connections import drop_ended_sessions, feeds_for_tasks, fetch
from storage.events import Entry, Gap, Position, Revoked, entry, event_of
from storage.postgresql import bound_thread_long
from stream.attempts import Attempts, Rest, pause
from stream.connections import AGAIN, OLDEST, REFUSED, Connection, TooManyError
from stream.dialects import Dialect, Hearer, Message
from web import rates
from web.rest import OUTAGES

logger = logging.getLogger(__name__)
T = TypeVar("T")

GATHER = 0.05
"""Seconds between one query and the next: what comes meanwhile is one batch; what comes after a quiet time does not
wait."""
BATCH = 500
DIALECTS = 2
"""Dialects that are asked for beside each other."""
ALONE = 3
"""Failures of one question, while PostgreSQL answers another, after which no outage is the cause."""
SPREAD = 5.0
"""Seconds within which connections end that cannot be told of a loss."""
BLOCK = 2.0
"""Seconds that a read waits for events; the server has as many again to answer at all."""
REPLAY = 500
"""Events that a connection may have missed and still resume. They are read and decoded on the loop that serves all."""
PRESENT = 1_000
"""Users of open streams who are noted as seen in one statement."""
PATIENCE = 4.5
"""Seconds that opening a connection may wait for threads and for PostgreSQL."""
HEARTBEAT = 15.0
OUTAGES_OF_REDIS = (redis.RedisError, OSError)


class Hub:
    """See the module. Everything but the queries runs on the loop that `start` was called on."""

    def __init__(self) -> None:
        self.connections: set[Connection] = set()
        self.position: Position | None = None
        """Down to here everything was written or is about to be; None until Redis has answered once."""
        self.written: Position | None = None
        self._of_user: dict[int, int] = {}
        self._has_tried = asyncio.Event()
        self._is_joined = self._may_have_lost = False
        self._redis = Attempts("The feeds server")
        self._failing: set[str] = set()
        self._rests: dict[Dialect, Rest] = {}
        """Of dialects whose last batch failed."""
        self._asked_at = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        # Threads that ask for the readers of a batch, and threads that open connections.
        self._asking = ThreadPoolExecutor(DIALECTS, "audience", initializer=bound_thread_long)
        self._opening = ThreadPoolExecutor(settings.STREAM_THREADS, "opening")
        self._connect(_some_node(settings.REDIS_URL))

    def start(self) -> None:
        """Begin the hub's four tasks on the running loop."""
        turns = {
            "listener": self._listen,
            "heartbeat": self._beat,
            "recheck": self._recheck,
            "presence": self._note_presence,
        }
        self._tasks = [asyncio.create_task(self._supervise(name, turn)) for name, turn in turns.items()]

    @property
    def is_well(self) -> bool:
        """Whether every task runs, the last turn of each was whole, and no dialect failed lately. Servers that are gone
        do not count.
        """
        if any(rest.is_unwell for rest in self._rests.values()):
            return False
        return bool(self._tasks) and not self._failing and not any(task.done() for task in self._tasks)

    async def _supervise(self, name: str, turn: Callable[[], Awaitable[None]]) -> None:
        """Take turn after turn, whatever a turn raises. After an error the next turn waits for `PAUSES`."""
        failures = 0
        while True:
            try:
                await turn()
            except Exception:
                logger.exception("The %s of the stream failed; it goes on", name)
                metrics.stream_failures.labels(name).inc()
                self._failing.add(name)
                await asyncio.sleep(pause(failures))
                failures += 1
            else:
                self._failing.discard(name)
                failures = 0

    async def has_begun(self) -> None:
        """Wait until the place in the stream is known, or Redis has failed to say it.

        A connection that is opened before that would miss events without being told: a reset follows where Redis failed
        only.
        """
        await self._has_tried.wait()

    def _connect(self, url: str) -> None:
        self._url = url
        self._reader = _client(url, 2 * BLOCK)
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

    async def stop(self) -> None:
        """End the tasks and close every connection."""
        for task in self._tasks:
            task.cancel()
        for connection in list(self.connections):
            connection.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._asking.shutdown(wait=False, cancel_futures=True)
        self._opening.shutdown(wait=False, cancel_futures=True)

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Run what opens a connection beside the loop."""
        return await _in_thread(self._opening, call)

    # --- Connections ---------------------------------------------------------------------------------------
    def check_room(self, user_id: int = 0) -> None:
        """Raises TooManyError."""
        if len(self.connections) >= settings.STREAM_LIMIT:
            raise TooManyError(of_user=False)
        if self._of_user.get(user_id, 0) >= settings.STREAM_USER_LIMIT:
            raise TooManyError(of_user=True)

    async def open(self, grant: Grant, listener: Hearer, dialect: Dialect, since: Position | None = None) -> Connection:
        """A connection that has what happened after `since`, or that this is not known, to write first.

        Raises TooManyError, and Django's outages.
        """
        self.check_room(grant.user_id)
        connection = Connection(grant, listener, dialect)
        self._of_user[grant.user_id] = self._of_user.get(grant.user_id, 0) + 1
        # From here on batches are written to it too; they wait behind the replay.
        self.connections.add(connection)
        metrics.stream_connections.set(len(self.connections))
        upto = self.position
        if upto is not None:
            connection.after = max(upto, since or OLDEST)
        try:
            missed = await self._replay(connection, since, upto)
        except BaseException:
            self.leave(connection)
            raise
        if missed is None:
            # It asks for everything; a place ahead of the stream (another server's clock) must not keep it waiting.
            missed, connection.after = [dialect.reset(upto)] if dialect.reset else [], upto or OLDEST
        connection.put_first(missed)
        return connection

    def leave(self, connection: Connection) -> None:
        """Forget a connection; a second call does nothing."""
        if connection not in self.connections:
            return
        self.connections.discard(connection)
        metrics.stream_connections.set(len(self.connections))
        user_id = connection.grant.user_id
        self._of_user[user_id] -= 1
        if not self._of_user[user_id]:
            del self._of_user[user_id]

    async def _replay(
        self, connection: Connection, since: Position | None, upto: Position | None
    ) -> list[bytes] | None:
        """The events that the connection missed; None where that is not known. Raises Django's outages."""
        if not since or not upto:
            return None
        if await self.in_thread(partial(rates.hit, "resume", str(connection.grant.user_id))) is not None:
            return None
        entries = await self._missed(since, upto)
        if entries is None:
            return None
        try:
            news = partial(connection.dialect.news, [connection.listener], entries)
            messages = await self.in_thread(news) if entries else []
        except OUTAGES:
            raise
        except Exception:
            logger.exception("The replay of a connection failed")
            metrics.stream_failures.labels("replay").inc()
            return None
        return [data for _, _, data in messages]

    async def _missed(self, since: Position, upto: Position) -> list[Entry] | None:
        """The events after `since`, up to `upto`; None if the stream does not hold them all, or too many."""
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

    # --- Events --------------------------------------------------------------------------------------------
    async def _listen(self) -> None:
        """Read one batch, and write it."""
        try:
            if not self._is_joined:
                try:
                    await self._join()
                finally:
                    self._has_tried.set()
                self._is_joined = True
            entries = await self._read()
        except OUTAGES_OF_REDIS as error:
            self._is_joined, self._may_have_lost = False, True
            await self._redis.failed(error)
            return
        self._redis.succeeded()
        if entries:
            began = time.monotonic()
            self._is_joined = False  # it may be trimmed meanwhile
            try:
                await self._write(entries)
            except Exception:
                self._tell_loss(entries[-1][0])
                raise
            self._is_joined = time.monotonic() < began + BLOCK

    async def _join(self) -> None:
        """Find the place to read on from.

        A hub that cannot rule out a loss says so in the stream, for all connections that resume.
        """
        await self._find()
        first: Any = await self._reader.xrange(keys.events(), count=1)
        last: Any = await self._reader.xrevrange(keys.events(), count=1)
        if first and last and not self._may_have_lost:
            if self.position is None:
                self.position = self.written = Position.parse(last[0][0])
            if Position.parse(first[0][0]) <= self.position:
                return
        gap = Position.parse(await self._reader.execute_command(*entry(Gap())))  # type: ignore[no-untyped-call]
        if self.position is None or gap <= self.position:
            # The first read, or the clock of the server that came back is behind: no connection reads the gap.
            self.position = self.written = gap
            _lose_all(self.connections, gap)
            for connection in self.connections:
                connection.after = gap
        self._may_have_lost = False

    async def _read(self) -> list[Entry]:
        """The next batch; empty if nothing happened for a while."""
        found = await self._reader.xread({keys.events(): str(self.position)}, block=int(BLOCK * 1000), count=BATCH)
        entries = _parsed(found)
        if entries and len(entries) < BATCH and time.monotonic() < self._asked_at + GATHER:
            await asyncio.sleep(self._asked_at + GATHER - time.monotonic())
            more = await self._reader.xread({keys.events(): str(entries[-1][0])}, count=BATCH - len(entries))
            entries += _parsed(more)
        return entries

    async def _write(self, entries: list[Entry]) -> None:
        """Write a batch to whom it concerns; the dialects are asked beside each other."""
        await self._revoke({event.user for _, event in entries if isinstance(event, Revoked)})
        self.position = entries[-1][0]
        self._asked_at = time.monotonic()
        groups = _by_dialect(self.connections)
        await asyncio.gather(*(self._tell(dialect, some, entries) for dialect, some in groups.items()))
        self.written = self.position

    async def _tell(self, dialect: Dialect, connections: list[Connection], entries: list[Entry]) -> None:
        """Write a batch to the connections of one dialect; waits for PostgreSQL as long as it takes.

        An error is the dialect's own: its connections alone have to ask, and it rests for `PAUSES`. So is an outage
        that meets this question `ALONE` times in a row while PostgreSQL answers another.
        """
        upto = entries[-1][0]
        rest = self._rests.get(dialect)
        if rest is not None and not rest.is_over:
            rest.has_missed = True
            return
        attempts, alone = Attempts("PostgreSQL"), 0
        while connections:
            try:
                hearers = {one.listener for one in connections}
                messages = await _in_thread(self._asking, partial(dialect.news, hearers, entries))
            except OUTAGES as error:
                alone = alone + 1 if await self._postgresql_answers() else 0
                if alone == ALONE:
                    self._failed(dialect, connections, upto, error)
                    return
                await attempts.failed(error)
                connections = [connection for connection in connections if connection in self.connections]
            except Exception as error:  # noqa: BLE001 (whatever it is, it costs this dialect alone)
                self._failed(dialect, connections, upto, error)
                return
            else:
                attempts.succeeded()
                self._succeeded(dialect, upto)
                if dialect.reset is None and any(isinstance(event, Gap) for _, event in entries):
                    _lose(dialect, connections, upto)
                _deliver(connections, messages)
                return

    async def _postgresql_answers(self) -> bool:
        try:
            await _in_thread(self._asking, partial(fetch, "SELECT 1", {}))
        except OUTAGES:
            return False
        return True

    def _failed(self, dialect: Dialect, connections: list[Connection], upto: Position, error: Exception) -> None:
        """Note that a dialect has no messages for a batch, and tell its connections so."""
        if self._rests.setdefault(dialect, Rest()).failed():
            logger.error("The messages of the dialect %r failed; it goes on", dialect.name, exc_info=error)
        metrics.stream_failures.labels(dialect.name).inc()
        _lose(dialect, connections, upto)

    def _succeeded(self, dialect: Dialect, upto: Position) -> None:
        rest = self._rests.pop(dialect, None)
        if rest is not None and rest.has_missed:
            _lose(dialect, [each for each in self.connections if each.dialect == dialect], upto)

    def _tell_loss(self, upto: Position) -> None:
        """Skip the events up to this position, which could not be written: every connection has to ask."""
        self.position = self.written = upto
        _lose_all(self.connections, upto)

    async def _revoke(self, users: set[int]) -> None:
        """End what rests on nothing any more, before anything else is written to it. A connection that only a ticket
        vouches for ends too: its session is unknown, and may be the revoked one. A reader who may listen comes back at
        once. All end where the question fails, by whatever error: the stream tells of a revocation once.
        """
        connections = [each for each in self.connections if each.grant.user_id in users]
        if not connections:
            return
        try:
            held = await _in_thread(self._opening, partial(standing, [each.grant for each in connections]))
        except Exception as error:
            if not isinstance(error, OUTAGES):
                logger.exception("It cannot be asked which connections still stand")
            held = [False] * len(connections)
        for connection, stands in zip(connections, held, strict=True):
            if not stands or connection.grant.is_borrowed:
                connection.close(REFUSED)

    # --- Time ----------------------------------------------------------------------------------------------
    async def _beat(self) -> None:
        """Write to those who heard nothing for long."""
        await asyncio.sleep(1)
        now = time.monotonic()
        for connection in self.connections:
            if now >= connection.written_at + HEARTBEAT:
                connection.put(self._heartbeat(connection, now - connection.written_at))
        for dialect, rest in self._rests.items():
            if rest.has_missed and rest.is_over and self.position is not None:
                rest.has_missed = False
                _lose(dialect, [each for each in self.connections if each.dialect == dialect], self.position)

    def _heartbeat(self, connection: Connection, quiet: float) -> bytes:
        is_past = self.written is None or self.written < connection.after
        return connection.dialect.heartbeat(connection.listener, None if is_past else self.written, quiet)

    async def _recheck(self) -> None:
        """End the connections that rest on nothing any more."""
        await asyncio.sleep(settings.STREAM_RECHECK_SECONDS)
        connections = list(self.connections)
        try:
            held = await _in_thread(self._opening, partial(standing, [each.grant for each in connections]))
        except OUTAGES:
            return  # without PostgreSQL no session can end
        now = time.monotonic()
        for connection, stands in zip(connections, held, strict=True):
            until = connection.opened_at + BORROWED_SECONDS - settings.STREAM_RECHECK_SECONDS
            if not stands or (connection.grant.is_borrowed and now > until):
                connection.close(REFUSED)

    async def _note_presence(self) -> None:
        """Count all users with an open stream as seen, `PRESENT` users a statement."""
        await asyncio.sleep(settings.LAST_SEEN_INTERVAL.total_seconds())
        users = sorted(self._of_user)
        for first in range(0, len(users), PRESENT):
            try:
                await _in_thread(self._opening, partial(touch, users[first : first + PRESENT]))
            except OUTAGES:
                return  # the levels of those who are here fall after a day at the earliest


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


def _by_dialect(connections: Iterable[Connection]) -> dict[Dialect, list[Connection]]:
    found: dict[Dialect, list[Connection]] = {}
    for connection in connections:
        found.setdefault(connection.dialect, []).append(connection)
    return found


def _lose_all(connections: Iterable[Connection], upto: Position) -> None:
    """Tell all connections that what happened up to here has to be asked for."""
    for dialect, some in _by_dialect(connections).items():
        _lose(dialect, some, upto)


def _lose(dialect: Dialect, connections: list[Connection], upto: Position) -> None:
    """The same, for those of one dialect. Connections that end for it do so within `SPREAD`, not all at once."""
    if dialect.reset is not None:
        _deliver(connections, [(None, upto, dialect.reset(upto))])
        return
    loop = asyncio.get_running_loop()
    for connection in connections:
        loop.call_later(random.uniform(0, SPREAD), connection.close, AGAIN)  # noqa: S311 (no secret)


def _deliver(connections: Iterable[Connection], messages: Iterable[Message]) -> None:
    by_hearer: dict[Hearer, list[Connection]] = {}
    for connection in connections:
        by_hearer.setdefault(connection.listener, []).append(connection)
    for hearer, position, data in messages:
        for connection in connections if hearer is None else by_hearer.get(hearer, ()):
            if position > connection.after or hearer is None:
                connection.put(data)


async def _in_thread(executor: ThreadPoolExecutor, call: Callable[[], T]) -> T:
    def run() -> T:
        close_old_connections()
        drop_ended_sessions()
        try:
            return call()
        finally:
            close_old_connections()

    return await asyncio.get_running_loop().run_in_executor(executor, run)
