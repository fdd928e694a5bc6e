"""`manage.py top`: what the site is doing now.

It only looks: at a folder of counts, at /proc, at PostgreSQL by a few bounded statements, and at each Redis server by
one INFO. Each waits `WAIT_SECONDS` at most, and a server that does not answer is told as such.

See docs/decisions.md: Code written by hand, and why it stays.
"""

import os
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import redis
from celery import current_app
from django.conf import settings
from django.db import DatabaseError, connection
from django.utils.translation import gettext as _
from kombu.exceptions import KombuError, OperationalError

from operation import sampling
from operation.doctor import redis_roles
from runtime import metrics, processes
from runtime.counting import FOLDER
from storage.connections import client_of, fetch

WAIT_SECONDS = 2.0
"""Seconds that a server gets for an answer."""
SLOW_SECONDS = 0.1
"""A running statement is slow beyond this."""
SHOWN = 5
"""Lines of a list."""

# --- One look --------------------------------------------------------------------------------------------
DATABASE = """
    SELECT (SELECT n_tup_ins FROM pg_stat_user_tables WHERE relid = 'items_item'::regclass) AS items,
        (SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()) AS transactions,
        count(*) FILTER (WHERE state = 'active') - 1 AS active, count(*) AS sessions,
        count(*) FILTER (WHERE wait_event_type = 'Lock') AS waiting,
        coalesce(extract(epoch FROM now() - min(xact_start) FILTER (WHERE pid <> pg_backend_pid())), 0)::float8
            AS longest
    FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'
"""
BACKLOG = """
    SELECT count(*) FILTER (WHERE parked_at IS NULL) AS pending,
        count(*) FILTER (WHERE parked_at IS NOT NULL) AS parked,
        coalesce(extract(epoch FROM now() - min(not_before) FILTER (WHERE parked_at IS NULL)), 0)::float8 AS oldest
    FROM (SELECT parked_at, not_before FROM timeline_delivery LIMIT 10000) found
"""
STATEMENTS = """
    SELECT query, calls, mean_exec_time::float8 AS ms, total_exec_time::float8 / 1000 AS seconds
    FROM pg_stat_statements JOIN pg_database d ON d.oid = dbid
    WHERE d.datname = current_database() ORDER BY total_exec_time DESC LIMIT %(count)s
"""
RUNNING = """
    SELECT query, 1::bigint AS calls, extract(epoch FROM now() - query_start)::float8 * 1000 AS ms,
        extract(epoch FROM now() - query_start)::float8 AS seconds
    FROM pg_stat_activity
    WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()
        AND query_start < now() - %(slow)s * interval '1 second'
    ORDER BY query_start LIMIT %(count)s
"""
IS_COUNTED = """
    SELECT to_regclass('pg_stat_statements') IS NOT NULL
        AND position('pg_stat_statements' IN current_setting('shared_preload_libraries')) > 0
"""


class Statement(msgspec.Struct):
    """A statement that takes long: its text without values, calls, milliseconds a call, seconds in all."""

    query: str
    calls: int
    ms: float
    seconds: float


class Redis(msgspec.Struct):
    """One Redis server, as its INFO says."""

    memory: int
    commands: int
    clients: int
    evicted: int
    hits: int
    misses: int


class Memory(msgspec.Struct):
    """The processes of one kind on this machine."""

    processes: int
    pss: int
    seconds: float


class Look(msgspec.Struct):
    """One look at everything; `silent` has what did not answer, and why. Counts are since the start of their server."""

    at: float
    counts: dict[str, float] = {}
    """Sums of the counters: `requests`, `errors`, `deliveries`; `routes` and `sources` apart."""
    routes: dict[str, float] = {}
    sources: dict[str, float] = {}
    gauges: dict[str, float] = {}
    database: dict[str, float] = {}
    backlog: dict[str, float] = {}
    statements: list[Statement] = []
    are_counted: bool = False
    """Whether `statements` are those of pg_stat_statements, and not those that run now."""
    queues: dict[str, int] = {}
    redis: dict[str, Redis] = {}
    memory: dict[str, Memory] = {}
    silent: dict[str, str] = {}


def look() -> Look:
    """Look at everything once."""
    found = Look(at=time.monotonic())
    for name, section in (
        ("counts", _counts),
        ("postgresql", _postgresql),
        ("broker", _queues),
        *((role, lambda found, role=role, url=url: _redis(found, role, url)) for role, url in redis_roles().items()),
        ("processes", _processes),
    ):
        try:
            section(found)
        except (DatabaseError, redis.RedisError, KombuError, OperationalError, OSError, ValueError) as error:
            found.silent[name] = clean(str(error).strip().partition("\n")[0] or type(error).__name__)
    return found


