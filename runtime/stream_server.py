"""`python -m runtime.stream_server --host H --port P --most N feedsite.asgi:application`: uvicorn for open connections.

Adds limits on requests, their time, messages and connections. Another instance may share the port.

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
"""Maximum time for sending a request."""
READ_BYTES = 4_096
"""Bytes read from a client per turn. asyncio's 256 KB would be up to 43,000 tiny frames."""
MESSAGE_BYTES, FRAGMENTS = 16_384, 64
"""Maximum size and number of fragments of a client's message."""
SAID_BYTES, SAID_SECONDS = 262_144, 60.0
"""Bytes per period that a client may send. Frames that are no messages also cost time."""
BACKLOG, ACCEPTED = 2_048, 16
"""Connections waiting to be accepted, and accepted at once."""
REFUSED = 1_000
"""Connections above the maximum that the application still refuses politely. More are cut."""
OWN_FILES, MIN_ROOM = 200, 100
"""Other open files of the process (servers, libraries, logs), and the minimum of connections for a start."""
TICK_SECONDS = 1.0
"""How often the header `Date` is updated."""
END_SECONDS = 1
"""How long clients have to notice the end of their connections."""
GONE_SECONDS = 60
"""Maximum time without an acknowledgement from the peer."""
PROBES = {
    "SO_KEEPALIVE": (socket.SOL_SOCKET, 1),
    "TCP_KEEPIDLE": (socket.IPPROTO_TCP, 30),
    "TCP_KEEPINTVL": (socket.IPPROTO_TCP, 10),
    "TCP_KEEPCNT": (socket.IPPROTO_TCP, 3),
    "TCP_USER_TIMEOUT": (socket.IPPROTO_TCP, GONE_SECONDS * 1000),
}
"""Socket options that let the kernel find silently lost peers: a phone out of reach, a proxy on a dead machine. Probes
after 30 quiet seconds also keep entries in routers' tables.
"""


class HttpConnection(H11Protocol):
    """An HTTP connection with a timeout. uvicorn would wait forever for a request."""

    waiting: asyncio.TimerHandle | None = None

    def __init__(self, *words: Any, **named: Any) -> None:
        super().__init__(*words, **named)
        self.most = self.limit_concurrency or 0
        # uvicorn would count silent connections, and refuse health checks because of them.
        self.limit_concurrency = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout, and end the connection if there are too many."""
        super().connection_made(transport)
        transport.max_size = READ_BYTES  # type: ignore[attr-defined]
        if len(self.connections) > self.most + REFUSED:
            transport.abort()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timeout."""
        super().connection_lost(exc)
        self._set_timer(is_wanted=False)

    def data_received(self, data: bytes) -> None:
        """Parse the data. Requests have no bodies: cuts one that continues after its answer."""
        super().data_received(data)
        is_answered = self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY
        if is_answered and self.transport.get_protocol() is self:
            self.transport.abort()
        else:
            self._watch()

    def send_400_response(self, msg: str) -> None:
        """Refuse invalid HTTP, and silence the application."""
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:
            self.transport.abort()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def _watch(self) -> None:
        is_unsaid = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        self._set_timer(is_wanted=is_unsaid and self.transport.get_protocol() is self)

    def _set_timer(self, *, is_wanted: bool) -> None:
        if is_wanted and self.waiting is None:
            self.waiting = self.loop.call_later(REQUEST_SECONDS, self.transport.close)
        elif not is_wanted and self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None


class LimitedWebSocket(WebSocketsSansIOProtocol):
    """A WebSocket with limits. uvicorn limits only messages, and leaves an unreadable handshake open."""

    said, said_since = 0, 0.0

    def data_received(self, data: bytes) -> None:
        """Parse the data. Ends the connection if data comes before the socket is open, or too much."""
        is_early = self.handshake_initiated and self.conn.state is State.CONNECTING
        if is_early or self._exceeds_rate(data):
            self.transport.abort()
            return
        super().data_received(data)
        if not self.handshake_initiated:
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.transport.close()
        elif len(self.frames) > FRAGMENTS:
            self.transport.abort()

    def _exceeds_rate(self, data: bytes) -> bool:
        now = self.loop.time()
        if now > self.said_since + SAID_SECONDS:
            self.said, self.said_since = 0, now
        self.said += len(data)
        return self.said > SAID_BYTES

    def shutdown(self) -> None:
        """End the socket in any state."""
        try:
            super().shutdown()
        except (AssertionError, InvalidState):
            self.transport.abort()


