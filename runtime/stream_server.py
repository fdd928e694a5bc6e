"""`python -m runtime.stream_server --host H --port P --most N feedsite.asgi:application`: uvicorn, for open lines.

uvicorn holds a connection in a third of the memory that granian takes, and a socket in a seventh. What it lacks for
strangers stands here: bounds for requests and their time, for what a socket says and for connections, and an order of
stopping in which the application ends its connections first. Another instance may listen on the same port
(`SO_REUSEPORT`).

See docs/decisions.md: uvicorn serves open connections.
See docs/decisions.md: Own code in place of a library.
"""

import argparse
import asyncio
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState
from websockets.protocol import State

REQUEST_SECONDS = 20
"""How long a client may take to say a request."""
READ_BYTES = 4_096
"""Bytes read of a client before others have their turn. asyncio reads 256 KB: 43,000 of the smallest frames."""
MESSAGE_BYTES, FRAGMENTS = 16_384, 64
"""A client's longest message, and its parts."""
SAID_BYTES, SAID_SECONDS = 262_144, 60.0
"""A client that says more in so many seconds is cut off: frames that are no message cost as much as others."""
BACKLOG, ACCEPTED = 2_048, 16
"""Connections that may wait to be accepted, and that are accepted at once."""
REFUSED = 1_000
"""Connections beyond the most, which the application may answer; those beyond these are cut."""
OWN_FILES, MIN_ROOM = 200, 100
"""Files that the process has open besides (servers, libraries, logs), and the fewest connections worth a start."""
TICK_SECONDS = 1.0
"""How often the header `Date` is made."""
END_SECONDS = 1
"""How long clients may take to notice that their connections have ended."""
GONE_SECONDS = 60
"""How long a peer may acknowledge nothing, or take nothing, of what is written to it."""
PROBES = {
    "SO_KEEPALIVE": (socket.SOL_SOCKET, 1),
    "TCP_KEEPIDLE": (socket.IPPROTO_TCP, 30),
    "TCP_KEEPINTVL": (socket.IPPROTO_TCP, 10),
    "TCP_KEEPCNT": (socket.IPPROTO_TCP, 3),
    "TCP_USER_TIMEOUT": (socket.IPPROTO_TCP, GONE_SECONDS * 1000),
}
"""Options by which the kernel finds peers that are gone without a word, as a phone out of reach or a proxy whose
machine died. Probes after 30 quiet seconds keep the tables of routers fresh, too.
"""


class Request(H11Protocol):
    """A connection until it is a socket. uvicorn waits for ever for the rest of a request."""

    waiting: asyncio.TimerHandle | None = None

    def __init__(self, *words: Any, **named: Any) -> None:
        super().__init__(*words, **named)
        self.most = self.limit_concurrency or 0
        # uvicorn would count connections that say nothing, and refuse questions about health for them.
        self.limit_concurrency = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        transport.max_size = READ_BYTES  # type: ignore[attr-defined]
        if len(self.connections) > self.most + REFUSED:
            transport.abort()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        super().connection_lost(exc)
        self._wait(is_wanted=False)

    def data_received(self, data: bytes) -> None:
        """Read on. No request of this process has a body: one that goes on after the answer is cut."""
        super().data_received(data)
        is_answered = self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY
        if is_answered and self.transport.get_protocol() is self:
            self.transport.abort()
        else:
            self._watch()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, and let the application say no more. After its answer there is nothing to say."""
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:
            self.transport.abort()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def _watch(self) -> None:
        is_unsaid = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        self._wait(is_wanted=is_unsaid and self.transport.get_protocol() is self)

    def _wait(self, *, is_wanted: bool) -> None:
        if is_wanted and self.waiting is None:
            self.waiting = self.loop.call_later(REQUEST_SECONDS, self.transport.close)
        elif not is_wanted and self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None


class Socket(WebSocketsSansIOProtocol):
    """A socket. uvicorn bounds messages and not what else a client says, and leaves a request to open one that its
    library cannot read unanswered and open.
    """

    said, said_since = 0, 0.0

    def data_received(self, data: bytes) -> None:
        """Read on, but nothing before the socket is open."""
        is_early = self.handshake_initiated and self.conn.state is State.CONNECTING
        if is_early or self._says_too_much(data):
            self.transport.abort()
            return
        super().data_received(data)
        if not self.handshake_initiated:
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.transport.close()
        elif len(self.frames) > FRAGMENTS:
            self.transport.abort()

    def _says_too_much(self, data: bytes) -> bool:
        now = self.loop.time()
        if now > self.said_since + SAID_SECONDS:
            self.said, self.said_since = 0, now
        self.said += len(data)
        return self.said > SAID_BYTES

    def shutdown(self) -> None:
        """End, whatever the client has done to it already."""
        try:
            super().shutdown()
        except (AssertionError, InvalidState):
            self.transport.abort()


class Server(uvicorn.Server):
    """At the end it takes no new connections, has the application end those that are open, and stops."""

    loop: asyncio.AbstractEventLoop
    turn: asyncio.Event | None = None

    async def main_loop(self) -> None:
        """Wait for the end. uvicorn looks for it ten times a second, a sixth of what the whole site takes at rest; each
        second the header `Date` is made anew.
        """
        self.loop, self.turn = asyncio.get_running_loop(), asyncio.Event()
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self.turn.wait(), TICK_SECONDS)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End at once."""
        super().handle_exit(sig, frame)
        if self.turn is not None:
            self.loop.call_soon_threadsafe(self.turn.set)  # a loop that waits is not woken by the signal itself

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """asyncio accepts as many at once as may wait, and without file descriptors it tells of each that fails."""
        await super().startup(sockets)
        for each in sockets or []:
            each.listen(BACKLOG)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """uvicorn would wait for streams to end before it tells the application."""
        for each in self.servers:
            each.close()
        await self.lifespan.shutdown()
        await super().shutdown(sockets)


