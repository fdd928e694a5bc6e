"""The WSGI applications: the site, and the answer to shed requests (runtime/shedding.py)."""

import io
import os
import tempfile
import threading
from collections.abc import Callable, Iterable
from typing import Any

import django
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler, get_path_info
from django.http import HttpRequest
from django.urls import ResolverMatch

from media.serving import with_media
from runtime.slow_senders import slow_senders
from storage import postgresql
from web import uploads
from web.content_type import without_bad_charset

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "feedsite.settings")

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

WAIT_SECONDS = 0.02
"""Seconds that a request with a body waits for a place. Bodies that have arrived are read faster."""
FILES_TYPE = "multipart/form-data"
CREDENTIALS = ("HTTP_AUTHORIZATION", "HTTP_COOKIE")
READERS = max(1, settings.WEB_THREADS - 1)


class BodyReader:
    """Reads a request's body before the site, and sets the length of a chunked one.

    Django takes a body without Content-Length as empty.

    Forms with files go straight to disk, if the view takes files (web.uploads). Bodies larger than the view takes,
    bodies for addresses without a view, and files without a valid token or session, are not read.

    At most `readers` threads wait for bodies, so one stays for other requests. Files may take all but one of these.
    """

    def __init__(self, application: Application, readers: int, is_known: Callable[[str, str], bool]) -> None:
        self.application, self.is_known = application, is_known
        self.places = threading.BoundedSemaphore(readers)
        self.file_places = threading.BoundedSemaphore(max(1, readers - 1))
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        assert most is not None  # noqa: S101 (Django's default, for the type checker)
        self.most = most

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request."""
        if content_type := environ.get("CONTENT_TYPE"):
            environ["CONTENT_TYPE"] = without_bad_charset(content_type)
        length = environ.get("CONTENT_LENGTH") or ""
        is_chunked = not length and bool(environ.get("HTTP_TRANSFER_ENCODING"))
        size = int(length) if length.isascii() and length.isdigit() and len(length) < 20 else 0
        if not is_chunked and not size:
            return self.application(environ, start_response)
        allowed, most = uploads.most_bytes(get_path_info(environ), environ.get("REQUEST_METHOD", ""), self.most)
        if allowed and environ.get("CONTENT_TYPE", "").lower().startswith(FILES_TYPE):
            return self.with_files(environ, start_response, size, allowed)
        if not most:
            return self.without_body(environ, start_response)
        if size > most:
            return self.too_long(environ, start_response)
        if not self.places.acquire(timeout=WAIT_SECONDS):
            return busy_response(start_response)
        try:
            with slow_senders.watched():
                body = environ["wsgi.input"].read(size or most + 1)
        finally:
            self.places.release()
        if len(body) < size:
            return aborted_response(start_response)
        environ["wsgi.input"] = io.BytesIO(body)
        if is_chunked:
            environ["CONTENT_LENGTH"] = str(len(body))
        if len(body) > most:
            return self.too_long(environ, start_response)
        return self.application(environ, start_response)

    def without_body(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer a request whose body nobody needs."""
        environ |= {"wsgi.input": io.BytesIO(), "CONTENT_LENGTH": "0"}
        return self.application(environ, start_response)

    def too_long(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer a request whose body is too long. Views of the API see its length, pages are told."""
        if not environ.get("PATH_INFO", "").startswith("/api/"):
            environ |= {"wsgi.input": io.BytesIO(), "CONTENT_LENGTH": "0", uploads.TOO_LONG: True}
        return self.application(environ, start_response)

    def with_files(
        self, environ: dict[str, Any], start_response: Callable[..., Any], size: int, allowed: int
    ) -> Iterable[bytes]:
        """Write a body with files to disk, then answer the request."""
        try:
            is_stranger = not self.is_known(*(environ.get(name, "") for name in CREDENTIALS))
        except OUTAGES:
            return busy_response(start_response)
        if is_stranger:
            return self.without_body(environ, start_response)
        if size > allowed:
            return self.too_long(environ, start_response)
        if not self.file_places.acquire(timeout=WAIT_SECONDS):
            return busy_response(start_response)
        try:
            with tempfile.TemporaryFile(dir=uploads.upload_folder()) as file:
                if not self.places.acquire(timeout=WAIT_SECONDS):
                    return busy_response(start_response)
                try:
                    came = uploads.spool(environ["wsgi.input"], size or allowed + 1, file)
                finally:
                    self.places.release()
                if came < size:
                    return aborted_response(start_response)
                if came > allowed:
                    environ["CONTENT_LENGTH"] = str(came)
                    return self.too_long(environ, start_response)
                file.seek(0)
                environ["wsgi.input"], environ["CONTENT_LENGTH"] = file, str(size or came)
                return self.application(environ, start_response)
        except OSError:  # the disk is full
            return busy_response(start_response)
        finally:
            self.file_places.release()


def with_body_reader(application: Application, readers: int = READERS) -> Application:
    """The application behind `BodyReader`."""
    return BodyReader(application, readers, has_valid_credentials)


def busy_response(start_response: Callable[..., Any]) -> Iterable[bytes]:
    """The answer if there is no room for a body: 503."""
    return refuse(start_response, "503 Service Unavailable", ("Retry-After", "2"))


def aborted_response(start_response: Callable[..., Any]) -> Iterable[bytes]:
    """The answer to a body that ended early: 400. The client is gone, and part of a form must not be used."""
    return refuse(start_response, "400 Bad Request")


def refuse(start_response: Callable[..., Any], status: str, *headers: tuple[str, str]) -> Iterable[bytes]:
    """Answer with an error in the API's format."""
    detail = b'{"detail":"%s."}' % status.partition(" ")[2].encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(detail))), *headers])
    return [detail]


django.setup(set_prefix=False)

from accounts.signing_in.callers import has_valid_credentials  # noqa: E402 (once Django is set up)
from web.requests import find_view  # noqa: E402 (the same)
from web.rest import OUTAGES  # noqa: E402 (the same)


class Handler(WSGIHandler):
    """Django's handler, which looks each view up once."""

    def resolve_request(self, request: HttpRequest) -> ResolverMatch:
        """The request's view. Raises Resolver404."""
        return find_view(request)


site = BodyReader(Handler(), READERS, has_valid_credentials)
application = with_media(site, site.places)  # slow readers and slow senders together leave a thread
postgresql.set_process_timeout(settings.DATABASE_TIMEOUT_SECONDS)

from web.busy import refused as refused  # noqa: E402 (once Django is set up; for runtime.preloaded)
