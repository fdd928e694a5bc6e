"""The clients of the servers: Redis for the feeds (with a short patience) and prepared SQL for the hot paths.

See docs/decisions.md: Own code in place of a library.
See docs/decisions.md: PgBouncer gets no prepared statements.
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
from django.db import DEFAULT_DB_ALIAS, connections
from kombu.exceptions import KombuError
from psycopg.errors import DeadlockDetected, UndefinedColumn, UndefinedFunction, UndefinedTable
from redis.backoff import NoBackoff
from redis.retry import Retry

from runtime import traces
from runtime.cluster_address import names_cluster
from storage.breaker import FAILURES, Breaker
from storage.cluster import Cluster

TASK_TIMEOUT_SECONDS = 5.0
"""Seconds that workers and commands wait for the feeds server."""
LEAST_WAIT_SECONDS = 0.001
"""Seconds for a reply that may be there already."""
LAZILY = "set_config('synchronous_commit', 'off', true) = 'off'"
"""A condition of a statement whose commit need not wait for the disk: what a crash undoes is done again."""


class FeedsUnavailableError(Exception):
    """The feeds server did not answer in time; the answer must come from PostgreSQL."""


class FeedsRefusedError(FeedsUnavailableError):
    """The feeds server answered, but would not do this: something is wrong with a key or a command, not with it."""


feeds_breaker = Breaker(name="feeds", slow_share=math.inf)
cache_breaker = Breaker(name="cache")
BROKER_FAILURES: tuple[type[Exception], ...] = (KombuError, AMQPError, redis.RedisError, OSError)
"""The exceptions of a broker, Redis or RabbitMQ, that did not take a message. kombu passes those of AMQP on."""
broker_breaker = Breaker(name="broker", failures=BROKER_FAILURES)


def client_of(url: str, timeout: float) -> redis.Redis:
    """A client whose every call answers within `timeout` seconds or raises; it has a pool of its own."""
    if names_cluster(url):
        return Cluster(url, timeout)
    # RESP2 keeps scores as bytes, which the windows compare without parsing a double a delivery. A connection that
    # the server closed (a restart) is replaced once; a time-out is never tried again.
    return redis.Redis.from_url(
        url,
        protocol=2,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
        health_check_interval=0,
    )


@cache
def feeds() -> redis.Redis:
    """The feeds server for pages: every call answers within `REDIS_TIMEOUT_SECONDS` seconds or raises."""
    return client_of(settings.REDIS_URL, settings.REDIS_TIMEOUT_SECONDS)


@cache
def feeds_for_tasks() -> redis.Redis:
    """The feeds server for workers and commands, which may wait longer than a page."""
    return client_of(settings.REDIS_URL, TASK_TIMEOUT_SECONDS)


@contextmanager
def feeds_errors() -> Iterator[None]:
    """Turn every way in which the feeds server can fail a page into `FeedsUnavailableError`.

    While the breaker is open the body is not run at all.
    """
    try:
        with feeds_breaker.asking(settings.REDIS_TIMEOUT_SECONDS):
            yield
    except FAILURES as error:
        raise FeedsUnavailableError(str(error)) from error
    except (redis.OutOfMemoryError, redis.ReadOnlyError) as error:  # it will do it again when it can
        raise FeedsUnavailableError(str(error)) from error
    except redis.RedisError as error:
        raise FeedsRefusedError(str(error)) from error


def drop_ended_sessions(**_: Any) -> None:
    """Close the sessions of this thread that PostgreSQL has ended (it was restarted), so that the request that begins
    gets a new one instead of the error.

    A session that is idle has nothing to read, unless the server said goodbye. Looking costs 3 µs; asking, as Django's
    health checks do, a round trip.

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
    """Rows of one prepared statement, inside Django's connection and transaction: what `into` makes of the tuple of
    each, else the tuples. `on` is the alias of the database: another than the primary only where storage.replica names
    it, for reads that may lag.

    The hot paths use it instead of the ORM: planning the verifying query costs more than running it, and a page
    needs no model instances. Errors are Django's (`django.db.OperationalError`, ...). A statement that a deadlock ended
    is asked once more, unless it stands in a transaction, which is its caller's to repeat.
    """
    wrapper = connections[on]
    wrapper.ensure_connection()
    rows = _rows(wrapper, query, params)
    return rows if into is None else [*map(into, rows)]


