"""Django's cache: django-redis on the cache server (`CACHE_URL`). All values are hints.

Keys are in storage/keys.py. It shares the breaker of the rate counters: a hanging server costs a process one wait of
`REDIS_TIMEOUT_SECONDS`, then it is left alone for a second. If the server does not answer or refuses (it is full, or
the key has another type), reads find nothing and writes do nothing, without an error. Values are JSON, not pickle, so
nobody can run code by writing to the server.
"""

from functools import cache
from typing import Any

import msgspec
import redis
from django.conf import settings
from django_redis.pool import ConnectionFactory
from django_redis.serializers.base import BaseSerializer

from runtime import metrics, traces
from storage.breaker import OpenError
from storage.connections import cache_breaker, client_of


class Factory(ConnectionFactory):  # type: ignore[misc]
    """Makes the clients of django-redis."""

    def connect(self, url: str) -> "Guarded":
        """The guarded client of the server at `url`."""
        return _client(url, settings.REDIS_TIMEOUT_SECONDS)


class Guarded(redis.Redis):
    """A client whose single commands go through the breaker. Pipelines do not: requests must not use `set_many`."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command. Raises redis.ConnectionError while the server is left alone."""
        try:
            with traces.span("redis cache"), cache_breaker.asking(settings.REDIS_TIMEOUT_SECONDS):
                return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        except OpenError as error:
            raise redis.ConnectionError(str(error)) from error
        except redis.ResponseError:
            metrics.cache_refused.inc()
            raise


@cache
def _client(url: str, timeout: float) -> Guarded:
    return Guarded(connection_pool=client_of(url, timeout).connection_pool)


class Serializer(BaseSerializer):  # type: ignore[misc]
    """JSON. Invalid JSON, for example another program's value, reads as None."""

    def dumps(self, value: Any) -> bytes:
        """Raises TypeError if JSON cannot hold the value."""
        return msgspec.json.encode(value)

    def loads(self, value: bytes) -> Any:
        """The value, or None if it is not JSON."""
        try:
            return msgspec.json.decode(value)
        except (ValueError, RecursionError):
            return None
