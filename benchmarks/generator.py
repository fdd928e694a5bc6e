"""Calls of a site over kept connections, in a closed or an open loop, by one process and its one thread.

In an open loop the calls come by chance (Poisson), whatever became of earlier ones, and their time counts from the
moment at which they were to be sent. So a site that stands still delays every call of that time, and not only those
that a waiting client would have made (no coordinated omission). Connections are shared, as a proxy shares them: a call
takes a free one, or opens another.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

WAIT_SECONDS = 30.0
"""Seconds that a call waits for its answer."""
UNANSWERED = 0
"""In place of the status of a call that was not answered, or not to its end."""
IDLE_SECONDS = 20.0
"""Seconds after which a free connection is not used again: the server closes those that say nothing for 30."""


class Call(NamedTuple):
    """One request to be made. `told` gets the answer to a write; `opens` is a stream, answered when it is open."""

    kind: str
    request: bytes
    told: Callable[["Answer"], None] | None = None
    opens: bool = False


class Answer(NamedTuple):
    """`retry_after` is empty where the answer does not name one."""

    status: int
    retry_after: str
    body: bytes


class Made(NamedTuple):
    """A call that was made: its times by time.monotonic(), from when it was to be sent."""

    kind: str
    intended: float
    ended: float
    answer: Answer

    @property
    def seconds(self) -> float:
        """The time that its client waited."""
        return self.ended - self.intended


NOTHING = Answer(UNANSWERED, "", b"")


class Line(asyncio.Protocol):
    """A kept connection, on which one request at a time is answered. Every answer has a Content-Length, or no body."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.received = b""
        self.waiter: asyncio.Future[Answer] | None = None
        self.idle_since = 0.0
        self.is_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = transport  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        """Whatever waits is not answered."""
        self.is_closed = True
        self._tell(NOTHING)

    def data_received(self, data: bytes) -> None:
        """Read on, and tell an answer that is whole."""
        self.received += data
        head, end, body = self.received.partition(b"\r\n\r\n")
        if not end:
            return
        status, fields = int(head[9:12]), fields_of(head)
        if len(body) >= int(fields.get(b"content-length", b"0")):
            self.received = b""
            if fields.get(b"connection") == b"close":
                self.transport.close()
                self.is_closed = True
            self._tell(Answer(status, fields.get(b"retry-after", b"").decode(), body))

    def _tell(self, answer: Answer) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(answer)

    async def ask(self, request: bytes) -> Answer:
        """The answer to one request."""
        self.waiter = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        try:
            return await asyncio.wait_for(self.waiter, WAIT_SECONDS)
        except TimeoutError:
            self.transport.abort()
            self.is_closed = True
            return NOTHING


def fields_of(head: bytes) -> dict[bytes, bytes]:
    """The headers of an answer, their names in small letters."""
    pairs = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


class Generator:
    """Makes calls of a server; all that were made since the last `taken` are in `made`."""

    def __init__(self, port: int, stream_port: int, chance: random.Random) -> None:
        self.port, self.stream_port = port, stream_port
        self.chance = chance
        self.free: deque[Line] = deque()
        self.made: list[Made] = []
        self.opened = 0
        """Connections so far."""

    async def closed(self, calls: Callable[[], Call], *, clients: int, seconds: float) -> None:
        """Run a closed loop: `clients`, each of which asks anew as soon as it has its answer."""
        until = time.monotonic() + seconds

        async def client() -> None:
            while (now := time.monotonic()) < until:
                await self.call(calls(), now)

        await asyncio.gather(*(client() for _ in range(clients)))

    async def open(self, calls: Callable[[], Call], *, rate: float, seconds: float) -> None:
        """`rate` calls a second by chance; returns when all are answered."""
        at = time.monotonic()
        until = at + seconds
        running: set[asyncio.Task[None]] = set()
        while (at := at + self.chance.expovariate(rate)) < until:
            if (pause := at - time.monotonic()) > 0:
                await asyncio.sleep(pause)
            task = asyncio.create_task(self.call(calls(), at))
            running.add(task)
            task.add_done_callback(running.discard)
        if running:
            await asyncio.wait(running)

    async def call(self, call: Call, intended: float) -> None:
        """Make one call, and note it."""
        answer = await (self.opened_stream if call.opens else self.asked)(call.request)
        self.made.append(Made(call.kind, intended, time.monotonic(), answer._replace(body=b"")))
        if call.told is not None:
            call.told(answer)

    async def asked(self, request: bytes) -> Answer:
        """The answer to a request, on a free connection or another one."""
        try:
            line = await self._line()
        except OSError:
            return NOTHING
        answer = await line.ask(request)
        if not line.is_closed:
            line.idle_since = time.monotonic()
            self.free.append(line)
        return answer

    async def opened_stream(self, request: bytes) -> Answer:
        """Open a stream, and close it: 200 where it was opened."""
        streams = await listening(self.stream_port, [request])
        for stream in streams:
            stream.transport.abort()
        return Answer(200, "", b"") if streams else NOTHING

    async def _line(self) -> Line:
        least = time.monotonic() - IDLE_SECONDS
        while self.free:
            line = self.free.pop()  # the one that was used last
            if not line.is_closed and line.idle_since > least:
                return line
            line.transport.abort()
        self.opened += 1
        _, line = await asyncio.wait_for(
            asyncio.get_running_loop().create_connection(Line, "127.0.0.1", self.port), WAIT_SECONDS
        )
        return line

    def taken(self) -> list[Made]:
        """The calls since the last time."""
        made, self.made = self.made, []
        return made

    def close(self) -> None:
        """Close all free connections."""
        while self.free:
            self.free.pop().transport.abort()


class Listener(asyncio.Protocol):
    """An open stream. Notes when it opened, and when it heard of each item."""

    def __init__(self, request: bytes, heard: Callable[[int, float], None] | None = None) -> None:
        self.request, self.heard, self.rest = request, heard, b""
        self.opened: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the stream."""
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        """Read the lines that have come."""
        if not self.opened.done() and b"\r\n\r\n" in data:
            self.opened.set_result(data.startswith(b"HTTP/1.1 200"))
        if self.heard is None:
            return
        now = time.monotonic()
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b'data: {"id":"'):
                self.heard(int(line.split(b'"')[3]), now)

    def connection_lost(self, exc: Exception | None) -> None:
        """Mark the connection as ended."""
        if not self.opened.done():
            self.opened.set_result(False)


async def listening(
    port: int, requests: Sequence[bytes], heard: Callable[[int, float], None] | None = None
) -> list[Listener]:
    """Streams that are open; those that were refused are left out."""
    loop = asyncio.get_running_loop()
    opened = []
    for request in requests:
        with suppress(OSError):
            _, one = await loop.create_connection(partial(Listener, request, heard), "127.0.0.1", port)
            if await asyncio.wait_for(one.opened, WAIT_SECONDS):
                opened.append(one)
    return opened


async def every(seconds: float, look: Callable[[], object]) -> None:
    """Look again and again, until cancelled."""
    while True:
        look()
        await asyncio.sleep(seconds)
