"""Clients of the servers: Redis with short time-outs, and prepared SQL for the hot paths.

See docs/decisions.md: Own code in place of a library.
See docs/servers.md, PgBouncer.
"""

import hashlib
import itertools
import math
import re
import select
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, TypeVar, overload

import psycopg
import redis
from amqp.exceptions import AMQPError
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.utils import timezone
from kombu.exceptions import KombuError
from psycopg.errors import DeadlockDetected, UndefinedColumn, UndefinedFunction, UndefinedTable
from redis.backoff import NoBackoff
from redis.retry import Retry

from runtime.addresses import names_cluster
from storage.breaker import FAILURES, Breaker, UnavailableError
from storage.cluster import Cluster, ClusterConnection
from storage.replies import LEAST_WAIT_SECONDS, borrowed_connection, reply_reader

TASK_TIMEOUT_SECONDS = 5.0
"""How long workers and commands wait for the feeds server."""
LAZILY = "set_config('synchronous_commit', 'off', true) = 'off'"
"""An SQL condition that lets a commit not wait for the disk. Only for work that is repeated after a crash."""


class FeedsUnavailableError(UnavailableError):
    """The feeds server did not answer in time."""


class FeedsRefusedError(FeedsUnavailableError):
    """The server refused a key or a command."""


feeds_breaker = Breaker(name="feeds", slow_share=math.inf)
cache_breaker = Breaker(name="cache")
BROKER_FAILURES: tuple[type[Exception], ...] = (KombuError, AMQPError, redis.RedisError, OSError)
"""Errors of a broker (Redis or RabbitMQ) that did not take a message. kombu passes AMQP's on."""
BROKER_SECONDS = 5.0
"""How long a failed broker is not asked. A full RabbitMQ answers nothing, so each try costs 1.6 seconds."""
broker_breaker = Breaker(BROKER_SECONDS, name="broker", failures=BROKER_FAILURES)


def client_of(url: str, timeout: float) -> redis.Redis:
    """A client with its own pool. A call that takes longer than `timeout` (seconds) raises."""
    if names_cluster(url):
        return Cluster(url, timeout)
    # RESP2 keeps scores as bytes, so windows need not parse doubles. A connection that the server closed is replaced
    # once. A time-out is never retried.
    return redis.Redis.from_url(
        url,
        protocol=2,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
        health_check_interval=0,
    )


def keys_in_script(client: redis.Redis, most: int) -> int:
    """How many keys one script may take: 1 in a cluster, because each key has its own slot."""
    return 1 if isinstance(client, Cluster) else most


def replies_of(connection: Any) -> Callable[[int], list[Any]]:
    """A function that returns the next `count` replies on a borrowed connection, with errors in their places."""
    return connection.replies if isinstance(connection, ClusterConnection) else reply_reader(connection)


@cache
def feeds() -> redis.Redis:
    """The client of the feeds server for pages."""
    return client_of(settings.REDIS_URL, settings.REDIS_TIMEOUT_SECONDS)


@cache
def feeds_for_tasks() -> redis.Redis:
    """The client of the feeds server with a longer time-out."""
    return client_of(settings.REDIS_URL, TASK_TIMEOUT_SECONDS)


@contextmanager
def feeds_errors() -> Iterator[None]:
    """Turn errors into `FeedsUnavailableError`, raised at once while the breaker is open."""
    try:
        with feeds_breaker.guard(settings.REDIS_TIMEOUT_SECONDS):
            yield
    except FAILURES as error:
        raise FeedsUnavailableError(str(error)) from error
    except (redis.OutOfMemoryError, redis.ReadOnlyError) as error:  # these states pass
        raise FeedsUnavailableError(str(error)) from error
    except redis.RedisError as error:
        raise FeedsRefusedError(str(error)) from error


