"""The open connections of one process: reads events, ends connections that may no longer listen, and writes to the
others.

Events within `GATHER_SECONDS` form one batch and one query. While Redis or PostgreSQL are down, connections stay open.
If something may be lost, pages are told to ask the site (`reset`). Apps' protocol has no such message, so their
connections end.

See docs/decisions.md: One event stream, one question for all connections.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from django.conf import settings

from accounts.levels.actions import touch
from accounts.signing_in.grants import Grant
from runtime import metrics
from storage.events import Entry, Position, Revoked
from stream.attempts import Attempts, retry_pause
from stream.connections import OLDEST, OpenConnection, TooManyConnectionsError
from stream.credentials import end_lapsed, end_revoked
from stream.dialects import Dialect, ListenerProtocol
from stream.event_log import BLOCK_SECONDS, OUTAGES_OF_REDIS, EventLog
from stream.threads import in_thread
from stream.writing import Writer
from web import rates
from web.rest import OUTAGES

logger = logging.getLogger(__name__)
T = TypeVar("T")

LOOK_SECONDS = 0.25
"""How often the hub looks for revocations while a batch waits for PostgreSQL."""
PRESENT = 1_000
"""Users marked as seen per statement."""
WAIT_SECONDS = 4.5
"""How long opening a connection may wait for threads and PostgreSQL."""
HEARTBEAT_SECONDS = 15.0
AGAIN_SECONDS = 0.1
"""How long to wait before a task that did not end is cancelled again."""


class StoppingError(Exception):
    """The process is stopping."""


async def end_all(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel the tasks and wait until they end. Cancels again, because `asyncio.wait_for` may drop a cancellation
    before Python 3.12.
    """
    running = set(tasks)
    while running:
        for task in running:
            task.cancel()
        _ended, running = await asyncio.wait(running, timeout=AGAIN_SECONDS)


