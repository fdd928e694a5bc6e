"""Closes connections of web if their request bodies do not arrive.

granian does not tell which connection a request uses, but the kernel counts bytes. When a read takes longer than
`SECONDS`, this closes connections on which the client sent fewer than `ENOUGH` bytes and got nothing, idle ones too.

Linux only. Elsewhere, and on a Unix socket, the proxy limits its clients (deploy/).

See docs/decisions.md: Requests queue in the site, not in granian.
"""

import fcntl
import logging
import os
import socket
import struct
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

logger = logging.getLogger(__name__)

SECONDS = 30.0
ENOUGH = 64 * 1024
"""Bytes that a connection must send in `SECONDS`."""
OPEN_FILES = Path("/proc/self/fd")
TCP_INFO = struct.Struct("=24xI92xQQ8xI")
"""From Linux's struct tcp_info: packets in flight, bytes acknowledged by the peer, bytes received, bytes unsent."""


class Traffic(NamedTuple):
    """A connection's bytes so far."""

    got: int
    brought: int
    is_busy: bool
    """Whether bytes wait here to be sent or read."""

    @classmethod
    def of(cls, connection: socket.socket) -> "Traffic":
        """The connection's traffic so far. Raises OSError."""
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO.size)
        under_way, got, brought, unsent = TCP_INFO.unpack(info)
        unread = int.from_bytes(fcntl.ioctl(connection, termios.FIONREAD, bytes(4)), sys.byteorder)
        return cls(got, brought, bool(under_way or unsent or unread))


@dataclass
class SlowConnection:
    """A connection, and since when it is slow."""

    since: float
    traffic: Traffic


class SlowSenders:
    """Body reads of this process, and a thread that checks them."""

    def __init__(self, seconds: float = SECONDS, enough: int = ENOUGH) -> None:
        self.seconds, self.enough = seconds, enough
        self._reads: dict[object, float] = {}
        self._seen: dict[Any, SlowConnection] = {}
        self._lock = threading.Lock()
        self._is_started = not sys.platform.startswith("linux")

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch a read in the block. It must bring `enough` bytes in time."""
        read = object()
        with self._lock:
            self._reads[read] = time.monotonic()
            is_first, self._is_started = not self._is_started, True
        if is_first:
            threading.Thread(target=self._work, name="slow-senders", daemon=True).start()
        try:
            yield
        finally:
            with self._lock:
                del self._reads[read]

    def _work(self) -> None:
        while True:
            time.sleep(self.seconds / 4)
            try:
                self.close_slow(time.monotonic())
            except OSError:
                logger.exception("the check for slow clients failed and is repeated")

    def close_slow(self, now: float) -> None:
        """Close slow connections if a read is late. Raises OSError."""
        with self._lock:
            oldest = min(self._reads.values(), default=None)
        if oldest is None:
            self._seen.clear()
            return
        with _connections() as connections:
            before, self._seen = self._seen, {}
            for name, connection in connections.items():
                with suppress(OSError):  # it has ended
                    seen = self._seen[name] = self._updated(before.get(name), Traffic.of(connection), now)
                    if now - max(oldest, seen.since) >= self.seconds:
                        connection.shutdown(socket.SHUT_RDWR)
                        logger.warning("closed the connection of a slow client: %s", name[1][0])

    def _updated(self, seen: SlowConnection | None, traffic: Traffic, now: float) -> SlowConnection:
        if seen is None or traffic.is_busy or traffic.got != seen.traffic.got:
            return SlowConnection(now, traffic)
        return SlowConnection(now, traffic) if traffic.brought - seen.traffic.brought >= self.enough else seen


@contextmanager
def _connections() -> Iterator[dict[Any, socket.socket]]:
    """This process's TCP connections of web, by descriptor and peer. Raises OSError."""
    with ExitStack() as stack:
        connected, ports = {}, set()
        for file in OPEN_FILES.iterdir():
            with suppress(OSError):  # it was closed, or is no TCP socket
                if not str(file.readlink()).startswith("socket:"):
                    continue
                one = stack.enter_context(socket.socket(fileno=os.dup(int(file.name))))
                if one.type != socket.SOCK_STREAM or one.family not in (socket.AF_INET, socket.AF_INET6):
                    continue
                if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    ports.add(one.getsockname()[1])
                else:
                    connected[file.name, one.getpeername()] = one
        yield {name: one for name, one in connected.items() if one.getsockname()[1] in ports}


slow_senders = SlowSenders()