def _counts(found: Look) -> None:
    folder = Path(os.environ.get(FOLDER) or settings.FAMILY.metrics_folder)
    if not folder.is_dir():
        raise OSError(_("no program counts in %(folder)s") % {"folder": folder})
    counts, routes, sources = Counter[str](), Counter[str](), Counter[str]()
    for name, labels, value in metrics.samples_in(folder):
        if name == "feedsite_http_seconds_count":
            counts["requests"] += value  # type: ignore[assignment]
            counts["errors"] += value if labels["status"].startswith("5") else 0  # type: ignore[assignment]
            routes[labels["route"]] += value  # type: ignore[assignment]
        elif name == "feedsite_http_seconds_sum":
            counts["request_seconds"] += value  # type: ignore[assignment]
        elif name == "feedsite_home_pages_total":
            sources[labels["sources"]] += value  # type: ignore[assignment]
        elif name == "feedsite_delivery_seconds_count":
            counts["deliveries"] += value  # type: ignore[assignment]
        elif name == "feedsite_delivery_seconds_sum":
            counts["delivery_seconds"] += value  # type: ignore[assignment]
        elif name in ("feedsite_stream_connections", "feedsite_live_lineup_lag_seconds", "feedsite_sampled_seconds"):
            found.gauges[name.removeprefix("feedsite_")] = value
        elif name == "feedsite_replica_lag_seconds":
            found.gauges["replica_lag_seconds"] = max(value, found.gauges.get("replica_lag_seconds", 0.0))
    found.counts, found.routes, found.sources = dict(counts), dict(routes), dict(sources)


def _postgresql(found: Look) -> None:
    try:
        found.database = _row(DATABASE)
        found.backlog = _row(BACKLOG)
        found.are_counted = bool(fetch(IS_COUNTED)[0][0])
        query = STATEMENTS if found.are_counted else RUNNING
        rows = fetch(query, {"count": SHOWN} | ({} if found.are_counted else {"slow": SLOW_SECONDS}))
        found.statements = [Statement(without_values(text), *figures) for text, *figures in rows]
    except DatabaseError:
        connection.close()  # the next look begins anew
        raise


def _row(query: str) -> dict[str, float]:
    names = re.findall(r"AS (\w+)(?=,|\n)", query)
    return dict(zip(names, map(float, (value or 0 for value in fetch(query)[0])), strict=True))


def _queues(found: Look) -> None:
    lengths = sampling.queue_lengths()
    found.queues = {name: lengths[name] for name in current_app.amqp.queues}


def _redis(found: Look, role: str, url: str) -> None:
    client = client_of(url, WAIT_SECONDS)
    with client:
        info: dict[str, Any] = client.info()
    names = ("used_memory", "total_commands_processed", "connected_clients", "evicted_keys", "keyspace_hits")
    found.redis[role] = Redis(*(int(info.get(name, 0)) for name in (*names, "keyspace_misses")))


def _processes(found: Look) -> None:
    used = processes.usage(processes.of_site(settings.DATA_DIR))
    found.memory = {kind: Memory(*each) for kind, each in used.items()}


def without_values(query: str) -> str:
    """A statement on one line, without what people wrote: values may be private, and may draw on a terminal."""
    return clean(re.sub(r"\s+", " ", re.sub(r"'(?:[^']|'')*'", "?", query)).strip())


def clean(text: str) -> str:
    """The text without characters that a terminal would obey."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


# --- Between two looks -------------------------------------------------------------------------------------
class Rates(NamedTuple):
    """The rates a second of the time between two looks."""

    before: Look
    now: Look

    @property
    def seconds(self) -> float:
        """The time between."""
        return max(self.now.at - self.before.at, 1e-3)

    def of(self, before: Mapping[str, float], now: Mapping[str, float], name: str) -> float:
        """How fast a count grew; 0 after its server began anew."""
        return max(now.get(name, 0) - before.get(name, 0), 0) / self.seconds

    def mean(self, seconds: str, count: str) -> float:
        """Milliseconds a time, of a histogram's sum and count."""
        counted = self.of(self.before.counts, self.now.counts, count)
        return 1000 * self.of(self.before.counts, self.now.counts, seconds) / counted if counted else 0.0

    def fastest(self, before: Mapping[str, float], now: Mapping[str, float]) -> list[tuple[str, float]]:
        """The counts that grew most, fastest first."""
        grown = [(name, rate) for name in now if (rate := self.of(before, now, name))]
        return sorted(grown, key=lambda pair: (-pair[1], pair[0]))[:SHOWN]

    def cpu(self, kind: str) -> float:
        """Milliseconds of processor time a second, of all processes of a kind."""
        old = self.before.memory.get(kind)
        new = self.now.memory[kind]
        return 1000 * max(new.seconds - old.seconds, 0) / self.seconds if old else 0.0

    def as_json(self) -> dict[str, Any]:
        """The rates and the newest look, for programs."""
        before, now = self.before, self.now
        rate = {name: self.of(before.counts, now.counts, name) for name in ("requests", "errors", "deliveries")}
        return {
            "seconds": self.seconds,
            "rates": rate
            | {
                "items": self.of(before.database, now.database, "items"),
                "transactions": self.of(before.database, now.database, "transactions"),
            },
            "pages_by_source": dict(self.fastest(before.sources, now.sources)),
            "routes": dict(self.fastest(before.routes, now.routes)),
            "processor_ms": {kind: self.cpu(kind) for kind in now.memory},
            "now": msgspec.to_builtins(now),
        }