@dataclass(slots=True)
class Asked:
    """Counts of requests to the servers: statements by `fetch`, round trips by `pipelined`."""

    statements: int = 0
    round_trips: int = 0


_asked: ContextVar[Asked | None] = ContextVar("asked", default=None)


@contextmanager
def count_asked() -> Iterator[Asked]:
    """Count what the block asks in its own thread."""
    asked = Asked()
    token = _asked.set(asked)
    try:
        yield asked
    finally:
        _asked.reset(token)


def is_of_another_version(error: Exception) -> bool:
    """Whether a statement met a database that lacks what this version's migrations make."""
    return isinstance(error.__cause__, (UndefinedTable, UndefinedColumn, UndefinedFunction))


@contextmanager
def fetching() -> Iterator[Callable[[str, Sequence[Any] | Mapping[str, Any]], Callable[[], list[tuple[Any, ...]]]]]:
    """`fetch` for those who have something else to do while PostgreSQL works: asks, and gives a function that waits for
    the rows.

    A thread reads them in the caller's session, which serves one statement at a time: another of the caller's waits.
    """
    wrapper = connections[DEFAULT_DB_ALIAS]
    wrapper.ensure_connection()
    with ThreadPoolExecutor(1, "fetching") as thread:
        rows = traces.bound(_rows)
        yield lambda query, params: thread.submit(rows, wrapper, query, params).result


