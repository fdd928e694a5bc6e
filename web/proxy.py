"""Facts of a request from the proxy in front: its client's address, and whether it came over TLS.

One header is believed, `Forwarded` (RFC 7239), where `settings.PROXY` says that a proxy sets it on every request. Its
name has no hyphen. Names with hyphens (X-Forwarded-For, X-Forwarded-Proto, X-Real-IP) cannot be believed: a WSGI
environment has one key for `X-Forwarded-For` and `X_Forwarded_For`, granian keeps the last of them, and Caddy passes
both on.

See docs/decisions.md: Own code in place of a library.
"""

import ipaddress
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

HEADER = "HTTP_FORWARDED"
SCHEME = "feedsite.scheme"
"""Where SECURE_PROXY_SSL_HEADER looks in `META`. No header comes there: their keys begin with `HTTP_`."""


class ProxyMiddleware:
    """Puts the client's address and scheme where the site reads them: `REMOTE_ADDR` and `SCHEME` of `request.META`.

    A request without the header has not come through the proxy (a probe): its own peer is its client.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request with the client and scheme that a trusted proxy names."""
        if settings.PROXY and (said := request.META.get(HEADER)):
            client, scheme = parse(said)
            request.META["REMOTE_ADDR"] = client or request.META.get("REMOTE_ADDR", "")
            request.META[SCHEME] = scheme
        return self.get_response(request)


def parse(header: str) -> tuple[str, str]:
    """The client's IP address and scheme of the last element, which the proxy wrote; each empty where it is not there
    or is no address (`unknown`, a name).

    IPv6 addresses are taken without brackets too, as the variables of proxies spell them.
    """
    element = header.rpartition(",")[2]
    pairs = (part.partition("=") for part in element.split(";"))
    said = {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}
    host = said.get("for", "")
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:  # an IPv4 address and a port
        host = host.partition(":")[0]
    try:
        ipaddress.ip_address(host)
    except ValueError:
        host = ""
    return host, said.get("proto", "").lower()
