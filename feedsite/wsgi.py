"""The WSGI application that granian serves."""

import io
import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from storage import postgresql

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "feedsite.settings")

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

PATIENCE = 0.02
"""Seconds that a request with a body waits for a place; bodies that have arrived are read in less."""
READERS = max(1, settings.WEB_THREADS - 1)


def measured(application: Application, readers: int = READERS) -> Application:
    """Read bodies before anything else is done, and give those that came in chunks a length: Django takes a body
    without Content-Length for an empty one.

    No more is read than Django takes. What says that it is longer is not read at all: the API answers that by itself,
    and there are no uploads. A client may send its body as slowly as it likes, so at most `readers` threads wait for
    bodies at a time; the one that is left goes on answering requests without a body.
    """
    places = threading.BoundedSemaphore(readers)
    most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    assert most is not None  # noqa: S101 (Django's default, for the type checker)

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        length = environ.get("CONTENT_LENGTH") or ""
        is_chunked = not length and bool(environ.get("HTTP_TRANSFER_ENCODING"))
        size = int(length) if length.isascii() and length.isdigit() and len(length) < 20 else 0
        if size > most:
            if environ.get("PATH_INFO", "").startswith("/api/"):
                return application(environ, start_response)
            return refuse(start_response, "413 Content Too Large")
        if is_chunked or size:
            if not places.acquire(timeout=PATIENCE):
                return refuse(start_response, "503 Service Unavailable", ("Retry-After", "2"))
            try:
                body = environ["wsgi.input"].read(size or most + 1)
            finally:
                places.release()
            environ["wsgi.input"] = io.BytesIO(body)
            if is_chunked:
                environ["CONTENT_LENGTH"] = str(len(body))
        return application(environ, start_response)

    return serve


def refuse(start_response: Callable[..., Any], status: str, *headers: tuple[str, str]) -> Iterable[bytes]:
    """An answer that needs nothing, in the words of the API."""
    detail = b'{"detail":"%s."}' % status.partition(" ")[2].encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(detail))), *headers])
    return [detail]


application = measured(get_wsgi_application())
postgresql.bound(settings.DATABASE_TIMEOUT_SECONDS)