def listening(host: str, port: int) -> socket.socket:
    """A socket that shares its port, bound and not listening; connections inherit its options. Raises OSError.

    Systems that lack an option go without.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    for name, (level, value) in PROBES.items():
        with suppress(OSError, AttributeError):
            listener.setsockopt(level, getattr(socket, name), value)
    listener.bind(address)
    return listener


def room(most: int) -> int:
    """How many of `most` connections fit into the files that the system lets the process have; it asks for them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + REFUSED + OWN_FILES
    files = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return most - (wanted - files)


def config(application: str, most: int) -> uvicorn.Config:
    """`most`: connections that the application takes; it refuses more by itself, up to `REFUSED`."""
    return uvicorn.Config(
        application,
        loop="asyncio",
        http=Request,
        ws=Socket,
        ws_max_size=MESSAGE_BYTES,
        ws_ping_interval=None,
        ws_per_message_deflate=False,  # a compressor takes 30 KB a socket
        lifespan="on",
        log_config=None,
        log_level="error",  # warnings are of clients; addresses, which hold tokens, are information
        access_log=False,
        proxy_headers=False,  # the site has its own rule (web/proxy.py)
        server_header=False,
        limit_concurrency=most,
        backlog=ACCEPTED,
        timeout_graceful_shutdown=END_SECONDS,
    )


NO_ERRORS = ("without completing response", "without completing handshake", "Invalid UTF-8")


def is_told(record: logging.LogRecord) -> bool:
    """Whether a line of uvicorn's is logged: a client that is dropped because it reads too slowly, that says what is no
    text, or that is refused a socket, is no error.
    """
    said = str(record.msg)
    return not any(words in said for words in NO_ERRORS)


def end(number: int, frame: object) -> None:
    """End the process. Its threads may wait for PostgreSQL, and are not waited for."""
    os._exit(0)


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """Read the words of the command line. Exits with 2 where they are wrong."""
    parser = argparse.ArgumentParser(prog="runtime.stream_server")
    parser.add_argument("application")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--most", type=int, required=True, help="connections")
    return parser.parse_args(words)


def main(words: Sequence[str]) -> None:
    """Serve until SIGTERM or SIGINT, at which uvicorn stops and then raises the signal again."""
    asked = arguments(words)
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, end)
    try:
        listener = listening(asked.host, asked.port)
    except OSError as error:
        sys.exit(f"{asked.host} port {asked.port} cannot be listened on: {error}")
    most = room(asked.most)
    if most < MIN_ROOM:
        sys.exit(f"The system allows too few open files (ulimit -n): {asked.most + REFUSED + OWN_FILES} are wanted.")
    if most < asked.most:
        sys.stderr.write(f"The system allows {most} open connections of {asked.most} (ulimit -n).\n")
    logging.getLogger("uvicorn.error").addFilter(is_told)
    Server(config(asked.application, most)).run([listener])


if __name__ == "__main__":
    main(sys.argv[1:])
