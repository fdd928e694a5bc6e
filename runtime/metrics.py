"""The site's metrics, and `/metrics` for Prometheus.

A metric is one line below, used like `discover_excluded.labels("seen").inc()`. Labels need few values, because each is
kept forever.

If PROMETHEUS_MULTIPROC_DIR is set (by `up`), processes count in files, and `/metrics` of any process adds them up.
Requests only have a histogram, because each observation writes to a file.
"""

import ipaddress
import logging
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port, validate_host
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    disable_created_metrics,
    multiprocess,
    values,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from runtime.counting import FOLDER, CountFile, Slots, is_readable

logger = logging.getLogger(__name__)


# --- Processes -------------------------------------------------------------------------------------------
def _share_between_processes() -> None:
    """Let the processes count in files. Called before the first metric is created."""
    try:
        Path(os.environ[FOLDER]).mkdir(mode=0o700, parents=True, exist_ok=True)
        slots.slot_number()
    except OSError as error:
        logger.warning("each process counts its own metrics, because they cannot be shared: %s", error)
        del os.environ[FOLDER]
        values.ValueClass = values.MutexValue
    else:
        values.MmapedDict = CountFile  # type: ignore[attr-defined]
        values.ValueClass = values.MultiProcessValue(slots.slot_number_or_pid)  # type: ignore[no-untyped-call]


slots = Slots()
if FOLDER in os.environ:
    _share_between_processes()

# --- The metrics -----------------------------------------------------------------------------------------
registry = CollectorRegistry(auto_describe=True)
disable_created_metrics()  # type: ignore[no-untyped-call]


def _counter(name: str, text: str, *labels: str, at_start: Sequence[str] = ()) -> Counter:
    """Create a counter. `at_start`: label values that exist from the start, so that Prometheus sees the first
    increase.
    """
    counter = Counter(name, text, labels, registry=registry)
    for value in at_start:
        counter.labels(value)
    return counter


def _seconds_histogram(name: str, text: str, *labels: str) -> Histogram:
    buckets = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
    return Histogram(name, text, labels, registry=registry, buckets=buckets)


def _latest_gauge(name: str, text: str, *labels: str) -> Gauge:
    return Gauge(name, text, labels, registry=registry, multiprocess_mode="mostrecent")


def _summed_gauge(name: str, text: str, *labels: str) -> Gauge:
    return Gauge(name, text, labels, registry=registry, multiprocess_mode="livesum")


discover_recalled = _counter("feedsite_discover_recalled_total", "Candidates that recall answered.", "source")
discover_excluded = _counter("feedsite_discover_excluded_total", "Candidates that were left out, and why.", "reason")
discover_recall_seconds = _seconds_histogram("feedsite_discover_recall_seconds", "What one recall took.", "source")
discover_pages = _counter("feedsite_discover_pages_total", "Pages that were issued.", "action", "source")
impressions_dropped = _counter(
    "feedsite_impressions_dropped_total", "Impressions that no filter of their day had room for."
)
impressions_fill = _latest_gauge(
    "feedsite_impressions_fill_ratio", "Impressions of today's fullest shard, over its capacity."
)
played_merges = _counter(
    "feedsite_played_merges_total", "Tasks that merged plays, by how they ended.", "result", at_start=("done", "failed")
)
played_merged_users = _counter("feedsite_played_merged_users_total", "Users whose plays were merged, once a merge.")
played_merged_plays = _counter("feedsite_played_merged_plays_total", "Plays that were merged.")
played_failed_users = _counter("feedsite_played_failed_users_total", "Users whose plays a merge could not merge.")
played_refused = _counter("feedsite_played_refused_total", "Batches of plays that found no room.")
played_merge_seconds = _counter("feedsite_played_merge_seconds_total", "What merging took.")
played_backlog = _latest_gauge("feedsite_played_backlog_users", "Users who wait, by what their node is at.", "state")
played_filters = _latest_gauge("feedsite_played_filters", "Filters of a month, by how many months ago it was.", "age")
played_filter_bytes = _latest_gauge("feedsite_played_filter_bytes", "Their bytes.", "age")
played_up = _latest_gauge("feedsite_played_up", "Whether a server of the played history answers.", "server")
opensearch_failures = _counter(
    "feedsite_opensearch_failures_total", "Calls that OpenSearch failed.", "operation", at_start=("search", "index")
)
grpc_seconds = _seconds_histogram("feedsite_grpc_seconds", "Time of one call over gRPC.", "method")
grpc_refused = _counter("feedsite_grpc_refused_total", "Calls over gRPC that were not served.", "method", "code")