class StreamServer(uvicorn.Server):
    """A uvicorn server that lets the application end its connections before it stops."""

    loop: asyncio.AbstractEventLoop
    turn: asyncio.Event | None = None

    async def main_loop(self) -> None:
        """Wait for the end. uvicorn's ten checks a second were a sixth of the site's CPU time at rest."""
        self.loop, self.turn = asyncio.get_running_loop(), asyncio.Event()
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self.turn.wait(), TICK_SECONDS)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note a signal, and wake the loop at once."""
        super().handle_exit(sig, frame)
        if self.turn is not None:
            self.loop.call_soon_threadsafe(self.turn.set)  # a signal alone does not wake the loop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen with a small backlog.

        asyncio would accept a whole backlog at once, and log each failure without file descriptors.
        """
        await super().startup(sockets)
        for each in sockets or []:
            each.listen(BACKLOG)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, and tell the application first. uvicorn would wait for streams."""
        for each in self.servers:
            each.close()
        await self.lifespan.shutdown()
        await super().shutdown(sockets)


def bound_socket(host: str, port: int) -> socket.socket:
    """A bound socket with SO_REUSEPORT, not listening yet. Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    for name, (level, value) in PROBES.items():
        with suppress(OSError, AttributeError):
            listener.setsockopt(level, getattr(socket, name), value)
    listener.bind(address)
    return listener


def raise_file_limit(most: int) -> int:
    """Raise the soft limit of open files as needed. Returns how many of `most` connections it allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + REFUSED + OWN_FILES
    files = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return most - (wanted - files)


def config(application: str, most: int) -> uvicorn.Config:
    """uvicorn's configuration. The application refuses up to `REFUSED` connections above `most` itself."""
    return uvicorn.Config(
        application,
        loop="asyncio",
        http=HttpConnection,
        ws=LimitedWebSocket,
        ws_max_size=MESSAGE_BYTES,
        ws_ping_interval=None,
        ws_per_message_deflate=False,  # a compressor takes 30 KB per socket
        lifespan="on",
        log_config=None,
        log_level="error",  # warnings are about clients; info lines have addresses with tokens
        access_log=False,
        proxy_headers=False,  # the site has its own rule (web/proxy.py)
        server_header=False,
        limit_concurrency=most,
        backlog=ACCEPTED,
        timeout_graceful_shutdown=END_SECONDS,
    )


NO_ERRORS = ("without completing response", "without completing handshake", "Invalid UTF-8")


def is_worth_logging(record: logging.LogRecord) -> bool:
    """Log filter: False for slow readers, invalid text and refused sockets, which are no errors."""
    said = str(record.msg)
    return not any(words in said for words in NO_ERRORS)


def exit_now(number: int, frame: object) -> None:
    """Signal handler: end at once. Threads may wait for PostgreSQL."""
    os._exit(0)


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line. Exits with 2 on errors."""
    parser = argparse.ArgumentParser(prog="runtime.stream_server")
    parser.add_argument("application")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--most", type=int, required=True, help="connections")
    return parser.parse_args(words)


def main(words: Sequence[str]) -> None:
    """Serve until SIGTERM or SIGINT."""
    asked = arguments(words)
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, exit_now)
    try:
        listener = bound_socket(asked.host, asked.port)
    except OSError as error:
        sys.exit(f"{asked.host} port {asked.port} cannot be listened on: {error}")
    most = raise_file_limit(asked.most)
    if most < MIN_ROOM:
        sys.exit(f"The stream process needs {asked.most + REFUSED + OWN_FILES} open files: raise ulimit -n.")
    if most < asked.most:
        sys.stderr.write(f"ulimit -n allows only {most} of {asked.most} open connections. Raise it.\n")
    logging.getLogger("uvicorn.error").addFilter(is_worth_logging)
    StreamServer(config(asked.application, most)).run([listener])


if __name__ == "__main__":
    main(sys.argv[1:])
