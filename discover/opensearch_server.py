import math
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import unquote, urlsplit

import urllib3
from django.conf import settings

# opensearchpy is imported where it is used: most sites do without, and it takes 12 MB.

CONNECTIONS = 16
CONNECT_SECONDS = 1.0
WRITE_SECONDS = 10.0
"""Time limit of a request that writes."""


class OpenSearchError(Exception):
    """OpenSearch failed. `status` is 0 without an answer. Its own message may have members' text; this one has none."""

    def __init__(self, message: str, status: int = 0, kind: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


class OpenSearchServer:
    """The OpenSearch server at `https://user:password@host:9200/name`. `name` is an alias of the index `name-1`.

    Without an alias (require_alias), a bulk request would recreate a deleted index without our mapping.
    All methods raise OpenSearchError.
    """

    def __init__(self, url: str) -> None:
        from opensearchpy import OpenSearch

        parts = urlsplit(url)
        self.name = parts.path.strip("/")
        self.index = f"{self.name}-1"
        is_secure = parts.scheme == "https"
        self._client = OpenSearch(
            [{"host": parts.hostname, "port": parts.port or (443 if is_secure else 80), "use_ssl": is_secure}],
            ssl_context=ssl.create_default_context() if is_secure else None,  # the certificates of the system
            http_auth=(unquote(parts.username), unquote(parts.password or "")) if parts.username else None,
            http_compress=True,
            pool_maxsize=CONNECTIONS,
            max_retries=0,
        )

    def search(self, body: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """The answer to a search. After `seconds` the server cancels it, because nobody waits for it."""
        limits = {
            "allow_partial_search_results": "false",
            "cancel_after_time_interval": f"{math.ceil(seconds * 1000)}ms",
        }
        with _failures("search"):
            return dict(self._client.search(body=body, index=self.name, params=limits | _patience(seconds)))

    def write(self, lines: bytes) -> dict[str, Any]:
        """The answer to a bulk request."""
        with _failures("bulk"):
            params = {"require_alias": "true", **_patience(WRITE_SECONDS)}
            return dict(self._client.bulk(body=lines, index=self.name, params=params))

    def create_index(self, mappings: Mapping[str, Any]) -> None:
        """Create the index and its alias."""
        with _failures("create"):
            body = {"mappings": mappings, "aliases": {self.name: {}}}
            self._client.indices.create(index=self.index, body=body, params=_patience(WRITE_SECONDS))

    def delete_index(self) -> None:
        """Delete the index, if it exists."""
        with _failures("delete"):
            params = {"ignore_unavailable": "true", **_patience(WRITE_SECONDS)}
            self._client.indices.delete(index=self.index, params=params)


def _patience(seconds: float) -> dict[str, Any]:
    return {"request_timeout": urllib3.Timeout(connect=min(seconds, CONNECT_SECONDS), total=seconds)}


@contextmanager
def _failures(verb: str) -> Iterator[None]:
    from opensearchpy import exceptions

    try:
        yield
    except exceptions.ConnectionError as error:
        raise OpenSearchError(f"{verb}: no answer ({type(error.info).__name__})") from error
    except exceptions.TransportError as error:
        kind = error.error if isinstance(error.info, dict) else ""  # else a page of a proxy
        raise OpenSearchError(f"{verb}: {error.status_code} {kind}", int(error.status_code), kind) from error
    except (exceptions.OpenSearchException, ValueError) as error:
        raise OpenSearchError(f"{verb}: its answer is no JSON") from error


@cache
def server() -> OpenSearchServer:
    """The server of the settings."""
    return OpenSearchServer(settings.OPENSEARCH_URL)