# --- The page --------------------------------------------------------------------------------------------
def lines(rates: Rates, width: int) -> list[str]:
    """The page for a terminal of that width."""
    sections: Sequence[Callable[[Rates], Iterator[str]]] = (_traffic, _lags, _database_lines, _redis_lines, _memory)
    drawn = [cut(line, width) for section in sections for line in section(rates)]
    for name, why in rates.now.silent.items():
        drawn.append(cut(_("! %(name)s does not answer: %(why)s") % {"name": name, "why": why}, width))
    return drawn


def _traffic(rates: Rates) -> Iterator[str]:
    before, now = rates.before, rates.now

    def counted(name: str) -> float:
        return rates.of(before.counts, now.counts, name)

    yield _("Requests %(rate).1f/s, %(ms).1f ms each; errors %(errors).1f/s; published %(items).1f/s") % {
        "rate": counted("requests"),
        "ms": rates.mean("request_seconds", "requests"),
        "errors": counted("errors"),
        "items": rates.of(before.database, now.database, "items"),
    }
    pages = "  ".join(f"{clean(name)} {rate:.1f}" for name, rate in rates.fastest(before.sources, now.sources))
    yield _("Home pages by source, a second: %(pages)s") % {"pages": pages or "-"}
    routes = "  ".join(f"{clean(name)} {rate:.1f}" for name, rate in rates.fastest(before.routes, now.routes))
    yield _("Busiest routes, a second: %(routes)s") % {"routes": routes or "-"}


def _lags(rates: Rates) -> Iterator[str]:
    now = rates.now
    yield ""
    if "postgresql" not in now.silent:
        yield _("Deliveries: %(pending)d pending, the oldest %(oldest).0f s; %(parked)d parked") % {
            "pending": now.backlog.get("pending", 0),
            "oldest": max(now.backlog.get("oldest", 0), 0),
            "parked": now.backlog.get("parked", 0),
        }
    yield _("Delivered: %(rate).1f/s, %(ms).0f ms after publishing") % {
        "rate": rates.of(rates.before.counts, now.counts, "deliveries"),
        "ms": rates.mean("delivery_seconds", "deliveries"),
    }
    waiting = "  ".join(f"{name} {length}" for name, length in now.queues.items())
    sampled = now.gauges.get("sampled_seconds")
    yield _("Queue: %(waiting)s; workers looked %(ago)s; %(streams)d streams; replica lag %(lag).1f s") % {
        "waiting": waiting or "-",
        "ago": _("%(seconds)d s ago") % {"seconds": max(time.time() - sampled, 0)} if sampled else "-",
        "streams": now.gauges.get("stream_connections", 0),
        "lag": now.gauges.get("replica_lag_seconds", 0),
    }


def _database_lines(rates: Rates) -> Iterator[str]:
    now = rates.now
    yield ""
    if "postgresql" in now.silent:
        return
    yield _(
        "PostgreSQL: %(rate).1f transactions/s, longest %(longest).1f s; %(sessions)d sessions, %(active)d at work"
    ) % {
        "rate": rates.of(rates.before.database, now.database, "transactions"),
        **{name: now.database.get(name, 0) for name in ("sessions", "active", "longest")},
    }
    if locked := now.database.get("waiting"):
        yield "  " + (_("%(count)d wait for locks") % {"count": locked})
    if not now.statements:
        yield "  " + (_("no statement runs longer than %(ms)d ms") % {"ms": 1000 * SLOW_SECONDS})
    for each in now.statements:
        yield f"  {each.seconds:9.1f} s {each.calls:9,} x {each.ms:8.1f} ms  {each.query}"


def _redis_lines(rates: Rates) -> Iterator[str]:
    yield ""
    for role, each in rates.now.redis.items():
        old = rates.before.redis.get(role)
        yield _(
            "Redis %(role)s: %(memory).1f MB, %(rate).0f commands/s, %(clients)d clients, %(evicted).1f evicted/s"
        ) % {
            "role": role,
            "memory": each.memory / 2**20,
            "rate": max(each.commands - old.commands, 0) / rates.seconds if old else 0,
            "clients": each.clients,
            "evicted": max(each.evicted - old.evicted, 0) / rates.seconds if old else 0,
        }


def _memory(rates: Rates) -> Iterator[str]:
    used = rates.now.memory
    yield ""
    if not used:
        yield _("No process of the site runs on this machine that this user may look at.")
        return
    for kind, each in used.items():
        yield f"  {kind:<11} {each.processes:3} {each.pss / 2**20:8.1f} MB {rates.cpu(kind):8.1f} ms/s"
    total = sum(each.pss for each in used.values()) / 2**20
    spent = sum(rates.cpu(kind) for kind in used)
    count = sum(each.processes for each in used.values())
    yield _("All processes here: %(count)d, %(total).1f MB (PSS), %(spent).1f ms of processor time a second") % {
        "count": count,
        "total": total,
        "spent": spent,
    }


def cut(line: str, width: int) -> str:
    """The line, cut at the width of the terminal; Chinese takes two columns a character."""
    room = width
    for place, letter in enumerate(line):
        room -= 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if room < 0:
            return line[:place]
    return line
