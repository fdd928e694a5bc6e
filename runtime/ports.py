"""Reserves ports. Standard library only, for manage.py."""

import contextlib
import errno
import socket
from collections.abc import Iterator


class PortError(RuntimeError):
    """The site cannot listen on a port. The message is one line for the terminal."""


@contextlib.contextmanager
def reserved_port(host: str, port: int, variable: str = "PORT") -> Iterator[None]:
    """Keep the port for this site. Raises PortError if it is taken.

    granian binds with SO_REUSEPORT, so two sites could share a port. A bound socket that does not listen admits
    granian, but fails the next site's probe.
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
            raise PortError(f"Port {port} on {host} is in use. Set {variable} to a free port.") from error
        raise PortError(f"The site cannot listen on {host}, port {port}: {error.strerror}.") from error
    with reservation:
        yield
