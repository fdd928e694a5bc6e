import gzip
import io
import re
import secrets
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import patch_vary_headers

from web.requests import READING

LEVEL = 4
"""A home page of 58 kB becomes 8 kB in 0.35 ms. Level 3 takes 0.2 ms for 8.4 kB, level 6 0.6 ms for 7.7 kB."""
LEAST_BYTES = 860
"""Shorter answers fit into one packet uncompressed."""
PADDING_BYTES = 100
PAGES = ("text/html", "application/atom+xml")
DATA = "application/json"
TAKES_GZIP = re.compile(r"(?:^|,)\s*gzip\s*(?:,|$|;(?!\s*q=0(?:\.0*)?\s*(?:,|$)))", re.IGNORECASE)


def takes_gzip(request: HttpRequest) -> bool:
    """Whether the client accepts gzip."""
    return TAKES_GZIP.search(request.headers.get("Accept-Encoding", "")) is not None


def gzip_padded(content: bytes) -> bytes:
    """The content as gzip.

    A file name of random length hides the exact length, from which listeners could guess secrets (BREACH).
    """
    buffer = io.BytesIO()
    name = "a" * secrets.randbelow(PADDING_BYTES)
    with gzip.GzipFile(name, "wb", LEVEL, buffer, mtime=0) as file:
        file.write(content)
    return buffer.getvalue()


class CompressionMiddleware:
    """Compresses answers without secrets: not pages with `no-store`, and not API replies to changes."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Compress the answer if possible."""
        response = self.get_response(request)
        if not isinstance(response, HttpResponse) or not may_compress(request, response):
            return response
        patch_vary_headers(response, ["Accept-Encoding"])
        if takes_gzip(request):
            response.content = gzip_padded(response.content)
            response.headers["Content-Encoding"] = "gzip"
            response.headers["Content-Length"] = str(len(response.content))
        return response


def may_compress(request: HttpRequest, response: HttpResponse) -> bool:
    """Whether compressing pays off, and the answer has no secrets."""
    kind = response.headers.get("Content-Type", "").partition(";")[0]
    if kind == DATA:
        is_open = request.method in READING
    else:
        is_open = kind in PAGES and "no-store" not in response.headers.get("Cache-Control", "")
    return is_open and not response.has_header("Content-Encoding") and len(response.content) >= LEAST_BYTES