def drop_ended_sessions(**_: Any) -> None:
    """Close this thread's sessions that PostgreSQL has ended.

    Only such an idle session has something to read. Checking costs 3 µs; Django's health checks cost a round trip.

    See docs/decisions.md: PostgreSQL gets a deadline of our own.
    """
    for wrapper in connections.all(initialized_only=True):
        session = wrapper.connection
        if session is None or wrapper.in_atomic_block:
            continue
        poll = select.poll()
        if not session.closed:
            poll.register(session.fileno(), select.POLLIN)
        if session.closed or poll.poll(0):
            wrapper.close()


Row = TypeVar("Row")


@overload
def fetch(
    query: str, params: Sequence[Any] | Mapping[str, Any] = (), *, on: str = DEFAULT_DB_ALIAS
) -> list[tuple[Any, ...]]: ...


@overload
def fetch(
    query: str,
    params: Sequence[Any] | Mapping[str, Any] = (),
    *,
    into: Callable[[tuple[Any, ...]], Row],
    on: str = DEFAULT_DB_ALIAS,
) -> list[Row]: ...


def fetch(
    query: str,
    params: Sequence[Any] | Mapping[str, Any] = (),
    *,
    into: Callable[[tuple[Any, ...]], Any] | None = None,
    on: str = DEFAULT_DB_ALIAS,
) -> list[Any]:
    """The rows of one prepared statement in Django's connection and transaction.

    Planning the verifying query costs more than running it. `on`: for storage.replica only. Raises Django's errors.
    Repeats a statement after a deadlock outside a transaction.
    """
    wrapper = connections[on]
    wrapper.ensure_connection()
    rows = _rows(wrapper, query, params)
    return rows if into is None else [*map(into, rows)]


@dataclass(slots=True)
class TripCount:
    """How many statements of `fetch` and round trips of `pipelined` were made."""

    statements: int = 0
    round_trips: int = 0


_asked: ContextVar[TripCount | None] = ContextVar("asked", default=None)


@contextmanager
def count_trips() -> Iterator[TripCount]:
    """Count the block's statements and round trips in this thread."""
    asked = TripCount()
    token = _asked.set(asked)
    try:
        yield asked
    finally:
        _asked.reset(token)


def is_schema_mismatch(error: Exception) -> bool:
    """Whether the error says that the database lacks this version's migrations."""
    return isinstance(error.__cause__, (UndefinedTable, UndefinedColumn, UndefinedFunction))


@contextmanager
def fetch_in_thread() -> Iterator[
    Callable[[str, Sequence[Any] | Mapping[str, Any]], Callable[[], list[tuple[Any, ...]]]]
]:
    """Run `fetch` in a thread. Yields a function that starts a statement and returns a function that waits for its
    rows.

    One statement at a time: it is the caller's session.
    """
    wrapper = connections[DEFAULT_DB_ALIAS]
    wrapper.ensure_connection()
    with ThreadPoolExecutor(1, "fetching") as thread:
        yield lambda query, params: thread.submit(_rows, wrapper, query, params).result


