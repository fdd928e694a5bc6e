"""Requests to servers that members choose, such as those of links and of pushes.

The address may lead into the site's own network, or to a server that never ends. So requests go only to public
addresses that were checked and the ports of the web, with bounds of time and size.

Each request is paid from two budgets, of the member who named the server and of the server (rates `outside_member` and
`outside_host`). A second is reserved before it, and what it took is counted after it. So requests at the same time pass
a budget by no more than they take.
"""

import contextlib
import math
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from http.client import HTTPException
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple
from urllib.parse import urljoin

from django.conf import settings
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError, LocationParseError
from urllib3.response import BaseHTTPResponse
from urllib3.util import Url, parse_url

from runtime.version import VERSION
from storage.queue import check_lane
from web import rates

SECONDS = 5.0
"""Seconds that a request may take in all: names, redirects and the body."""
MOST_BYTES = 1 << 20
"""Bytes that are read of a body, unpacked."""
REDIRECTS = 3
ADDRESSES = 4
"""Addresses of a name that are tried."""
RESERVED_SECONDS = 1.0
"""Seconds of a budget that work takes before it begins."""
FREE_SECONDS = 0.5
"""Seconds of each request that its host does not pay. So a fast push service of many members has no bound."""
PORTS = {"http": 80, "https": 443}
MOVED = frozenset({301, 302, 303, 307, 308})

NAT64 = IPv6Network("64:ff9b::/96")
UNICAST = IPv6Network("2000::/3")
INSIDE = (
    IPv4Network("192.0.0.0/24"),  # one cloud answers its machines here
    IPv4Network("168.63.129.16/32"),  # and another one here
)

Address = IPv4Address | IPv6Address


class OutboundError(Exception):
    """A request to another server brought no usable answer."""


class AddressRefusedError(OutboundError):
    """The site sends no requests to this address."""


class OverBudgetError(OutboundError):
    """The member or the host has used up its time. There is time again after `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__("over its budget")
        self.seconds = seconds


class OutboundResponse(NamedTuple):
    """Another server's answer. `url` is the address after all redirects, `body` has at most MOST_BYTES."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    is_whole: bool


def get(url: str, *, types: Collection[str], member: int) -> OutboundResponse:
    """Send a GET for a member, and follow at most REDIRECTS redirects.

    Reads the body only of an answer 200 with one of these content types, "" for none. Raises OutboundError.
    """
    until = time.monotonic() + SECONDS
    headers = {"Accept": ", ".join(filter(None, types)), "Accept-Encoding": "gzip"}
    for _hop in range(REDIRECTS + 1):
        parsed = _parse_checked(url)
        with (
            charge_budget(member=member, host=parsed.host or ""),
            _response("GET", parsed, headers, None, until) as response,
        ):
            if response.status in MOVED and (location := response.headers.get("Location")):
                url = _redirect_target(parsed.url, location)
                continue
            kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            if response.status == 200 and kind not in types:
                raise OutboundError(f"content type {kind[:100]!r}")
            return _answer(parsed.url, response, until, is_read=response.status == 200)
    raise OutboundError("too many redirects")


def post(url: str, *, headers: Mapping[str, str], body: bytes, member: int) -> OutboundResponse:
    """Send a POST for a member. Follows no redirects. Raises OutboundError."""
    until = time.monotonic() + SECONDS
    parsed = _parse_checked(url)
    with (
        charge_budget(member=member, host=parsed.host or ""),
        _response("POST", parsed, headers, body, until) as response,
    ):
        return _answer(parsed.url, response, until, is_read=True)


