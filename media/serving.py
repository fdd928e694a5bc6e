"""Files of media over HTTP, before Django: a WSGI application that passes on what is not below `/media/`.

A file never changes, so its name is its ETag, and it may be kept for a year. It is sent with the type that its
extension has and may do nothing in a browser. With `FEEDSITE_MEDIA_ACCEL` the proxy sends it, told by X-Accel-Redirect.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

from django.conf import settings

from media.store import store

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Headers = list[tuple[str, str]]

PREFIX = "/media/"
NAME = re.compile(r"[0-9a-f]{2}/[0-9a-f]{30}(?:\.small)?\.(jpg|webp|mp4|mov|webm)", re.ASCII)
TYPES = {
    "jpg": "image/jpeg",
    "webp": "image/webp",
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
}
CHUNK = 1 << 16
RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)
POLICY = "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox"
"""For a file that is opened by itself: it is shown, and runs nothing."""
ALWAYS: Headers = [
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Security-Policy", POLICY),
    ("Cross-Origin-Resource-Policy", "cross-origin"),
    ("Referrer-Policy", "no-referrer"),
]


def served(application: Application) -> Application:
    """The application, with files of media before it."""

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if not path.startswith(PREFIX):
            return application(environ, start_response)
        return respond(path.removeprefix(PREFIX), environ, start_response)

    return serve


def respond(name: str, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """The answer for one name."""
    method = environ.get("REQUEST_METHOD", "")
    match = NAME.fullmatch(name)
    if match is None:
        return _short(start_response, "404 Not Found")
    if method not in ("GET", "HEAD"):
        return _short(start_response, "405 Method Not Allowed", ("Allow", "GET, HEAD"))
    tag = f'"{name}"'
    headers: Headers = [
        *ALWAYS,
        ("Content-Type", TYPES[match[1]]),
        ("Cache-Control", "public, max-age=31536000, immutable"),
        ("ETag", tag),
        ("Accept-Ranges", "bytes"),
    ]
    if settings.MEDIA_ACCEL:
        start_response("200 OK", [*headers, ("X-Accel-Redirect", f"{settings.MEDIA_ACCEL}{name}")])
        return []
    try:
        file = store().open(name)
    except OSError:
        return _short(start_response, "404 Not Found")
    if _is_known(environ.get("HTTP_IF_NONE_MATCH", ""), tag):
        file.close()
        start_response("304 Not Modified", headers)
        return []
    size = file.seek(0, 2)
    begin, end = asked_for(environ, tag, size)
    if begin >= end and size:
        file.close()
        return _short(start_response, "416 Range Not Satisfiable", ("Content-Range", f"bytes */{size}"))
    is_part = (begin, end) != (0, size)
    if is_part:
        headers.append(("Content-Range", f"bytes {begin}-{end - 1}/{size}"))
    headers.append(("Content-Length", str(end - begin)))
    start_response("206 Partial Content" if is_part else "200 OK", headers)
    if method == "HEAD":
        file.close()
        return []
    return _parts(file, begin, end)


def asked_for(environ: dict[str, Any], tag: str, size: int) -> tuple[int, int]:
    """Where the part that is asked for begins and ends: the whole without a range that counts, else nothing outside."""
    condition = environ.get("HTTP_IF_RANGE", "").strip()
    match = RANGE.fullmatch(environ.get("HTTP_RANGE", "").replace(" ", ""))
    if match is None or (condition and condition != tag) or match[0] == "bytes=-":
        return 0, size
    first, last = match.groups()
    if not first:
        return (max(0, size - int(last)), size) if int(last) else (size, size)
    if last and int(last) < int(first):
        return 0, size
    return int(first), min(size, int(last) + 1) if last else size


def _is_known(condition: str, tag: str) -> bool:
    return any(each.strip().removeprefix("W/") in (tag, "*") for each in condition.split(",") if each.strip())


def _parts(file: IO[bytes], begin: int, end: int) -> Iterator[bytes]:
    with file:
        file.seek(begin)
        while begin < end and (part := file.read(min(CHUNK, end - begin))):
            begin += len(part)
            yield part


def _short(start_response: Callable[..., Any], status: str, *headers: tuple[str, str]) -> Iterable[bytes]:
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
