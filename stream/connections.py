import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from accounts.signing_in.grants import Grant
from storage.events import Position
from stream.dialects import Dialect, ListenerProtocol

BACKLOG = 256
"""Unwritten messages of a slow client. At more it is dropped; it comes back and resumes."""
OLDEST = Position(0, 0)
GONE, REFUSED, FAILED, AGAIN = 1001, 1008, 1011, 1013
"""Close codes of WebSockets: the server stops, the listener may not listen, an error, the client should reconnect."""

Send = Callable[[Sequence[bytes]], Awaitable[None]]


class TooManyConnectionsError(Exception):
    """No further connection may open: for this user, or at all."""

    def __init__(self, *, of_user: bool) -> None:
        self.of_user = of_user


class OpenConnection:
    """An open connection and its unwritten messages. `put` never waits. `serve` writes until either side closes."""

    __slots__ = (
        "_is_closed",
        "_pending",
        "_task",
        "_waiter",
        "after",
        "code",
        "dialect",
        "grant",
        "listener",
        "opened_at",
        "written_at",
    )

    def __init__(self, grant: Grant, listener: ListenerProtocol, dialect: Dialect) -> None:
        self.grant = grant
        self.dialect = dialect
        self.listener = listener
        self.after = OLDEST
        self.code = GONE
        self.opened_at = self.written_at = time.monotonic()
        self._is_closed = False
        self._pending: deque[bytes] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._task: asyncio.Task[Any] | None = None

    def put(self, message: bytes) -> None:
        """Queue a message. Closes the connection if too many messages wait."""
        if not message:
            return
        if len(self._pending) >= BACKLOG:
            self.close()
            return
        self._pending.append(message)
        self.written_at = time.monotonic()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def put_first(self, messages: list[bytes]) -> None:
        """Queue messages before all others."""
        self._pending.extendleft(reversed([one for one in messages if one]))

    def close(self, code: int = GONE) -> None:
        """Close the connection, even during a write. The first code counts."""
        if not self._is_closed:
            self.code = code
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()

    async def serve(self, send: Send) -> None:
        """Write messages until `close`."""
        self._task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        with suppress(asyncio.CancelledError):
            while not self._is_closed:
                if not self._pending:
                    self._waiter = loop.create_future()
                    await self._waiter
                waiting = tuple(self._pending)
                self._pending.clear()
                await send(waiting)
        self._task = None