def _rows(wrapper: Any, query: str, params: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
    if asked := _asked.get():
        asked.statements += 1
    statement, names = numbered(query)
    values = [params[name] for name in names] if isinstance(params, Mapping) else params
    with (
        traces.span("postgresql") as span,
        wrapper.wrap_database_errors,
        psycopg.RawCursor(wrapper.connection) as cursor,
    ):
        if span:
            _name_statement(span, query)
        try:
            cursor.execute(statement, values, prepare=not settings.POOLED, binary=True)
        except DeadlockDetected:  # a migration that locks two tables ends a page so; by itself it did nothing yet
            if wrapper.in_atomic_block or not wrapper.get_autocommit():
                raise
            cursor.execute(statement, values, prepare=not settings.POOLED, binary=True)
        return cursor.fetchall()


def trace_statements(connection: Any, **_: Any) -> None:
    """Have what Django sends through a session make spans, as `fetch` does."""
    if _trace_statement not in connection.execute_wrappers:
        connection.execute_wrappers.append(_trace_statement)


def _trace_statement(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    with traces.span("postgresql") as span:
        if span:
            _name_statement(span, str(sql))
        return execute(sql, params, many, context)


def _name_statement(span: Any, query: str) -> None:
    summary = traces.summary(query)
    span.update_name(f"postgresql {summary}")
    span.set_attributes({"db.system.name": "postgresql", "db.query.summary": summary})


PLACEHOLDER = re.compile(r"%(?:s|%|\((\w+)\)s)")


@lru_cache(512)
def numbered(query: str) -> tuple[bytes, list[str]]:
    """A statement with PostgreSQL's own placeholders ($1, ...), and the names that they stand for, if they have any.

    psycopg converts what is longer than 4,096 characters anew at every call: a seventh of what a page cost its process.
    """
    names: dict[str, int] = {}
    count = itertools.count(1)

    def number(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        return f"${next(count) if match[0] == '%s' else names.setdefault(match[1], len(names) + 1)}"

    return PLACEHOLDER.sub(number, query).encode(), list(names)


def database_now() -> datetime:
    """The time by PostgreSQL's clock. Workers decide by it, so a machine whose clock is wrong changes nothing."""
    now: datetime = fetch("SELECT clock_timestamp()")[0][0]
    return now


def stream(
    query: str, params: Sequence[Any] | Mapping[str, Any] = (), *, size: int = 2000
) -> Iterator[tuple[Any, ...]]:
    """Rows of one statement through a server-side cursor, `size` at a time: memory does not grow with their number.

    Only within a transaction, and read to the end before it ends.
    """
    with connections[DEFAULT_DB_ALIAS].chunked_cursor() as cursor:
        cursor.execute(query, params)
        while rows := cursor.fetchmany(size):
            yield from rows


def id_array(ids: Iterable[int]) -> str:
    """Ids as PostgreSQL writes an array, for a parameter that is cast to bigint[].

    psycopg dumps a list element by element, in Python.
    """
    return f"{{{','.join(map(str, ids))}}}"


Command = tuple[Any, ...]
_scripts: dict[str, str] = {}


def script(source: str) -> str:
    """Register a Lua script of one slot; its digest, for EVALSHA in `pipelined`."""
    digest = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
    _scripts[digest] = source
    return digest


def pipelined(
    client: redis.Redis, commands: Iterable[Command | bytes], *, patience_seconds: float | None = None
) -> list[Any]:
    """The replies to commands of one key each, in one round trip; raises the first error among them. A command may be
    RESP already.

    All replies of one server are there within `patience_seconds`, or TimeoutError is raised. Without it each reply has
    the client's time-out.

    Scripts that a server does not know (it was restarted) are loaded, and everything is sent again. So the commands
    must be idempotent. After an error it is not known what was done.
    """
    commands = list(commands)
    if not commands:
        return []
    if asked := _asked.get():
        asked.round_trips += 1
    with traces.span("redis") as span:
        if span:
            _name_commands(span, commands)
        try:
            return _send(client, commands, patience_seconds)
        except redis.exceptions.NoScriptError:
            for source in _scripts.values():
                client.script_load(source)
            return _send(client, commands, patience_seconds)


def _name_commands(span: Any, commands: Sequence[Command | bytes]) -> None:
    """Name a span by the words of its commands, without any key."""
    words = {str(each[0]) for each in commands if not isinstance(each, bytes)} or {"RESP"}
    span.update_name(f"redis {' '.join(sorted(words))}")
    span.set_attributes({"db.system.name": "redis", "db.operation.batch.size": len(commands)})


def _send(client: redis.Redis, commands: Sequence[Command | bytes], patience_seconds: float | None) -> list[Any]:
    with borrowed(client) as connection:
        connection.send_packed_command(_packed(connection, commands))
        if patience_seconds is None:
            return [connection.read_response() for _ in commands]
        until = time.monotonic() + patience_seconds
        return [connection.read_response(timeout=max(until - time.monotonic(), LEAST_WAIT_SECONDS)) for _ in commands]


def _packed(connection: Any, commands: Sequence[Command | bytes]) -> list[bytes]:
    packed = [[each] if isinstance(each, bytes) else connection.pack_command(*each) for each in commands]
    return [b"".join(part for parts in packed for part in parts)]


def tried(client: redis.Redis, commands: Iterable[Command | bytes]) -> list[Any]:
    """The replies to commands in one round trip, an error in its command's place. A command may be RESP already."""
    commands = list(commands)
    if not commands:
        return []
    with traces.span("redis") as span:
        if span:
            _name_commands(span, commands)
        replies = _try(client, commands)
        if any(isinstance(reply, redis.exceptions.NoScriptError) for reply in replies):
            for source in _scripts.values():
                client.script_load(source)
            replies = _try(client, commands)
        return replies


def _try(client: redis.Redis, commands: Sequence[Command | bytes]) -> list[Any]:
    replies: list[Any] = []
    with borrowed(client) as connection:
        connection.send_packed_command(_packed(connection, commands))
        for _ in commands:
            try:
                replies.append(connection.read_response())
            except redis.ResponseError as error:
                replies.append(error)
    return replies


@contextmanager
def borrowed(client: redis.Redis) -> Iterator[Any]:
    """A connection of the client's pool, for RESP by hand: a pipeline object costs more CPU a page.

    The pool reconnects one that the server has closed. After an error replies may still be under way, so the connection
    is closed.
    """
    pool = client.connection_pool
    connection = pool.get_connection()
    try:
        yield connection
    except BaseException:
        connection.disconnect()  # type: ignore[no-untyped-call]
        raise
    finally:
        pool.release(connection)
