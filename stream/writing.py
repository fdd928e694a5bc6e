"""Writes a batch of events to open connections. Each dialect works, and fails, alone.

See docs/decisions.md: Apps hear the same bytes.
"""

import asyncio
import logging
import random
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from django import db

from runtime import metrics
from storage.events import Entry, Gap, Position
from storage.postgresql import bound_thread_long
from stream.attempts import Attempts, FailurePause
from stream.connections import AGAIN, OpenConnection
from stream.dialects import Dialect, ListenerProtocol, Message
from stream.threads import in_thread
from web.rest import OUTAGES

logger = logging.getLogger(__name__)

DIALECTS = 2
"""Dialects that work at the same time."""
ALONE = 3
"""After this many failures in a row, while PostgreSQL answers another query, the dialect's query is at fault."""
SPREAD_SECONDS = 5.0
"""Connections that must end after a loss do so within this time, not all at once."""


class Writer:
    """Writes to the hub's connections."""

    def __init__(self, connections: set[OpenConnection]) -> None:
        self._connections = connections
        self._rests: dict[Dialect, FailurePause] = {}
        """The pause of each dialect whose last batch failed."""
        self._threads = ThreadPoolExecutor(DIALECTS, "audience", initializer=bound_thread_long)

    @property
    def is_well(self) -> bool:
        """Whether no dialect failed lately."""
        return not any(rest.has_failed_recently for rest in self._rests.values())

    def stop(self) -> None:
        """Stop the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def write_entries(self, entries: list[Entry]) -> None:
        """Write a batch to all connections."""
        groups = _by_dialect(self._connections)
        await asyncio.gather(*(self._write_batch(dialect, some, entries) for dialect, some in groups.items()))

    def write_loss(self, upto: Position) -> None:
        """Tell all connections that events up to here may be lost."""
        for dialect, some in _by_dialect(self._connections).items():
            _report_loss(dialect, some, upto)

    def write_missed(self, upto: Position) -> None:
        """After a dialect's pause, tell its connections of skipped events."""
        for dialect, rest in self._rests.items():
            if rest.has_missed and rest.is_over:
                rest.has_missed = False
                _report_loss(dialect, self._of_dialect(dialect), upto)

    def _of_dialect(self, dialect: Dialect) -> list[OpenConnection]:
        return [each for each in self._connections if each.dialect == dialect]

    async def _write_batch(self, dialect: Dialect, connections: list[OpenConnection], entries: list[Entry]) -> None:
        """Write a batch to a dialect's connections.

        After an error, or `ALONE` outages of this query while PostgreSQL answers another, the dialect pauses, and its
        connections must ask the site.
        """
        upto = entries[-1][0]
        rest = self._rests.get(dialect)
        if rest is not None and not rest.is_over:
            rest.has_missed = True
            return
        attempts, alone = Attempts("PostgreSQL"), 0
        while connections:
            try:
                hearers = {one.listener for one in connections}
                messages = await in_thread(self._threads, partial(dialect.news, hearers, entries))
            except OUTAGES as error:
                alone = alone + 1 if await self._postgresql_answers() else 0
                if alone == ALONE:
                    self._failed(dialect, connections, upto, error)
                    return
                await attempts.failed(error)
                connections = [each for each in connections if each in self._connections]
            except Exception as error:  # noqa: BLE001 (whatever it is, it costs this dialect alone)
                self._failed(dialect, connections, upto, error)
                return
            else:
                attempts.succeeded()
                self._succeeded(dialect, upto)
                if dialect.reset is None and any(isinstance(event, Gap) for _, event in entries):
                    _report_loss(dialect, connections, upto)
                _deliver(connections, messages)
                return

    async def _postgresql_answers(self) -> bool:
        try:
            return await in_thread(self._threads, _is_postgresql_usable)
        except OUTAGES:
            return False

    def _failed(self, dialect: Dialect, connections: list[OpenConnection], upto: Position, error: Exception) -> None:
        if self._rests.setdefault(dialect, FailurePause()).failed():
            logger.error("messages for %r failed. Their clients load the page again", dialect.name, exc_info=error)
        metrics.stream_failures.labels(dialect.name).inc()
        _report_loss(dialect, connections, upto)

    def _succeeded(self, dialect: Dialect, upto: Position) -> None:
        rest = self._rests.pop(dialect, None)
        if rest is not None and rest.has_missed:
            _report_loss(dialect, self._of_dialect(dialect), upto)


def _is_postgresql_usable() -> bool:
    db.connection.ensure_connection()
    return db.connection.is_usable()


def _by_dialect(connections: Iterable[OpenConnection]) -> dict[Dialect, list[OpenConnection]]:
    found: dict[Dialect, list[OpenConnection]] = {}
    for connection in connections:
        found.setdefault(connection.dialect, []).append(connection)
    return found


def _report_loss(dialect: Dialect, connections: list[OpenConnection], upto: Position) -> None:
    """Tell connections that events may be lost.

    Those whose dialect has no such message end within `SPREAD_SECONDS`.
    """
    if dialect.reset is not None:
        _deliver(connections, [(None, upto, dialect.reset(upto))])
        return
    loop = asyncio.get_running_loop()
    for connection in connections:
        loop.call_later(random.uniform(0, SPREAD_SECONDS), connection.close, AGAIN)  # noqa: S311 (no secret)


def _deliver(connections: Iterable[OpenConnection], messages: Iterable[Message]) -> None:
    by_hearer: dict[ListenerProtocol, list[OpenConnection]] = {}
    for connection in connections:
        by_hearer.setdefault(connection.listener, []).append(connection)
    for hearer, position, data in messages:
        for connection in connections if hearer is None else by_hearer.get(hearer, ()):
            if position > connection.after or hearer is None:
                connection.put(data)