SERVERS = (
    "postgresql",
    "replica",
    "feeds",
    "cache",
    "broker",
    "plays",
    "old plays",
    "filters",
    "opensearch",
)
"""Names of breakers (storage.breaker)."""

# Requests (web.requests) and their servers.
http_seconds = _seconds_histogram("feedsite_http_seconds", "What one request took.", "route", "method", "status")
http_failures = _counter(
    "feedsite_http_failures_total", "Requests that were answered 500 and above, not counting /readyz."
)
web_wait_seconds = _seconds_histogram(
    "feedsite_web_wait_seconds", "For how long a request waited for a thread, answered or shed by one."
)
web_shed = _counter("feedsite_web_shed_total", "Requests that had waited for too long, and were answered 503.")
replica_reads = _counter(
    "feedsite_replica_reads_total",
    "Reads that may lag: by the replica, or why by the primary.",
    "outcome",
    at_start=("replica", "own", "behind", "failed", "away", "foreign"),
)
stream_connections = _summed_gauge("feedsite_stream_connections", "Open streams.")
stream_failures = _counter(
    "feedsite_stream_failures_total",
    "Turns of the stream's tasks, and batches for a dialect, that failed, not counting outages.",
    "task",
    at_start=("listener", "heartbeat", "recheck", "replay", "pages", "apps"),
)
cache_refused = _counter(
    "feedsite_cache_refused_total", "Commands that the cache server answered with an error: it is full, for example."
)
breaker_trips = _counter(
    "feedsite_breaker_trips_total", "Servers that did not answer, once a second.", "server", at_start=SERVERS
)
breaker_open_until = _latest_gauge(
    "feedsite_breaker_open_until_seconds", "Unix time until which a process leaves the server alone.", "server"
)

# Timelines.
LAG = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)
delivery_seconds = Histogram(
    "feedsite_delivery_seconds",
    "From publishing an item until all windows have it.",
    registry=registry,
    buckets=LAG,
)
fanout_entries = _counter("feedsite_fanout_entries_total", "Windows of followers that were told of an item.")
deliveries_failed = _counter("feedsite_delivery_failures_total", "Attempts at a delivery that failed.")
deliveries_given_up = _counter("feedsite_delivery_parked_total", "Deliveries that were parked.")
home_pages = _counter("feedsite_home_pages_total", "Pages of the home timeline, by all that served them.", "sources")
home_misses = _counter(
    "feedsite_home_misses_total",
    "Home pages for which the windows did not suffice, and why.",
    "reason",
    at_start=("floor", "missing", "hidden", "dormant", "few", "outboxes", "redis"),
)
oracle_readers = _counter("feedsite_oracle_readers_total", "Readers whose windows were compared with PostgreSQL.")
oracle_differences = _counter(
    "feedsite_oracle_differences_total",
    "Windows that differed.",
    "kind",
    at_start=("floor", "order", "missing", "extra"),
)

