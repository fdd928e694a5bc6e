"""The client's address and scheme, from the header of the proxy in front.

With `settings.PROXY` the site trusts only `Forwarded` (RFC 7239). Headers with hyphens cannot be trusted: in WSGI
`X-Forwarded-For` and `X_Forwarded_For` have one key, granian keeps the last of them, and Caddy passes both on.

See docs/decisions.md: Own code in place of a library.
"""

import ipaddress
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

HEADER = "HTTP_FORWARDED"
SCHEME = "feedsite.scheme"
"""Where SECURE_PROXY_SSL_HEADER looks in `META`. No header can set it: their keys begin with `HTTP_`."""


class ProxyMiddleware:
    """Writes the client's address and scheme into `request.META`. A request without the header is a probe."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Set address and scheme if a trusted proxy names them."""
        if settings.PROXY and (said := request.META.get(HEADER)):
            client, scheme = parse(said)
            request.META["REMOTE_ADDR"] = client or request.META.get("REMOTE_ADDR", "")
            request.META[SCHEME] = scheme
        return self.get_response(request)


def parse(header: str) -> tuple[str, str]:
    """The IP address and scheme in the last element, which the proxy wrote.

    Accepts IPv6 addresses without brackets, as some proxies write them.
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
