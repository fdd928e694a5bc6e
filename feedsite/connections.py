"""The clients of the servers: Redis for the feeds (with a short patience) and prepared SQL for the hot paths."""

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import psycopg
import redis
from django.conf import settings
from django.db import connection
from redis.backoff import NoBackoff
from redis.retry import Retry

BREAKER_SECONDS = 1.0
TASK_TIMEOUT = 5.0


class FeedsUnavailableError(Exception):
    """The feeds server did not answer in time; whatever was asked for must come from PostgreSQL."""


class FeedsRefusedError(FeedsUnavailableError):
    """The feeds server answered, but would not do this: something is wrong with a key or a command, not with it."""


class Breaker:
    """Stops asking a server for a second after it failed to answer, so that an outage costs one wait, not one a
    request.

    One a process and server; threads may share it (a lost race costs one extra wait).
    """

    def __init__(self) -> None:
        self._closed_at = 0.0

    @property
    def is_open(self) -> bool:
        return time.monotonic() < self._closed_at

    def trip(self) -> None:
        self._closed_at = time.monotonic() + BREAKER_SECONDS

    def reset(self) -> None:
        self._closed_at = 0.0


feeds_breaker = Breaker()
broker_breaker = Breaker()


def _client(timeout: float) -> redis.Redis:
    # RESP2 keeps scores as bytes, which the windows compare without parsing a double a delivery. A connection that
    # the server closed (a restart) is replaced once; a time-out is never tried again.
    return redis.Redis.from_url(
        settings.REDIS_URL,
        protocol=2,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
        health_check_interval=0,
    )


@cache
def feeds() -> redis.Redis:
    """The feeds server for pages: every call answers within `REDIS_TIMEOUT` seconds or raises."""
    return _client(settings.REDIS_TIMEOUT)


@cache
def feeds_for_tasks() -> redis.Redis:
    """The feeds server for workers and commands, which may wait longer than a page."""
    return _client(TASK_TIMEOUT)


@contextmanager
def feeds_errors() -> Iterator[None]:
    """Turn every way in which the feeds server can fail a page into `FeedsUnavailableError`.

    While the breaker is open the body is not run at all.
    """
    if feeds_breaker.is_open:
        raise FeedsUnavailableError("the feeds server failed a moment ago")
    try:
        yield
    except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
        feeds_breaker.trip()
        raise FeedsUnavailableError(str(error)) from error
    except (redis.OutOfMemoryError, redis.ReadOnlyError) as error:  # it will do it again when it can
        raise FeedsUnavailableError(str(error)) from error
    except redis.RedisError as error:
        raise FeedsRefusedError(str(error)) from error


def fetch(query: str, params: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
    """Rows of one prepared statement, as plain tuples, inside Django's connection and transaction.

    The hot paths use it instead of the ORM: planning the verifying query costs more than running it, and a model
    instance costs 25 times a tuple. Errors are Django's (`django.db.OperationalError`, ...).
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(query, params, prepare=True, binary=True)
        return cursor.fetchall()


Command = tuple[Any, ...]
_scripts: dict[str, str] = {}


def script(source: str) -> str:
    """Register a Lua script of one key; its digest, for EVALSHA in `pipelined`."""
    digest = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
    _scripts[digest] = source
    return digest


def pipelined(client: redis.Redis, commands: Iterable[Command]) -> list[Any]:
    """The replies to single-key commands, in one round trip; raises the first error among them.

    Scripts that the server does not know (it was restarted) are loaded and everything is sent again, so the commands
    must be idempotent.
    """
    commands = list(commands)
    replies = _send(client, commands)
    if any(isinstance(reply, redis.exceptions.NoScriptError) for reply in replies):
        for source in _scripts.values():
            client.script_load(source)
        replies = _send(client, commands)
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return replies


def _send(client: redis.Redis, commands: list[Command]) -> list[Any]:
    if not commands:
        return []
    pipeline = client.pipeline(transaction=False)
    for command in commands:
        pipeline.execute_command(*command)  # type: ignore[no-untyped-call]
    return pipeline.execute(raise_on_error=False)
