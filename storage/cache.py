"""Django's cache: django-redis on the cache server (`CACHE_URL`), as far as it is to be trusted.

All that it holds is a hint, and its keys are in storage/keys.py. It shares the breaker of the rate counters: a server
that hangs costs a process one wait of `REDIS_TIMEOUT_SECONDS` seconds, and is left alone for a second then. Where it
does not answer, or refuses (it is full, or the key is of another type), reading finds nothing and writing does nothing;
neither raises. Values are JSON: who can write to the server runs no code here, as they would by a pickle.
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
    """A client whose single commands go through the breaker. Pipelines do not, so `set_many` and `incr_version` are not
    for requests.
    """

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command, within the breaker. Raises redis.ConnectionError while the server is left alone."""
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
    """JSON. Bytes that are none, such as the value of another program, read as None: as an entry that is not there."""

    def dumps(self, value: Any) -> bytes:
        """The value as JSON. Raises TypeError for what JSON cannot hold."""
        return msgspec.json.encode(value)

    def loads(self, value: bytes) -> Any:
        """The value of the JSON; None if it is none."""
        try:
            return msgspec.json.decode(value)
        except (ValueError, RecursionError):
            return None
