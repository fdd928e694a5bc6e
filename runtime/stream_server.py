"""`python -m runtime.stream_server --host H --port P --most N feedsite.asgi:application`: uvicorn, for open lines.

uvicorn holds a connection in a third of the memory that granian takes, and a socket in a seventh. What it lacks for
strangers stands here: a time limit for requests, a bound for answers to pings, and an order of stopping in which the
application ends its connections first. Another instance may listen on the same port (`SO_REUSEPORT`).

See docs/decisions.md: Open connections have a server of their own.
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

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState
from websockets.protocol import State

REQUEST_SECONDS = 20
"""How long a client may take to say a request."""
MOST_SAID = 16_384
"""Bytes of a client's longest message."""
BACKLOG, ACCEPTED = 2_048, 16
"""Connections that may wait to be accepted, and that are accepted at once."""
READ_BYTES = 4_096
REFUSED = 1_000
"""Connections beyond the most, which are told so; those beyond these are cut."""
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

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        # asyncio reads 256 KB at once; as many pieces as a stranger likes in them would be read before all else.
        transport.max_size = READ_BYTES  # type: ignore[attr-defined]
        if self.limit_concurrency and len(self.connections) > self.limit_concurrency + REFUSED:
            transport.abort()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        super().connection_lost(exc)
        if self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None

    def data_received(self, data: bytes) -> None:
        """Read on. No request of this process has a body: one that goes on after the answer is cut."""
        super().data_received(data)
        is_answered = self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY
        if is_answered and self.transport.get_protocol() is self:
            self.transport.abort()
        else:
            self._watch()

    def _watch(self) -> None:
        is_idle = self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and self.transport.get_protocol() is self
        if is_idle and self.waiting is None:
            self.waiting = self.loop.call_later(REQUEST_SECONDS, self.transport.close)
        elif not is_idle and self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None


class Socket(WebSocketsSansIOProtocol):
    """A socket. uvicorn goes on reading from a client that reads nothing, and keeps its answers to pings; a request to
    open one that its library cannot read it leaves unanswered and open.
    """

    def data_received(self, data: bytes) -> None:
        """Read no more until what is written has been taken, and nothing before the socket is open."""
        if self.handshake_initiated and self.conn.state is State.CONNECTING:
            self.transport.abort()
            return
        super().data_received(data)
        if not self.handshake_initiated:
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.transport.close()
            return
        if not self.writable.is_set():
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        """Read on, too."""
        super().resume_writing()
        if not self.read_paused:
            self.transport.resume_reading()

    def shutdown(self) -> None:
        """End, whatever the client has done to it already."""
        try:
            super().shutdown()
        except (AssertionError, InvalidState):
            self.transport.abort()


class Server(uvicorn.Server):
    """Takes no new connections, has the application end those that are open, and stops."""

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


def config(application: str, most: int) -> uvicorn.Config:
    """`most`: connections, beyond which requests are answered by 503."""
    return uvicorn.Config(
        application,
        loop="asyncio",
        http=Request,
        ws=Socket,
        ws_max_size=MOST_SAID,
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


def is_told(record: logging.LogRecord) -> bool:
    """Whether a line of uvicorn's is logged: a client that is dropped because it reads too slowly is no error."""
    return "without completing response" not in record.msg


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
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    logging.getLogger("uvicorn.error").addFilter(is_told)
    Server(config(asked.application, asked.most)).run([listener])


if __name__ == "__main__":
    main(sys.argv[1:])