@contextlib.contextmanager
def charge_budget(*, member: int, host: str = "") -> Iterator[None]:
    """Pay for work that a member, and perhaps a host, caused. Raises OverBudgetError."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_charge_caller("outside_member", str(member)))
        if host:
            stack.enter_context(_charge_caller("outside_host", host.lower(), free=FREE_SECONDS))
        yield


@contextlib.contextmanager
def _charge_caller(scope: str, who: str, *, free: float = 0.0) -> Iterator[None]:
    reserved = math.ceil(RESERVED_SECONDS * 1000)
    if wait := rates.hit(scope, who, reserved):
        raise OverBudgetError(wait)
    began = time.monotonic()
    try:
        yield
    finally:
        spent = max(0.0, time.monotonic() - began - free)
        rates.refund_each(scope, {who: reserved - math.ceil(spent * 1000)})


def is_public(address: Address) -> bool:
    """Whether an IP address is public. Also checks an IPv4 address inside an IPv6 one."""
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast and not any(address in network for network in INSIDE)
    inner = IPv4Address(int(address) & 0xFFFFFFFF) if address in NAT64 else address.ipv4_mapped
    if inner is not None:
        return is_public(inner)
    return address in UNICAST and address.is_global and address.sixtofour is None and address.teredo is None


def _parse_checked(url: str) -> Url:
    """Parse an address for sending. Raises AddressRefusedError if it is not one of the web."""
    try:
        parsed = parse_url(url)
    except LocationParseError as error:
        raise AddressRefusedError("no address of the web") from error
    if parsed.scheme not in PORTS or not parsed.host or parsed.auth is not None:
        raise AddressRefusedError("no address of the web")
    if parsed.port not in (None, *PORTS.values()) and not settings.OUTBOUND_TO_LOOPBACK:
        raise AddressRefusedError(f"port {parsed.port}")
    return parsed._replace(fragment=None)


def _redirect_target(url: str, location: str) -> str:
    try:
        return urljoin(url, location.encode("latin-1").decode(errors="replace"))  # headers come as Latin-1
    except ValueError as error:
        raise AddressRefusedError("no address of the web") from error


@contextlib.contextmanager
def _response(
    method: str, url: Url, headers: Mapping[str, str], body: bytes | None, until: float
) -> Iterator[BaseHTTPResponse]:
    """Send a request and yield the answer. Closes the connection after it."""
    check_lane()
    with contextlib.ExitStack() as stack:
        try:
            sock = stack.enter_context(_connect(url, until))
            stack.enter_context(_deadline(sock, until))
            if url.scheme == "https":
                name = (url.host or "").strip("[]").rstrip(".")
                sock = stack.enter_context(_certificates().wrap_socket(sock, server_hostname=name))
            connection = HTTPConnection(url.host or "", timeout=_seconds_left(until))
            stack.callback(connection.close)
            connection.sock = sock
            host = url.netloc or ""
            named = {"Host": host, "User-Agent": f"feedsite/{VERSION} (+{settings.SITE_URL})", "Connection": "close"}
            connection.request(method, url.request_uri, body, {**headers, **named}, preload_content=False)
            response = connection.getresponse()
            stack.callback(response.close)
            yield response
        # http.client raises ValueError for what it cannot send or read.
        except (OSError, HTTPException, HTTPError, ValueError) as error:
            raise OutboundError(f"{type(error).__name__}: {error}"[:200]) from error


def _answer(url: str, response: BaseHTTPResponse, until: float, *, is_read: bool) -> OutboundResponse:
    body = response.read(MOST_BYTES + 1, decode_content=True) if is_read else b""
    _seconds_left(until)  # a connection that was ended looks like the end of a body
    return OutboundResponse(url, response.status, response.headers, body[:MOST_BYTES], len(body) <= MOST_BYTES)


def _seconds_left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise OutboundError("took too long")
    return left


@cache
def _certificates() -> ssl.SSLContext:
    return ssl.create_default_context()


# --- Addresses -------------------------------------------------------------------------------------------
def _connect(url: Url, until: float) -> socket.socket:
    """Connect to one of a name's public addresses. Raises AddressRefusedError if it has none."""
    port = url.port or PORTS[url.scheme or ""]
    name = (url.host or "").strip("[]")
    found = [address for address in _resolve_name(name, port, until) if _is_allowed(address)][:ADDRESSES]
    if not found:
        raise AddressRefusedError("no public address")
    for tried, address in enumerate(found, start=1):
        try:
            return socket.create_connection((str(address), port), _seconds_left(until) / (len(found) - tried + 1))
        except OSError:
            if tried == len(found):
                raise
    raise AssertionError("the last address returns or raises")


def _is_allowed(address: Address) -> bool:
    return is_public(address) or (settings.OUTBOUND_TO_LOOPBACK and address.is_loopback)


def _resolve_name(name: str, port: int, until: float) -> list[Address]:
    """The addresses of a name. The resolver has no deadline, so a thread waits for it."""
    answers: queue.SimpleQueue[list[Address] | Exception] = queue.SimpleQueue()
    threading.Thread(target=_resolve, args=(name, port, answers.put), daemon=True).start()
    try:
        answer = answers.get(timeout=_seconds_left(until))
    except queue.Empty:
        raise OutboundError("the name took too long") from None
    if isinstance(answer, Exception):
        raise OutboundError(f"the name: {answer}") from answer
    return answer


def _resolve(name: str, port: int, put: Callable[[list[Address] | Exception], None]) -> None:
    try:
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        put([ip_address(address[0]) for _family, _type, _protocol, _name, address in found])
    except (OSError, ValueError) as error:  # a name may be no name at all
        put(error)


@contextlib.contextmanager
def _deadline(sock: socket.socket, until: float) -> Iterator[None]:
    """End a socket at the deadline. Its own timeout restarts with each byte."""
    sock.settimeout(_seconds_left(until))
    with sock.dup() as same:  # TLS takes the socket itself away
        timer = threading.Timer(_seconds_left(until), _shut_down, [same])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()


def _shut_down(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the other side has ended it
        sock.shutdown(socket.SHUT_RDWR)
