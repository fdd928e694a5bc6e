"""Media files in an S3-compatible bucket, through django-storages.

A circuit breaker lets a process wait for a failed store at most once a second. The site serves the files itself:
browsers could not cache presigned addresses.
"""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from storages.backends.s3 import S3Storage
from urllib3.exceptions import HTTPError

from media.files import CACHING, TYPES, Stored, StoreError, is_stored_name
from runtime.addresses import BucketAddress
from storage.breaker import Breaker, BreakerOpenError

CONNECT_SECONDS = 2.0
"""Longest wait for a connection. A lower timeout for answers counts here too."""
CONNECTIONS = 20
LISTED_AT_ONCE = 1000
READ_AT_ONCE_BYTES = 1 << 16
MISSING = frozenset({"404", "NoSuchKey", "NotFound"})
AWAY = frozenset({500, 502, 503, 504, 429})
"""Status codes of a store that is temporarily unavailable."""


class BucketUnavailableError(StoreError):
    """The store timed out or is unavailable."""


logger = logging.getLogger(__name__)
breaker = Breaker(name="media", failures=(BucketUnavailableError,), slow_share=float("inf"))


class Bucket:
    """A bucket with nothing but media files."""

    is_remote = True

    def __init__(self, address: BucketAddress, timeout_seconds: float) -> None:
        self.address = address
        self._timeout = timeout_seconds

    def __repr__(self) -> str:
        return f"<Bucket {self.address!r}>"

    @cached_property
    def client(self) -> Any:
        """boto3's client, shared by threads."""
        config = Config(
            signature_version="s3v4",
            s3={"addressing_style": self.address.style},
            connect_timeout=min(CONNECT_SECONDS, self._timeout),
            read_timeout=self._timeout,
            retries={"total_max_attempts": 1},
            max_pool_connections=CONNECTIONS,
            # Stores other than Amazon's do not support checksum trailers.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        storage = S3Storage(
            access_key=self.address.key,
            secret_key=self.address.secret,
            security_token=None,  # ignore the environment
            session_profile=None,
            bucket_name=self.address.name,
            endpoint_url=self.address.endpoint,
            region_name=self.address.region,
            client_config=config,
        )
        return storage.connection.meta.client

    def save(self, source: Path, name: str) -> None:
        kind = TYPES[name.rpartition(".")[2]]
        with self._guarded_request(), source.open("rb") as file:
            self.client.put_object(**self._object_params(name), Body=file, ContentType=kind, CacheControl=CACHING)
        source.unlink(missing_ok=True)

    def move(self, name: str, to: str) -> None:
        """See `Store.move`. Copies within the store, then deletes."""
        try:
            with self._guarded_request():
                self.client.copy_object(
                    **self._object_params(to), CopySource={"Bucket": self.address.name, "Key": name}
                )
        except FileNotFoundError:
            return
        self.delete(name)

    def delete(self, name: str) -> None:
        with self._guarded_request():
            self.client.delete_object(**self._object_params(name))

    def open(self, name: str) -> IO[bytes]:
        """See `Store.open`. Reading may raise StoreError too."""
        return io.BufferedReader(_RemoteFile(self, name), READ_AT_ONCE_BYTES)

    def has(self, name: str) -> bool:
        try:
            with self._guarded_request():
                self.client.head_object(**self._object_params(name))
        except FileNotFoundError:
            return False
        return True

    def listing(self, prefix: str) -> Iterator[Stored]:
        """See `Store.listing`. Skips names that the site did not make."""
        asked: dict[str, Any] = {"Bucket": self.address.name, "Prefix": f"{prefix}/", "MaxKeys": LISTED_AT_ONCE}
        while True:
            with self._guarded_request():
                page = self.client.list_objects_v2(**asked)
            now = datetime.now(UTC)
            for each in page.get("Contents", ()):
                if is_stored_name(each["Key"]):
                    yield Stored(each["Key"], each["Size"], (now - each["LastModified"]).total_seconds())
            if not page.get("IsTruncated"):
                return
            asked["ContinuationToken"] = page["NextContinuationToken"]

    def part(self, name: str, begin: int) -> tuple[Any, int]:
        """The body of a file from `begin` on, and the file's size."""
        asked = {"Range": f"bytes={begin}-"} if begin else {}
        with self._guarded_request():
            answer = self.client.get_object(**self._object_params(name), **asked)
        return answer["Body"], begin + answer["ContentLength"]

    def read(self, body: Any, size: int) -> bytes:
        """Up to `size` more bytes of a body. Raises StoreError."""
        with self._guarded_request():
            return bytes(body.read(size))

    def _object_params(self, name: str) -> dict[str, str]:
        return {"Bucket": self.address.name, "Key": name}

    @contextmanager
    def _guarded_request(self) -> Iterator[None]:
        """Ask the store through the circuit breaker. Raises StoreError. It is logged, and its text holds no secrets."""
        try:
            with breaker.guard(self._timeout), errors():
                yield
        except BreakerOpenError as error:
            raise BucketUnavailableError(str(error)) from error
        except StoreError as error:
            logger.error("%s", error)
            raise


@contextmanager
def errors() -> Iterator[None]:
    """Turn boto3's exceptions into StoreError and FileNotFoundError, without secrets."""
    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if code in MISSING:
            raise FileNotFoundError(str(error)) from error
        raise (BucketUnavailableError if status in AWAY else StoreError)(
            f"the bucket answers {status} {code}"
        ) from error
    except RecursionError as error:  # botocore retries without end if the answer names no region
        raise StoreError(
            "the bucket is somewhere else, and its store does not say where: is the region right?"
        ) from error
    except (BotoCoreError, HTTPClientError, HTTPError) as error:
        raise BucketUnavailableError(f"the bucket does not answer ({type(error).__name__})") from error


class _RemoteFile(io.RawIOBase):
    """A file of the bucket, seekable. Each seek elsewhere costs a request."""

    _body: Any = None

    def __init__(self, bucket: Bucket, name: str) -> None:
        super().__init__()
        self._bucket, self._name, self._at = bucket, name, 0
        self._body, self._size = bucket.part(name, 0)
        self._body_at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        if self._at >= self._size:
            return 0
        if self._body_at != self._at:
            self._body.close()
            self._body, _size = self._bucket.part(self._name, self._at)
            self._body_at = self._at
        part = self._bucket.read(self._body, len(buffer))
        buffer[: len(part)] = part
        self._at = self._body_at = self._at + len(part)
        return len(part)

    def close(self) -> None:
        if self._body is not None:
            self._body.close()
            self._body = None
        super().close()