# Gauges that a task samples (operation.gauges). /metrics queries no server.
deliveries_pending = _latest_gauge("feedsite_deliveries_pending", "Deliveries that are not complete.")
deliveries_parked = _latest_gauge("feedsite_deliveries_parked", "Deliveries that were given up.")
delivery_oldest = _latest_gauge("feedsite_delivery_oldest_seconds", "Age of the oldest delivery that is not complete.")
waiting = _latest_gauge("feedsite_waiting_seconds", "For how long the oldest row has waited.", "work")
queue_length = _latest_gauge("feedsite_queue_length", "Messages that wait for a worker.", "queue")
users = _latest_gauge("feedsite_users", "Users by level.", "level")
big_vs = _latest_gauge("feedsite_big_vs", "Users whose items are pulled by most followers.")
letters_failed = _latest_gauge("feedsite_letters_failed", "Letters that failed, or of the last day expired unsent.")
pictures_unsized = _latest_gauge("feedsite_pictures_unsized", "Old pictures without sizes, at most 100,000.")
lock_age = _latest_gauge(
    "feedsite_lock_seconds", "Age of the oldest transaction of PostgreSQL for whose locks others wait. 0: nobody waits."
)
sessions = _latest_gauge("feedsite_postgresql_sessions_ratio", "Sessions of PostgreSQL, over its max_connections.")
redis_memory = _latest_gauge(
    "feedsite_redis_memory_ratio", "Used memory over maxmemory. 0: there is no limit.", "server"
)
redis_evicted = _latest_gauge("feedsite_redis_evicted_keys", "Keys that the server evicted since its start.", "server")
certificate_ends = _latest_gauge(
    "feedsite_certificate_ends_seconds", "Unix time at which the site's certificate expires.", "site"
)
sampled_at = _latest_gauge("feedsite_sampled_seconds", "Unix time of the last look at the gauges.")
backup_made_at = _latest_gauge("feedsite_backup_made_seconds", "Unix time of the newest backup that the site keeps.")
replica_up = _latest_gauge("feedsite_replica_up", "Whether a replica answers and is one of the primary.", "server")
replica_lag_seconds = _latest_gauge("feedsite_replica_lag_seconds", "How far it is behind, where it answers.")
live_sessions = _latest_gauge("feedsite_live_sessions", "Live sessions.", "state")
live_lineups_behind = _latest_gauge(
    "feedsite_live_lineups_behind", "Hosts whose change the queue has not brought to Redis."
)
live_lineup_lag_seconds = _latest_gauge("feedsite_live_lineup_lag_seconds", "Age of the oldest of these changes.")

# Read when /metrics is requested, because it differs per machine.
disk_free = _latest_gauge("feedsite_disk_free_ratio", "Free share of the disk that has the data folder.")
memory_available = _latest_gauge(
    "feedsite_memory_available_ratio", "Share of the machine's memory that programs can get."
)


# --- /metrics --------------------------------------------------------------------------------------------
@never_cache
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """All metrics, for those that `may_read` allows."""
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_PLAIN_0_0_4)


def may_read(request: HttpRequest) -> bool:
    """Whether the request has FEEDSITE_METRICS_TOKEN, or comes directly from this machine.

    A proxy's headers give it away. A website in a browser here may point its own name to this machine, so without the
    token the Host must be a local address or a name of the site.
    """
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if settings.METRICS_TOKEN and scheme.lower() == "bearer":
        return constant_time_compare(token.strip(), settings.METRICS_TOKEN)
    if any(name in request.headers for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via")):
        return False
    host = split_domain_port(request.META.get("HTTP_HOST", "localhost"))[0]
    return _is_loopback(request.META.get("REMOTE_ADDR", "")) and (
        host == "localhost" or _is_loopback(host.strip("[]")) or validate_host(host, settings.ALLOWED_HOSTS)
    )


def _is_loopback(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return (getattr(parsed, "ipv4_mapped", None) or parsed).is_loopback


def exposition() -> bytes:
    """All metrics in Prometheus' text format."""
    return generate_latest(_all_processes())


def samples() -> Iterator[tuple[str, dict[str, str], float]]:
    """Names, labels and values of all metrics, of all processes."""
    for family in _all_processes().collect():
        for sample in family.samples:
            yield sample.name, dict(sample.labels), sample.value


def machine_memory() -> tuple[int, int]:
    """Bytes of memory that programs can get without swapping, and of all memory. The same number if it is unknown."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 1, 1
    kilobytes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    return kilobytes["MemAvailable"] << 10, kilobytes["MemTotal"] << 10


def _all_processes() -> CollectorRegistry:
    usage = shutil.disk_usage(settings.DATA_DIR)
    disk_free.set(usage.free / usage.total)
    available, total = machine_memory()
    memory_available.set(available / total)
    if FOLDER not in os.environ:
        return registry
    slots.clear()
    everybody = CollectorRegistry()
    everybody.register(_ReadableFilesCollector(None))  # type: ignore[no-untyped-call]
    return everybody


class _ReadableFilesCollector(multiprocess.MultiProcessCollector):
    """Adds up the files of all processes. Leaves out damaged ones, and empty ones, for which the disk had no space."""

    def collect(self) -> Iterable[Metric]:
        files = [str(path) for path in Path(self._path).glob("*.db") if path.stat().st_size and is_readable(path)]
        return self.merge(files)  # type: ignore[no-any-return,no-untyped-call]