class Hub:
    """The connections of one process. Everything but the queries runs on the loop that called `start`."""

    def __init__(self) -> None:
        self.connections: set[OpenConnection] = set()
        self.written: Position | None = None
        """Everything up to here was written. None until Redis has answered."""
        self._log = EventLog()
        self._teller = Writer(self.connections)
        self._of_user: dict[int, int] = {}
        self._revoked: dict[int, float] = {}
        """When a user had a revocation. A connection being opened may depend on what was revoked."""
        self._has_tried = asyncio.Event()
        self._redis = Attempts("The feeds server")
        self._failing: set[str] = set()
        self._asked_at = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self._opening = ThreadPoolExecutor(settings.STREAM_THREADS, "opening")
        self._is_stopping = False

    def start(self) -> None:
        """Start the hub's tasks on the running loop."""
        turns = {
            "listener": self._listen,
            "heartbeat": self._beat,
            "recheck": self._recheck,
            "presence": self._note_presence,
        }
        self._tasks = [asyncio.create_task(self._supervise(name, turn)) for name, turn in turns.items()]

    @property
    def position(self) -> Position | None:
        """The position up to which events are written or being written. None until Redis has answered."""
        return self._log.position

    @property
    def is_well(self) -> bool:
        """Whether no task or dialect failed lately. Ignores outages."""
        if not self._teller.is_well:
            return False
        return bool(self._tasks) and not self._failing and not any(task.done() for task in self._tasks)

    async def _supervise(self, name: str, turn: Callable[[], Awaitable[None]]) -> None:
        failures = 0
        while True:
            try:
                await turn()
            except Exception:
                logger.exception("the task %s of the stream failed and starts again", name)
                metrics.stream_failures.labels(name).inc()
                self._failing.add(name)
                await asyncio.sleep(retry_pause(failures))
                failures += 1
            else:
                self._failing.discard(name)
                failures = 0

    async def wait_until_begun(self) -> None:
        """Wait until the position is known, or Redis has failed: an earlier connection would miss events silently."""
        await self._has_tried.wait()

    async def stop(self) -> None:
        """End the tasks and close all connections."""
        self._is_stopping = True
        for connection in list(self.connections):
            connection.close()
        await end_all(self._tasks)
        self._teller.stop()
        self._opening.shutdown(wait=False, cancel_futures=True)

    async def in_thread(self, call: Callable[[], T]) -> T:
        """The result of a call in a thread for opening connections. Raises StoppingError if the process stops first."""
        if self._is_stopping:
            raise StoppingError
        try:
            return await in_thread(self._opening, call)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._is_stopping and not (task and task.cancelling()):  # the call was cancelled, not its caller
                raise StoppingError from None
            raise

    # --- Connections ---------------------------------------------------------------------------------------
    def check_room(self, user_id: int = 0) -> None:
        """Raise TooManyConnectionsError if the process or the user has too many connections."""
        if len(self.connections) >= settings.STREAM_CAP:
            raise TooManyConnectionsError(of_user=False)
        if self._of_user.get(user_id, 0) >= settings.STREAM_USER_CAP:
            raise TooManyConnectionsError(of_user=True)

    async def open(
        self, asked_at: float, grant: Grant, listener: ListenerProtocol, dialect: Dialect, since: Position | None = None
    ) -> OpenConnection:
        """Add a connection that first writes what happened after `since`, or a reset.

        `asked_at`: when the check of the grant began. Raises TooManyConnectionsError, Django's outages, and
        TimeoutError after a revocation.
        """
        self.check_room(grant.user_id)
        if self._revoked.get(grant.user_id, 0.0) > asked_at:
            raise TimeoutError("What the connection rests on may have been revoked meanwhile")
        connection = OpenConnection(grant, listener, dialect)
        self._of_user[grant.user_id] = self._of_user.get(grant.user_id, 0) + 1
        # From here on it gets batches too, which wait behind the replay.
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
            # A reset covers everything. A `since` from another server's clock must not block later events.
            missed, connection.after = [dialect.reset(upto)] if dialect.reset else [], upto or OLDEST
        connection.put_first(missed)
        return connection

    def leave(self, connection: OpenConnection) -> None:
        """Forget a connection. Repeating it does nothing."""
        if connection not in self.connections:
            return
        self.connections.discard(connection)
        metrics.stream_connections.set(len(self.connections))
        user_id = connection.grant.user_id
        self._of_user[user_id] -= 1
        if not self._of_user[user_id]:
            del self._of_user[user_id]

    async def _replay(
        self, connection: OpenConnection, since: Position | None, upto: Position | None
    ) -> list[bytes] | None:
        """The messages that a connection missed since `since`. None if they are not known."""
        if not since or not upto:
            return None
        if await self.in_thread(partial(rates.hit, "resume", str(connection.grant.user_id))) is not None:
            return None
        entries = await self._log.missed(since, upto)
        if entries is None:
            return None
        try:
            news = partial(connection.dialect.news, [connection.listener], entries)
            messages = await self.in_thread(news) if entries else []
        except OUTAGES:
            raise
        except Exception:
            logger.exception("missed events of a connection could not be sent")
            metrics.stream_failures.labels("replay").inc()
            return None
        return [data for _, _, data in messages]

    # --- Events --------------------------------------------------------------------------------------------
    async def _listen(self) -> None:
        try:
            try:
                lost = await self._log.join()
            finally:
                self._has_tried.set()
            self._joined(lost)
            entries = await self._log.read(self._asked_at)
        except OUTAGES_OF_REDIS as error:
            await self._redis.failed(error)
            return
        self._redis.succeeded()
        if entries:
            began = time.monotonic()
            self._log.require_rejoin()  # the stream may be trimmed meanwhile
            try:
                await self._write(entries)
            except Exception:
                self._log.position = self.written = entries[-1][0]
                self._teller.write_loss(self.written)
                raise
            if time.monotonic() < began + BLOCK_SECONDS:
                self._log.cancel_rejoin()

    def _joined(self, lost: Position | None) -> None:
        """Tell all connections of lost events if no entry tells of them."""
        self.written = self.written or self._log.position
        if lost is not None:
            self.written = lost
            self._teller.write_loss(lost)
            for connection in self.connections:
                connection.after = lost

    async def _write(self, entries: list[Entry]) -> None:
        """Write a batch to all connections. Ends connections with revocations first."""
        await self._end_revoked(entries)
        self._log.position = entries[-1][0]
        self._asked_at = time.monotonic()
        telling = asyncio.ensure_future(self._teller.write_entries(entries))
        try:
            await self._end_revoked_early(telling, entries[-1][0])
        finally:
            if not telling.done():
                telling.cancel()
        await telling
        self.written = self.position

    async def _end_revoked_early(self, telling: asyncio.Future[None], place: Position) -> None:
        """While a batch waits, end connections that later entries revoke."""
        while not (await asyncio.wait([telling], timeout=LOOK_SECONDS))[0]:
            try:
                entries = await self._log.peek(place)
            except OUTAGES_OF_REDIS:
                continue  # the next read reports it
            if entries:
                place = entries[-1][0]
                await self._end_revoked(entries)

    async def _end_revoked(self, entries: list[Entry]) -> None:
        """End the connections of users with a revocation, and refuse those being opened for them."""
        users = {event.user for _, event in entries if isinstance(event, Revoked)}
        if not users:
            return
        now = time.monotonic()
        self._revoked = {user: at for user, at in self._revoked.items() if at > now - WAIT_SECONDS}
        self._revoked |= dict.fromkeys(users, now)
        await end_revoked(self._opening, [each for each in self.connections if each.grant.user_id in users])

    # --- Time ----------------------------------------------------------------------------------------------
    async def _beat(self) -> None:
        await asyncio.sleep(1)
        now = time.monotonic()
        for connection in self.connections:
            if now >= connection.written_at + HEARTBEAT_SECONDS:
                connection.put(self._heartbeat(connection, now - connection.written_at))
        if self.position is not None:
            self._teller.write_missed(self.position)

    def _heartbeat(self, connection: OpenConnection, quiet: float) -> bytes:
        is_past = self.written is None or self.written < connection.after
        return connection.dialect.heartbeat(connection.listener, None if is_past else self.written, quiet)

    async def _recheck(self) -> None:
        await asyncio.sleep(settings.STREAM_RECHECK_SECONDS)
        await end_lapsed(self._opening, self.connections)

    async def _note_presence(self) -> None:
        await asyncio.sleep(settings.LAST_SEEN_INTERVAL.total_seconds())
        users = sorted(self._of_user)
        for first in range(0, len(users), PRESENT):
            try:
                await in_thread(self._opening, partial(touch, users[first : first + PRESENT]))
            except OUTAGES:
                return  # harmless: levels fall after a day at the earliest