def _rows(wrapper: Any, query: str, params: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
    if asked := _asked.get():
        asked.statements += 1
    statement, names = number_parameters(query)
    values = [params[name] for name in names] if isinstance(params, Mapping) else params
    with wrapper.wrap_database_errors, psycopg.RawCursor(wrapper.connection) as cursor:
        try:
            cursor.execute(statement, values, prepare=not settings.POOLED, binary=True)
        except DeadlockDetected:  # for example with a migration; a lone statement did nothing yet
            if wrapper.in_atomic_block or not wrapper.get_autocommit():
                raise
            cursor.execute(statement, values, prepare=not settings.POOLED, binary=True)
        return cursor.fetchall()


PLACEHOLDER = re.compile(r"%(?:s|%|\((\w+)\)s)")


@lru_cache(512)
def number_parameters(query: str) -> tuple[bytes, list[str]]:
    """The statement with PostgreSQL's placeholders ($1, ...), and its parameters' names.

    Cached: psycopg converts at every call, a seventh of a page's CPU time.
    """
    names: dict[str, int] = {}
    count = itertools.count(1)

    def number(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        return f"${next(count) if match[0] == '%s' else names.setdefault(match[1], len(names) + 1)}"

    return PLACEHOLDER.sub(number, query).encode(), list(names)


def database_now() -> datetime:
    """The time of PostgreSQL's clock, so that no machine's wrong clock matters."""
    now: datetime = fetch("SELECT clock_timestamp()")[0][0]
    return now


def site_now() -> datetime:
    """The same for reports: this machine's time if PostgreSQL does not answer."""
    try:
        return database_now()
    except Error:
        return timezone.now()


def stream(
    query: str, params: Sequence[Any] | Mapping[str, Any] = (), *, size: int = 2000
) -> Iterator[tuple[Any, ...]]:
    """Yield rows through a server-side cursor. Read to the end, in a transaction."""
    with connections[DEFAULT_DB_ALIAS].chunked_cursor() as cursor:
        cursor.execute(query, params)
        while rows := cursor.fetchmany(size):
            yield from rows


def id_array(ids: Iterable[int]) -> str:
    """The ids as text of PostgreSQL's bigint[]. Faster than psycopg's dump of a list."""
    return f"{{{','.join(map(str, ids))}}}"


Command = tuple[Any, ...]
_scripts: dict[str, str] = {}


def register_script(source: str) -> str:
    """Register a Lua script whose keys are in one slot. Returns its digest."""
    digest = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
    _scripts[digest] = source
    return digest


def pipelined(
    client: redis.Redis, commands: Iterable[Command | bytes], *, patience_seconds: float | None = None
) -> list[Any]:
    """Send idempotent commands of one key each in one round trip, and return their replies.

    Raises the first error. Then any of the commands may have run.

    `patience_seconds` bounds the wait for all replies (TimeoutError), else each has the client's time-out. A command
    may be RESP already. If a restarted server lacks a script, everything is sent again.
    """
    commands = list(commands)
    if not commands:
        return []
    if asked := _asked.get():
        asked.round_trips += 1
    try:
        return _send(client, commands, patience_seconds)
    except redis.exceptions.NoScriptError:
        for source in _scripts.values():
            client.script_load(source)
        return _send(client, commands, patience_seconds)


def _send(client: redis.Redis, commands: Sequence[Command | bytes], patience_seconds: float | None) -> list[Any]:
    with borrowed_connection(client) as connection:
        connection.send_packed_command(_pack_commands(connection, commands))
        if patience_seconds is None:
            return [connection.read_response() for _ in commands]
        until = time.monotonic() + patience_seconds
        return [connection.read_response(timeout=max(until - time.monotonic(), LEAST_WAIT_SECONDS)) for _ in commands]


def _pack_commands(connection: Any, commands: Sequence[Command | bytes]) -> list[bytes]:
    packed = [[each] if isinstance(each, bytes) else connection.pack_command(*each) for each in commands]
    return [b"".join(part for parts in packed for part in parts)]


def pipelined_with_errors(client: redis.Redis, commands: Iterable[Command | bytes]) -> list[Any]:
    """Like `pipelined`, with errors in the places of their replies."""
    commands = list(commands)
    if not commands:
        return []
    replies = _send_with_errors(client, commands)
    if any(isinstance(reply, redis.exceptions.NoScriptError) for reply in replies):
        for source in _scripts.values():
            client.script_load(source)
        replies = _send_with_errors(client, commands)
    return replies


def _send_with_errors(client: redis.Redis, commands: Sequence[Command | bytes]) -> list[Any]:
    replies: list[Any] = []
    with borrowed_connection(client) as connection:
        connection.send_packed_command(_pack_commands(connection, commands))
        for _ in commands:
            try:
                replies.append(connection.read_response())
            except redis.ResponseError as error:
                replies.append(error)
    return replies
