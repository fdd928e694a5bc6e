import time
from functools import cache
from urllib.parse import unquote, urlsplit

import msgspec
import urllib3
from django.conf import settings

ANSWER_BYTES = 64_000_000
CONNECTIONS = 16
CONNECT_SECONDS = 1.0


class OpenSearchError(Exception):
    """OpenSearch failed. `status` is 0 without an answer."""

    def __init__(self, message: str, status: int = 0, kind: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


class OpenSearchServer:
    """The OpenSearch server at `https://user:password@host:9200/name`. `name` is an alias of the index `name-1`.

    Without an alias (require_alias), a bulk request would recreate a deleted index without our mapping.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.name = parts.path.strip("/")
        self.index = f"{self.name}-1"
        self.headers = {"Accept": "application/json", "Accept-Encoding": "gzip"}
        if parts.username:
            user, password = unquote(parts.username), unquote(parts.password or "")
            self.headers |= urllib3.make_headers(basic_auth=f"{user}:{password}")
        origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._pool = urllib3.connection_from_url(origin, maxsize=CONNECTIONS)

    def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        patience: float,
        kind: str = "application/json",
        encoding: str = "identity",
    ) -> bytes:
        """Send a request. Returns the answer's body within `patience` seconds. Raises OpenSearchError."""
        until = time.monotonic() + patience
        headers = self.headers | ({"Content-Type": kind} if body else {})
        if encoding != "identity":
            headers["Content-Encoding"] = encoding
        try:
            response = self._pool.urlopen(
                method,
                path,
                body=body or None,
                headers=headers,
                timeout=urllib3.Timeout(connect=min(patience, CONNECT_SECONDS), total=patience),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            try:
                answer = _read(response, until)
            except BaseException:
                response.close()
                raise
            response.release_conn()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise OpenSearchError(f"it did not answer {method} {path}: {type(error).__name__}") from error
        if response.status >= 300:
            reason = _reason(answer)
            raise OpenSearchError(f"{method} {path}: {response.status} {reason}", response.status, reason)
        return answer


def _read(response: urllib3.BaseHTTPResponse, until: float) -> bytes:
    """Read an answer until the deadline. The socket's time-out alone would allow a very slow server."""
    chunks, length = [], 0
    while chunk := response.read1(65_536):
        chunks.append(chunk)
        length += len(chunk)
        if time.monotonic() > until:
            raise OpenSearchError("its answer took too long")
        if length > ANSWER_BYTES:
            raise OpenSearchError("its answer is too long")
    return b"".join(chunks)


class _Cause(msgspec.Struct):
    type: str = ""


class _Failure(msgspec.Struct):
    error: _Cause | str = ""


def _reason(answer: bytes) -> str:
    """The kind of error in an answer. Not its message, which may contain users' text."""
    try:
        error = msgspec.json.decode(answer, type=_Failure).error
    except msgspec.MsgspecError:
        return ""
    return error if isinstance(error, str) else error.type


@cache
def server() -> OpenSearchServer:
    """The server of the settings."""
    return OpenSearchServer(settings.OPENSEARCH_URL)
