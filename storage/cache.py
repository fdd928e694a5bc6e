"""Django's cache: django-redis on the cache server (`CACHE_URL`), for hints only.

In an outage, reads find nothing and writes do nothing. Values are JSON, because pickle would run code of whoever can
write there.
"""

from functools import cache
from typing import Any

import msgspec
import redis
from django.conf import settings
from django_redis.pool import ConnectionFactory
from django_redis.serializers.base import BaseSerializer

from runtime import metrics
from storage.breaker import BreakerOpenError
from storage.connections import cache_breaker, client_of


class Factory(ConnectionFactory):  # type: ignore[misc]
    """Makes the clients of django-redis."""

    def connect(self, url: str) -> "GuardedRedis":
        """The guarded client of the server at `url`."""
        return _client(url, settings.REDIS_TIMEOUT_SECONDS)


class GuardedRedis(redis.Redis):
    """A client of the cache server with a breaker. Only single commands have it: requests must not use `set_many`."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Run a command. Raises redis.ConnectionError while the server is left alone."""
        try:
            with cache_breaker.guard(settings.REDIS_TIMEOUT_SECONDS):
                return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        except BreakerOpenError as error:
            raise redis.ConnectionError(str(error)) from error
        except redis.ResponseError:
            metrics.cache_refused.inc()
            raise


@cache
def _client(url: str, timeout: float) -> GuardedRedis:
    return GuardedRedis(connection_pool=client_of(url, timeout).connection_pool)


class Serializer(BaseSerializer):  # type: ignore[misc]
    """Encodes cached values as JSON. Anything else reads as None."""

    def dumps(self, value: Any) -> bytes:
        """Encode a value. Raises TypeError for what JSON cannot hold."""
        return msgspec.json.encode(value)

    def loads(self, value: bytes) -> Any:
        """Decode a value. None if it is not JSON."""
        try:
            return msgspec.json.decode(value)
        except (ValueError, RecursionError):
            return None
