"""Security headers of every answer, such as Content-Security-Policy.

Not django-csp: pages get a nonce, everything else may do nothing.

See docs/decisions.md: Own code in place of a library.
"""

import secrets
from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponseBase
from django.http.request import split_domain_port
from django.templatetags.static import static

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
"""Browser features that no page uses."""
ALLOWED = ("fullscreen", "picture-in-picture", "publickey-credentials-create", "publickey-credentials-get")
"""Features that the site's own pages use, but no frame."""

FRAMED_ERRORS = (403, 404)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": settings.SECURE_REFERRER_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Videos of the site may go full screen.
    "Permissions-Policy": ", ".join(
        [*(f"{feature}=(self)" for feature in ALLOWED), *(f"{feature}=()" for feature in FORBIDDEN)]
    ),
}
"""For every answer of every process."""

NO_PAGE = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""For everything but HTML: opened directly (an SVG, a JSON text) it runs and loads nothing."""

NONCE_BYTES = 16
NOT_MODIFIED = 304


class Nonce:
    """A page's nonce, made at its first use."""

    def __init__(self) -> None:
        self._text = ""

    def adopt(self, text: str) -> None:
        """Take the nonce of an earlier rendered page."""
        self._text = text

    def __str__(self) -> str:
        if not self._text:
            self._text = secrets.token_urlsafe(NONCE_BYTES)
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)


class HeadersMiddleware:
    """Adds security headers. It is the first middleware, so that static files and errors get them.

    A view's own headers stay, but an answer with a cookie is never `public`.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Add the security headers."""
        request.csp_nonce = nonce = Nonce()  # type: ignore[attr-defined]
        response = self.get_response(request)
        is_page = response.get("Content-Type", "").startswith("text/html")
        if response.status_code != NOT_MODIFIED:  # the browser keeps the page's old policy with its nonce
            is_framed_error = is_page and response.status_code in FRAMED_ERRORS
            scripts = error_script(request) if is_framed_error else "'none'"
            page = policy(request, nonce, scripts) if is_page else NO_PAGE
            response.headers.setdefault("Content-Security-Policy", page)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if response.cookies and "public" in response.get("Cache-Control", ""):
            response.headers["Cache-Control"] = "private, no-cache"
        return response


def error_script(request: HttpRequest) -> str:
    """The address of the only script of an error page. With a nonce, pages of hidden things would differ."""
    try:
        return request.build_absolute_uri(static("feedsite/beside.js"))
    except SuspiciousOperation:
        return "'none'"


def policy(request: HttpRequest, nonce: Nonce, scripts: str = "'none'") -> str:
    """A page's Content-Security-Policy. It allows scripts with the nonce, else `scripts`, and the admin's script files.

    `https:` pictures are covers of live sessions. Their servers see readers' IP addresses, but not the page.
    """
    own = f"'nonce-{nonce}'" if nonce else ""
    match = request.resolver_match
    scripts = "'self'" if match is not None and "admin" in match.app_names else own or scripts
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
                "worker-src 'self'",
                "form-action 'self'",
                "base-uri 'none'",
                "frame-ancestors 'none'",
                "upgrade-insecure-requests" if settings.HTTPS else "",
            ),
        )
    )


def stream_origin(request: HttpRequest) -> str:
    """The origin of the stream process. Empty if it has no port of its own."""
    if not (settings.STREAM and settings.STREAM_PORT):
        return ""
    try:
        host, _port = split_domain_port(request.get_host())
    except SuspiciousOperation:
        return ""
    # A policy cannot spell an IPv6 address.
    return f"{request.scheme}://{'*' if ':' in host else host}:{settings.STREAM_PORT}"


def nonce(request: HttpRequest) -> dict[str, object]:
    """The page's nonce for every template, under Django 6's name."""
    return {"csp_nonce": getattr(request, "csp_nonce", "")}
