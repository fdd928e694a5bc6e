"""Peers that are gone without a word: the kernel finds them, and ends their connections.

A phone out of reach, or a proxy whose machine died, closes nothing. Heartbeats then pile up in the kernel, which tries
for a quarter of an hour by default. Connections inherit the options of the socket that listens for them.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

logger = logging.getLogger(__name__)

TRIES, PAUSE = 1_500, 0.02
GONE_SECONDS = 60
"""How long a peer may acknowledge nothing, or take nothing, of what is written to it."""
PROBES = {
    "SO_KEEPALIVE": (socket.SOL_SOCKET, 1),
    "TCP_KEEPIDLE": (socket.IPPROTO_TCP, 30),
    "TCP_KEEPINTVL": (socket.IPPROTO_TCP, 10),
    "TCP_KEEPCNT": (socket.IPPROTO_TCP, 3),
    "TCP_USER_TIMEOUT": (socket.IPPROTO_TCP, GONE_SECONDS * 1000),
}
"""The options by name: probes after 30 quiet seconds keep the tables of routers fresh, too."""


async def notice_gone_peers() -> None:
    """Wait for the server to listen, which it does after the application has started, and set the options.

    Systems that lack an option, or a list of open files, go without.
    """
    for _ in range(TRIES):
        if _set():
            return
        await asyncio.sleep(PAUSE)
    logger.warning("No socket was found on which connections come in: peers that are gone are noticed late")


def _set() -> int:
    """Set the options on the sockets that this process listens on; returns how many there are."""
    count = 0
    for listener in _listening():
        with listener:
            for name, (level, value) in PROBES.items():
                with suppress(OSError, AttributeError):
                    listener.setsockopt(level, getattr(socket, name), value)
        count += 1
    return count


def _listening() -> Iterator[socket.socket]:
    """Copies of the listening sockets of TCP that are open in this process."""
    with suppress(OSError):
        for entry in Path("/proc/self/fd").iterdir():
            with suppress(OSError):
                copy = os.dup(int(entry.name))
                try:
                    one = socket.socket(fileno=copy)
                except OSError:  # no socket
                    os.close(copy)
                    continue
                is_tcp = one.family in (socket.AF_INET, socket.AF_INET6) and one.type == socket.SOCK_STREAM
                if is_tcp and one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    yield one
                else:
                    one.close()
