"""The answer to a shed request (runtime/shedding.py): no middleware, query or session."""

from collections.abc import Callable, Iterable
from typing import Any

from django.core.handlers.wsgi import WSGIRequest

from web.content_type import without_bad_charset
from web.headers import HeadersMiddleware
from web.outage import unavailable

answered = HeadersMiddleware(unavailable)


def refused(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """The WSGI application for shed requests."""
    if content_type := environ.get("CONTENT_TYPE"):
        environ["CONTENT_TYPE"] = without_bad_charset(content_type)
    response = answered(WSGIRequest(environ))
    body: bytes = response.content  # type: ignore[attr-defined]
    start_response("503 Service Unavailable", [*response.items(), ("Content-Length", str(len(body)))])
    return [body]
