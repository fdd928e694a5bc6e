"""The WSGI application that granian serves."""

import io
import os
import tempfile
import threading
from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from media.serving import served
from storage import postgresql
from web import uploads

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "feedsite.settings")

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

PATIENCE = 0.02
"""Seconds that a request with a body waits for a place; bodies that have arrived are read in less."""
FILES_TYPE = "multipart/form-data"
CREDENTIALS = frozenset({"HTTP_AUTHORIZATION", "HTTP_COOKIE"})
READERS = max(1, settings.WEB_THREADS - 1)


def measured(application: Application, readers: int = READERS) -> Application:
    """Read bodies before anything else is done, and give those that came in chunks a length: Django takes a body
    without Content-Length for an empty one.

    No more is read than Django takes, or of a form with files than `web.uploads` says; that is written to the disk as
    it comes. What says that it is longer, and files of callers who name no token or session, are not read at all: the
    API answers that by itself. A client may send its body as slowly as it likes, so at most `readers` threads wait for
    bodies at a time; the one that is left goes on answering requests without a body. Of these, all but one may be
    taken by files, for as long as the site works on them.
    """
    places = threading.BoundedSemaphore(readers)
    file_places = threading.BoundedSemaphore(max(1, readers - 1))
    most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    assert most is not None  # noqa: S101 (Django's default, for the type checker)

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        length = environ.get("CONTENT_LENGTH") or ""
        is_chunked = not length and bool(environ.get("HTTP_TRANSFER_ENCODING"))
        size = int(length) if length.isascii() and length.isdigit() and len(length) < 20 else 0
        is_file = environ.get("CONTENT_TYPE", "").lower().startswith(FILES_TYPE)
        if is_file and (is_chunked or size) and (allowed := uploads.most_bytes(environ.get("PATH_INFO", ""))):
            return with_files(environ, start_response, size, allowed)
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

    def with_files(
        environ: dict[str, Any], start_response: Callable[..., Any], size: int, allowed: int
    ) -> Iterable[bytes]:
        is_known = bool(CREDENTIALS.intersection(environ))
        if size > allowed and not environ["PATH_INFO"].startswith("/api/"):
            return refuse(start_response, "413 Content Too Large")
        if size > allowed or not is_known:
            environ["wsgi.input"] = io.BytesIO()
            environ["CONTENT_LENGTH"] = str(size if is_known else 0)
            return application(environ, start_response)
        if not file_places.acquire(timeout=PATIENCE):
            return refuse(start_response, "503 Service Unavailable", ("Retry-After", "2"))
        try:
            with tempfile.TemporaryFile(dir=uploads.folder()) as file:
                if not places.acquire(timeout=PATIENCE):
                    return refuse(start_response, "503 Service Unavailable", ("Retry-After", "2"))
                try:
                    came = uploads.spooled(environ["wsgi.input"], size or allowed + 1, file)
                finally:
                    places.release()
                file.seek(0)
                environ["wsgi.input"] = file
                if not size:
                    environ["CONTENT_LENGTH"] = str(came)
                return application(environ, start_response)
        except OSError:  # the disk is full
            return refuse(start_response, "503 Service Unavailable", ("Retry-After", "2"))
        finally:
            file_places.release()

    return serve


def refuse(start_response: Callable[..., Any], status: str, *headers: tuple[str, str]) -> Iterable[bytes]:
    """An answer that needs nothing, in the words of the API."""
    detail = b'{"detail":"%s."}' % status.partition(" ")[2].encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(detail))), *headers])
    return [detail]


application = served(measured(get_wsgi_application()))
postgresql.bound(settings.DATABASE_TIMEOUT_SECONDS)
