"""Serves media files over HTTP, before Django. Paths outside `/media/` are passed on.

With `FEEDSITE_MEDIA_ACCEL_PATH` the proxy sends the file. A slow reader of more than `AT_ONCE_BYTES` occupies a thread,
so such an answer needs a place, and so does every question to a bucket. Without a free place the answer is 503. Videos
are read in parts that need no place.
"""

import contextlib
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

from django.conf import settings

from media.files import CACHING, NAME, TYPES, Store, StoreError
from media.store import store

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Headers = list[tuple[str, str]]

PREFIX = "/media/"
CHUNK_BYTES = 1 << 16
AT_ONCE_BYTES = 1 << 19
"""Most bytes handed to the server at once. Also the length of a video part without a requested end."""
WAIT_SECONDS = 0.02
"""How long a large answer waits for a place."""
REMOTE_WAIT_SECONDS = 1.0
"""How long an answer from a bucket waits for a place."""
BUSY = ("503 Service Unavailable", ("Retry-After", "2"))
RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)
POLICY = "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox"
"""For a file opened by itself: show it, run nothing."""
ALWAYS: Headers = [
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Security-Policy", POLICY),
    ("Cross-Origin-Resource-Policy", "cross-origin"),
    # Apps in browsers read colours of pictures. No cookie is used here.
    ("Access-Control-Allow-Origin", "*"),
    ("Referrer-Policy", "no-referrer"),
]


def with_media(application: Application, places: threading.Semaphore) -> Application:
    """Serve media before the application."""

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if not path.startswith(PREFIX):
            return application(environ, start_response)
        return respond(path.removeprefix(PREFIX), environ, start_response, places)

    return serve


def respond(
    name: str, environ: dict[str, Any], start_response: Callable[..., Any], places: threading.Semaphore
) -> Iterable[bytes]:
    """Answer for one file name."""
    method = environ.get("REQUEST_METHOD", "")
    match = NAME.fullmatch(name)
    if match is None:
        return _short_response(start_response, "404 Not Found")
    if method not in ("GET", "HEAD"):
        return _short_response(start_response, "405 Method Not Allowed", ("Allow", "GET, HEAD"))
    headers: Headers = [
        *ALWAYS,
        ("Content-Type", TYPES[match[1]]),
        ("Cache-Control", CACHING),
        ("ETag", f'"{name}"'),
        ("Accept-Ranges", "bytes"),
    ]
    if settings.MEDIA_ACCEL_PATH:
        start_response("200 OK", [*headers, ("X-Accel-Redirect", f"{settings.MEDIA_ACCEL_PATH}{name}")])
        return []
    kept = store()
    if kept.is_remote and not places.acquire(timeout=REMOTE_WAIT_SECONDS):
        return _short_response(start_response, *BUSY)
    answer: Iterable[bytes] = ()
    try:
        answer = _file_response(kept, name, environ, start_response, headers, places)
    except FileNotFoundError:
        answer = _short_response(start_response, "404 Not Found")
    except (StoreError, OSError):
        answer = _short_response(start_response, *BUSY)
    finally:
        if kept.is_remote and not isinstance(answer, Parts):
            places.release()
    return answer


def _file_response(
    kept: Store,
    name: str,
    environ: dict[str, Any],
    start_response: Callable[..., Any],
    headers: Headers,
    places: threading.Semaphore,
) -> Iterable[bytes]:
    """Answer with the file or a part of it. For a bucket the caller holds a place, which `Parts` frees. Raises
    FileNotFoundError, OSError and StoreError before it starts.
    """
    tag = f'"{name}"'
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(kept.open(name))
        if _matches_etag(environ.get("HTTP_IF_NONE_MATCH", ""), tag):
            start_response("304 Not Modified", headers)
            return []
        size = file.seek(0, 2)
        begin, end = requested_range(environ, tag, size)
        if begin >= end and size:
            return _short_response(start_response, "416 Range Not Satisfiable", ("Content-Range", f"bytes */{size}"))
        is_part = (begin, end) != (0, size)
        if is_part:
            headers.append(("Content-Range", f"bytes {begin}-{end - 1}/{size}"))
        headers.append(("Content-Length", str(end - begin)))
        status = "206 Partial Content" if is_part else "200 OK"
        is_get = environ["REQUEST_METHOD"] == "GET"
        if is_get and end - begin > AT_ONCE_BYTES:
            if not kept.is_remote and not places.acquire(timeout=WAIT_SECONDS):
                return _short_response(start_response, *BUSY)
            stack.pop_all()
            start_response(status, headers)
            return Parts(file, begin, end, places)
        file.seek(begin)
        body = [file.read(end - begin)] if is_get else []
        start_response(status, headers)
        return body


def requested_range(environ: dict[str, Any], tag: str, size: int) -> tuple[int, int]:
    """Begin and end of the requested bytes. The whole file without a valid range."""
    condition = environ.get("HTTP_IF_RANGE", "").strip()
    match = RANGE.fullmatch(environ.get("HTTP_RANGE", "").replace(" ", ""))
    if match is None or (condition and condition != tag) or match[0] == "bytes=-":
        return 0, size
    first, last = match.groups()
    if not first:
        return (max(0, size - int(last)), size) if int(last) else (size, size)
    if last and int(last) < int(first):
        return 0, size
    if last:
        return int(first), min(size, int(last) + 1)
    is_video = TYPES[environ["PATH_INFO"].rpartition(".")[2]].startswith("video/")
    return int(first), min(size, int(first) + AT_ONCE_BYTES) if is_video else size


def _matches_etag(condition: str, tag: str) -> bool:
    return any(each.strip().removeprefix("W/") in (tag, "*") for each in condition.split(",") if each.strip())


class Parts(Iterator[bytes]):
    """Bytes of a file. Closing it frees its place, which a generator that never started would keep."""

    def __init__(self, file: IO[bytes], begin: int, end: int, places: threading.Semaphore) -> None:
        file.seek(begin)
        self._file, self._left, self._places = file, end - begin, places

    def __next__(self) -> bytes:
        part = self._file.read(min(CHUNK_BYTES, self._left))
        self._left -= len(part)
        if not part:
            raise StopIteration
        return part

    def close(self) -> None:
        """Close the file and free its place, once."""
        if not self._file.closed:
            self._file.close()
            self._places.release()

    __del__ = close


def _short_response(start_response: Callable[..., Any], status: str, *headers: tuple[str, str]) -> Iterable[bytes]:
    text = status.partition(" ")[2].encode()
    start_response(
        status,
        [
            *ALWAYS,
            ("Content-Type", "text/plain"),
            ("Cache-Control", "no-store"),
            ("Content-Length", str(len(text))),
            *headers,
        ],
    )
    return [text]
