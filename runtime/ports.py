"""Ports on which the site listens. manage.py looks at them before its environment exists: standard library only."""

import contextlib
import errno
import socket
from collections.abc import Iterator


class PortError(RuntimeError):
    """The site cannot listen there. The message is one line for the person at the terminal."""


@contextlib.contextmanager
def reserved_port(host: str, port: int, variable: str = "PORT") -> Iterator[None]:
    """Keep the port for a program of this site. Raises PortError when it is taken.

    granian binds with SO_REUSEPORT, so two sites that start at the same time would both succeed, and share the
    visitors. A bound socket that does not listen lets granian in beside it, and shows the next site's probe that
    the port is taken.
    """
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
        reservation = socket.socket(family, kind, protocol)
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reservation.bind(place)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortError(f"Port {port} of {host} is taken; set {variable} to a free one.") from error
        raise PortError(f"The site cannot listen on {host}, port {port}: {error.strerror}.") from error
    with reservation:
        yield
