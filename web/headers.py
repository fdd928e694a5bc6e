"""Headers of every answer about trust: Content-Security-Policy and its like.

Our own instead of django-csp, because the policy follows the answer and not the view: pages get one with a nonce of
their own, whatever is no page (JSON, files, archives) may do nothing at all, and where the stream process has a port of
its own (`up`) pages may listen to that port of the host that they came from.

See docs/decisions.md: Own code in place of a library.
"""

import secrets
from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponseBase
from django.http.request import split_domain_port

FORBIDDEN = (
    "accelerometer",
    "autoplay",
    "camera",
    "display-capture",
    "encrypted-media",
    "geolocation",
    "gyroscope",
    "magnetometer",
    "microphone",
    "midi",
    "payment",
    "screen-wake-lock",
    "usb",
    "xr-spatial-tracking",
)
"""Features of browsers that no page of the site uses."""
ALLOWED = ("fullscreen", "picture-in-picture", "publickey-credentials-create", "publickey-credentials-get")
"""Features that its own pages use, and no frame in them."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": settings.SECURE_REFERRER_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Videos of the site itself may fill the screen.
    "Permissions-Policy": ", ".join(
        [*(f"{feature}=(self)" for feature in ALLOWED), *(f"{feature}=()" for feature in FORBIDDEN)]
    ),
}
"""On every answer of every process."""

NO_PAGE = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""For whatever is not HTML: opened by itself (an SVG, a JSON text) it runs and loads nothing."""

NONCE_BYTES = 16
NOT_MODIFIED = 304


class Nonce:
    """A page's own word for its scripts and styles, made when a template first asks for it."""

    def __init__(self) -> None:
        self._text = ""

    def adopt(self, text: str) -> None:
        """Be the word of a page that was rendered before."""
        self._text = text

    def __str__(self) -> str:
        if not self._text:
            self._text = secrets.token_urlsafe(NONCE_BYTES)
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)


class HeadersMiddleware:
    """The first of all, so that static files and errors have them too. Headers that a view has set stay, but for one:
    an answer with a cookie, which may have been added to whatever a view says, is kept by no shared cache.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request, with the headers of trust."""
        request.csp_nonce = nonce = Nonce()  # type: ignore[attr-defined]
        response = self.get_response(request)
        is_page = response.get("Content-Type", "").startswith("text/html")
        if response.status_code != NOT_MODIFIED:  # the policy of the page that the browser keeps has its nonce
            response.headers.setdefault("Content-Security-Policy", policy(request, nonce) if is_page else NO_PAGE)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if response.cookies and "public" in response.get("Cache-Control", ""):
            response.headers["Cache-Control"] = "private, no-cache"
        return response


def policy(request: HttpRequest, nonce: Nonce) -> str:
    """The Content-Security-Policy of a page: it loads from the site itself, and runs scripts that carry its nonce.

    Django's admin knows no nonces: there, scripts are files of the site.

    `https:` pictures are the covers of live sessions that lie on other sites. Their servers learn readers' addresses,
    but not the page.
    """
    own = f"'nonce-{nonce}'" if nonce else ""
    match = request.resolver_match
    scripts = "'self'" if match is not None and "admin" in match.app_names else own or "'none'"
    return "; ".join(
        filter(
            None,
            (
                "default-src 'none'",
                f"script-src {scripts}",
                f"style-src 'self' {own}".strip(),
                f"img-src 'self' data: https: {settings.MEDIA_ORIGIN}".strip(),
                f"media-src 'self' https: {settings.MEDIA_ORIGIN}".strip(),
                f"connect-src 'self' {stream_origin(request)}".strip(),
                "manifest-src 'self'",
                "form-action 'self'",
                "base-uri 'none'",
                "frame-ancestors 'none'",
                "upgrade-insecure-requests" if settings.HTTPS else "",
            ),
        )
    )


def stream_origin(request: HttpRequest) -> str:
    """Where the stream process is reached, if that is another port than the site's."""
    if not (settings.STREAM and settings.STREAM_PORT):
        return ""
    try:
        host, _port = split_domain_port(request.get_host())
    except SuspiciousOperation:
        return ""
    # A policy cannot spell an IPv6 address.
    return f"{request.scheme}://{'*' if ':' in host else host}:{settings.STREAM_PORT}"


def nonce(request: HttpRequest) -> dict[str, object]:
    """For every template: the nonce that its scripts and inline styles carry, by the name that Django 6 gives it."""
    return {"csp_nonce": getattr(request, "csp_nonce", "")}
