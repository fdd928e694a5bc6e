"""Looks at the configuration and at every server, and says what is wrong and what to do about it.

A check yields findings; what it raises is one too. No check changes the site or takes long: Redis and the broker get
`WAIT_SECONDS`, PostgreSQL `STATEMENT_SECONDS` a statement.
"""

import http.client
import math
import shutil
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Any
from urllib.parse import urlsplit

import grpc
import redis
from celery import current_app
from django.conf import settings
from django.core import checks
from django.db import ProgrammingError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models.functions import Coalesce
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from redis.crc import REDIS_CLUSTER_HASH_SLOTS

from accounts import policy
from discover import impressions
from mail.models import Letter, State
from media import store as media
from media.models import MediaFile
from media.store import PREFIXES
from media.sweeping import without_row
from moving.models import ArchiveImport
from operation import growth, inboxes
from operation.findings import ERROR, OK, WARNING, Finding, Findings, judge
from operation.graphs import GraphError
from operation.sampling import BACKLOG, last_observed, queue_lengths
from relations.models import CsvImport, Mute
from runtime import environment, traces
from runtime.cluster_address import names_cluster
from seen.lmdb_store import LmdbStore
from seen.store import store
from storage import replica
from storage.cluster import Cluster
from storage.connections import client_of, database_now, fetch, is_of_another_version
from storage.parking import PARKED

WAIT_SECONDS = 2.0
STATEMENT_SECONDS = 10.0
"""A frozen server holds up each check that asks it for so long; to look for old rows of large tables takes seconds."""
DURABLE = {
    "broker": "queued tasks are lost, until sweepers find them",
    "plays": "acknowledged plays are lost",
    "play store": "what users played in months is lost",
}
"""Servers that may forget nothing, and what is lost where they do."""
LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]", ".localhost", "testserver"})
GIB = 2**30
YOUNG = timedelta(minutes=3)
"""The time after a start in which beat and workers need not have written anything yet."""
MEDIA_LOOKED_AT = 500
"""Rows of media whose files are looked for, and files whose rows are asked for at once."""
MEDIA_LISTED = 1_000
"""Files of a prefix that are listed, of which there are 16."""
LATE = timedelta(minutes=15)
LATE_SEEN, LATE_NAMED = 1_000, 5
"""Mutes and imports that are late are counted, and named, up to here."""
MEDIA_SECONDS = 10.0
"""Seconds that looking for files may take, and listing them may go on to."""
LETTER_SECONDS = 900.0
"""Seconds for which a letter that is due may wait."""
DAY_SECONDS = 86_400
LEAST_POSTGRESQL = 15
WHY_REDIS = "GETEX and ZMSCORE (Redis 6.2), and listpacks for small inboxes (7.0)"
SESSIONS = """
    SELECT count(*), count(*) FILTER (WHERE xact_start < now() - interval '10 minutes')
    FROM pg_stat_activity WHERE backend_type = 'client backend'
"""


def examine(*, now: datetime, web: str, stream: str, grpc_place: str) -> list[Finding]:
    """Everything; `web`, `stream` and `grpc_place` (host:port) are where the processes listen."""
    looked: list[tuple[str, Callable[[], Findings]]] = [
        ("configuration", configuration),
        ("postgresql", postgresql),
        ("tables", growth.tables),
        ("old rows", growth.old_rows),
        *([("replica", replicas)] if replica.is_configured() else []),
        *((role, lambda role=role, url=url: redis_server(role, url)) for role, url in redis_roles().items()),
        *([("feeds cluster", feeds_cluster)] if names_cluster(settings.REDIS_URL) else []),
        *([("play store", play_store)] if settings.PLAYED_STORE_URL else []),
        ("impressions", impressions_fill),
        ("played store", played_store),
        ("disk", disk),
        ("old files", growth.old_files),
        ("media", media_files),
        ("traces", tracing),
        ("queues", queues),
        ("workers", workers),
        ("beat", lambda: beat(now)),
        ("mail", lambda: letters(now)),
        ("deliveries", lambda: deliveries(now)),
        ("relations", lambda: upkeep_of_relations(now)),
        ("moving", lambda: imports_of_archives(now)),
        ("policy", pushes),
        ("inboxes", lambda: need_of_inboxes(now)),
        ("web", lambda: process("web", web)),
        *([("stream", lambda: process("stream", stream))] if settings.STREAM else []),
        *([("grpc", lambda: grpc_process(grpc_place))] if grpc_place else []),
    ]
    return [finding for name, check in looked for finding in _safely(name, check)]


def _safely(name: str, check: Callable[[], Findings]) -> list[Finding]:
    found: list[Finding] = []
    try:
        found.extend(check())
    except ProgrammingError as error:
        if not is_of_another_version(error):
            raise
        said = str(error).strip().splitlines()[0]
        found.append(Finding(name, ERROR, f"the database is not of this version ({said})", "Run `manage.py migrate`."))
    except Exception as error:  # noqa: BLE001 (any error of a client library is a finding)
        said = (str(error).strip().splitlines() or [""])[0]
        found.append(
            Finding(name, ERROR, f"does not answer ({type(error).__name__}: {said})", "Start it, or mend its address.")
        )
    return found


# --- Configuration ---------------------------------------------------------------------------------------
def configuration() -> Findings:
    """Names of variables, secrets, hosts, HTTPS, proxies. Wrong values end the command before it looks."""
    public = sorted(set(settings.ALLOWED_HOSTS) - LOCAL)
    yield _names()
    yield from _secret_key()
    yield from _of_the_web(public)
    if public:
        yield from _deployment()


def _names() -> Finding:
    strange = [*(str(each) for each in environment.unknown()), *environment.renamed()]
    return judge(
        "settings",
        "; ".join(strange) if strange else "are all known",
        warning=bool(strange),
        todo="Mend the name, or unset it: docs/settings.md lists all variables.",
    )


def _secret_key() -> Findings:
    key = settings.SECRET_KEY
    weak = len(key) < 50 or len(set(key)) < 10 or key.startswith("django-insecure-")
    yield judge(
        "secret key",
        "is weak" if weak else "is long enough",
        error=weak,
        todo="Unset FEEDSITE_SECRET_KEY to have one made, or set 50 random characters; all users are signed out.",
    )
    path = settings.DATA_DIR / "secret_key"
    if path.exists():
        mode = stat.S_IMODE(path.stat().st_mode)
        yield judge("secret key file", f"has mode {mode:03o}", error=bool(mode & 0o077), todo=f"chmod 600 {path}")


def _of_the_web(public: list[str]) -> Findings:
    """How the site is reached: by which hosts, over HTTPS, behind which proxy."""
    yield judge(
        "hosts",
        ", ".join(settings.ALLOWED_HOSTS) or "none",
        warning="*" in public,
        todo="Name the hosts in FEEDSITE_ALLOWED_HOSTS: any other may be written into links.",
    )
    yield judge(
        "debug",
        "is on" if settings.DEBUG else "is off",
        error=settings.DEBUG,
        todo="Unset FEEDSITE_DEBUG: it shows code.",
    )
    insecure = bool(public) and not settings.HTTPS
    yield judge(
        "https",
        "is on" if settings.HTTPS else "is off",
        error=insecure,
        todo="Set FEEDSITE_HTTPS=1 behind a proxy that ends TLS: passwords and sessions are sent in the clear.",
    )
    yield judge(
        "proxy",
        "is believed" if settings.PROXY else "is not believed",
        error=settings.HTTPS and not settings.PROXY,
        todo="Unset FEEDSITE_PROXY or set it to 1: rates count the proxy's address for all.",
    )
    token = settings.METRICS_TOKEN
    yield judge(
        "metrics token",
        "is set" if token else "is not set",
        warning=bool(token) and len(token) < 16,
        todo="Set FEEDSITE_METRICS_TOKEN to at least 16 random characters.",
    )


def _deployment() -> Findings:
    """The findings of Django's own checks of a public site."""
    for message in checks.run_checks(include_deployment_checks=True):
        if not message.is_silenced():
            todo = message.hint or "See `manage.py check --deploy`."
            yield judge(message.id or "check", message.msg, warning=True, todo=todo)


# --- PostgreSQL ------------------------------------------------------------------------------------------
def postgresql() -> Findings:
    """Check PostgreSQL: version, settings, room for connections, indexes, migrations and clock."""
    number = int(fetch("SHOW server_version_num")[0][0])
    yield judge(
        "postgresql version",
        f"{number // 10000}.{number % 10000}",
        error=number < LEAST_POSTGRESQL * 10_000,
        warning=number < 180_000,
        todo=f"{LEAST_POSTGRESQL} is the least, and the site is tested on 18: upgrade the server.",
    )
    values = dict(fetch("SELECT name, setting FROM pg_settings"))
    yield from _of_postgresql(values)
    ((used, old),) = fetch(SESSIONS)
    allowed = int(values["max_connections"])
    yield judge(
        "postgresql connections",
        f"{used} of {allowed}",
        warning=used > 0.8 * allowed,
        todo="Raise max_connections, or run fewer threads and workers.",
    )
    yield _indexes()
    yield _migrations()
    yield judge(
        "postgresql transactions",
        f"{old} older than 10 minutes",
        warning=old > 0,
        todo="End them (pg_stat_activity says whose they are): they keep dead rows from being cleared.",
    )
    began = time.time()
    theirs = float(fetch("SELECT extract(epoch FROM clock_timestamp())::float8")[0][0])
    yield clock("postgresql clock", theirs, began, time.time())


def _of_postgresql(values: dict[str, str]) -> Findings:
    """Settings by which data is lost, and the server's memory."""
    for name, wanted, loses in (
        ("fsync", "on", "a crash may destroy the database"),
        ("full_page_writes", "on", "a crash may destroy the database"),
        ("synchronous_commit", "on", "a crash loses what was just published"),
        ("server_encoding", "UTF8", "not every text can be stored"),
    ):
        having = values[name]
        wrong = having not in (wanted, "remote_apply", "remote_write")  # these wait for a replica besides
        yield judge(f"postgresql {name}", having, error=wrong, todo=f"Set {name} = {wanted}: else {loses}.")
    buffers = int(values["shared_buffers"]) * 8192
    yield judge(
        "postgresql shared_buffers",
        f"{buffers // 2**20} MB",
        warning=buffers < 128 * 2**20,
        todo="Set shared_buffers to a quarter of the memory.",
    )


def _indexes() -> Finding:
    invalid = [row[0] for row in fetch("SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid")]
    return judge(
        "postgresql indexes",
        f"invalid: {', '.join(invalid)}" if invalid else "are valid",
        error=bool(invalid),
        todo=" ".join(f"REINDEX INDEX CONCURRENTLY {name};" for name in invalid),
    )


def _migrations() -> Finding:
    executor = MigrationExecutor(connection)
    missing = [
        f"{each.app_label}.{each.name}" for each, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())
    ]
    return judge(
        "migrations",
        f"{len(missing)} not applied: {', '.join(missing[:5])}" + (" …" if missing[5:] else "")
        if missing
        else "are applied",
        error=bool(missing),
        todo="Run `manage.py migrate`.",
    )


def replicas() -> Findings:
    """Check the replica. The primary serves without it, so nothing about it is an error."""
    try:
        found = replica.condition()
    except replica.ReplicaFailedError as error:
        said = f"does not answer ({(str(error).splitlines() or [''])[0]})"
        yield judge(
            "replica", said, warning=True, todo="Start it, or mend FEEDSITE_REPLICA_URL: the primary reads all."
        )
        return
    sound = found.is_replica and found.is_of_primary
    yield judge(
        "replica",
        "streams from the primary" if sound else "is no replica of the primary",
        warning=not sound,
        todo="Point FEEDSITE_REPLICA_URL to a hot standby of FEEDSITE_DATABASE_URL: the primary reads all.",
    )
    yield judge(
        "replica lag",
        "is unknown: it has replayed no commit since it started" if math.isinf(found.lag) else f"{found.lag:.1f} s",
        warning=found.lag > settings.REPLICA_LAG_SECONDS,
        todo="See pg_stat_replication on the primary, and what runs on the replica: until then the primary reads all.",
    )


def clock(name: str, theirs: float, began: float, ended: float) -> Finding:
    """How far a server's clock is from this machine's: at least so far, whenever in between it looked."""
    apart = max(began - theirs, theirs - ended, 0.0)
    return judge(
        name,
        f"{apart:.1f} s apart",
        error=apart > 60,
        warning=apart > 2,
        todo="Run NTP on both machines: ids, rates and sessions hang on the time.",
    )


# --- Redis -----------------------------------------------------------------------------------------------
def redis_roles() -> dict[str, str]:
    """The Redis servers by what they are for."""
    broker: str = settings.BROKER_URL
    if broker.startswith("redis+socket://"):
        broker = broker.replace("redis+socket://", "unix://", 1).replace("virtual_host=", "db=")
    roles = {"feeds": settings.REDIS_URL, "broker": broker, "plays": settings.PLAYED_URL}
    roles["cache"] = settings.CACHE_URL
    return {role: url for role, url in roles.items() if url.startswith(("redis://", "rediss://", "unix://"))}


def feeds_cluster() -> Findings:
    """The cluster as a whole, and each of its primaries."""
    client = client_of(settings.REDIS_URL, WAIT_SECONDS)
    assert isinstance(client, Cluster)  # noqa: S101 (its address says so)
    with closing(client):
        (slots,) = client.ask([("CLUSTER", "SLOTS")])
        shards = {(str(primary[0], "ascii"), primary[1]): len(replicas) for _, _, primary, *replicas in slots}
        covered = sum(last + 1 - first for first, last, *_ in slots)
        yield judge(
            "feeds slots",
            f"{covered} of {REDIS_CLUSTER_HASH_SLOTS} are served",
            error=covered < REDIS_CLUSTER_HASH_SLOTS,
            todo="Give the others to a node (valkey-cli --cluster fix): PostgreSQL serves the readers with keys there.",
        )
        alone = [f"{host}:{port}" for (host, port), replicas in shards.items() if not replicas]
        yield judge(
            "feeds replicas",
            f"{len(shards)} primaries, {sum(shards.values())} replicas"
            + (f"; none of {', '.join(alone)}" * bool(alone)),
            warning=bool(alone),
            todo="Add one to each primary (valkey-cli --cluster add-node --cluster-slave), or none takes over from it.",
        )
        urls = {f"{host}:{port}": client.address.url_of(host, port) for host, port in shards}
    for place, url in urls.items():
        for finding in redis_server("feeds", url):
            finding.name += f" of {place}"
            yield finding


def play_store() -> Findings:
    """The server of the played filters: Kvrocks, which keeps all on disk, or a Redis that is told to."""
    with client_of(settings.PLAYED_STORE_URL, WAIT_SECONDS) as client:
        info: dict[str, Any] = client.info()
    if "kvrocks_version" in info:
        yield _version("play store", info)
        return
    yield from redis_server("play store", settings.PLAYED_STORE_URL)


def redis_server(role: str, url: str) -> Findings:
    """Check a Redis server by its role: version, memory, persistence and eviction."""
    client = client_of(url, WAIT_SECONDS)
    with client:
        info: dict[str, Any] = client.info()
        yield _version(role, info)
        yield judge(
            f"{role} role",
            info["role"],
            error=info["role"] != "master",
            todo="Name the primary: a replica takes no writes.",
        )
        took = min(_timed(client.ping) for _ in range(5))
        yield judge(
            f"{role} latency",
            f"{1000 * took:.1f} ms",
            error=took > settings.REDIS_TIMEOUT_SECONDS,
            warning=took > 0.005,
            todo="Bring the server nearer, or find what keeps it busy (SLOWLOG GET).",
        )
        began = time.time()
        seconds, microseconds = client.time()
        yield clock(f"{role} clock", seconds + microseconds / 1e6, began, time.time())
        try:
            values = {str(name): str(value) for name, value in client.config_get("*").items()}
        except redis.ResponseError:
            yield judge(
                f"{role} settings", "cannot be read", warning=True, todo="Check them by hand: docs/operations.md."
            )
            return
    yield from _memory(role, info, values)
    if role == "feeds":
        yield from _of_feeds(values)
        if info.get("cluster_enabled"):
            yield _of_node(values)
    if role in DURABLE:
        yield from _durability(role, values)
    if role == "plays":
        yield _server_of_the_plays(url)


def _durability(role: str, values: dict[str, str]) -> Findings:
    """Whether a server that may forget nothing keeps all through a kill and a loss of power."""
    kept, fsync = values.get("appendonly") == "yes", values.get("appendfsync", "")
    yield judge(
        f"{role} appendonly",
        values.get("appendonly", ""),
        error=not kept and role != "broker",
        warning=not kept,
        todo=f"Set appendonly yes: when it is killed {DURABLE[role]}.",
    )
    wanted = "always" if role == "plays" else "everysec"
    yield judge(
        f"{role} appendfsync",
        fsync,
        warning=fsync not in (wanted, "always"),
        todo=f"Set appendfsync {wanted}: when the machine dies {DURABLE[role]}.",
    )


def _server_of_the_plays(url: str) -> Finding:
    shared = [other for other, theirs in redis_roles().items() if other != "plays" and _server(theirs) == _server(url)]
    return judge(
        "plays server",
        f"is the server of {' and '.join(shared)}" if shared else "is their own",
        warning=bool(shared),
        todo="Give the plays a server of their own (FEEDSITE_PLAYED_URL; docs/operations.md).",
    )


def _server(url: str) -> tuple[str | None, int | None, str]:
    """The server that an address names, without its database."""
    parts = urlsplit(url)
    return parts.hostname, parts.port, parts.path if parts.scheme == "unix" else ""


def _version(role: str, info: dict[str, Any]) -> Finding:
    if kvrocks := info.get("kvrocks_version"):  # which calls itself an old Redis besides
        return judge(f"{role} version", f"Kvrocks {kvrocks}")
    valkey = info.get("valkey_version")
    name, text, least = ("Valkey", valkey, (7, 2)) if valkey else ("Redis", info["redis_version"], (7, 0))
    having = tuple(int(part) for part in str(text).split(".")[:2])
    return judge(
        f"{role} version",
        f"{name} {text}",
        error=having < least,
        todo=f"Upgrade to {name} {least[0]}.{least[1]} or newer: the site needs {WHY_REDIS}.",
    )


def _memory(role: str, info: dict[str, Any], values: dict[str, str]) -> Findings:
    policy, allowed, used = (
        values.get("maxmemory-policy", ""),
        int(values.get("maxmemory", 0)),
        int(info["used_memory"]),
    )
    if role in DURABLE:
        yield judge(
            f"{role} maxmemory-policy",
            policy,
            error=policy != "noeviction",
            todo="Set maxmemory-policy noeviction: it may hold nothing that it may forget.",
        )
    elif role == "cache":
        yield judge(
            f"{role} maxmemory-policy",
            policy,
            warning=policy != "noeviction",
            todo="Name a server without eviction in FEEDSITE_CACHE_URL: clients may fill this one, and rates are lost.",
        )
    else:
        yield judge(
            f"{role} maxmemory-policy",
            policy,
            warning=policy != "allkeys-lru",
            todo="Set maxmemory-policy allkeys-lru: all that it holds may go, and what was used last should stay.",
        )
        yield judge(
            f"{role} maxmemory",
            f"{allowed // 2**20} MB" if allowed else "unlimited",
            warning=not allowed,
            todo="Set maxmemory below the machine's memory, so that it evicts before it is killed.",
        )
    full = bool(allowed) and used > 0.9 * allowed and policy == "noeviction"
    yield judge(
        f"{role} memory", f"{used // 2**20} MB used", error=full, todo="Raise maxmemory: it is about to refuse writes."
    )


def _of_feeds(values: dict[str, str]) -> Findings:
    entries = int(values.get("zset-max-listpack-entries") or values.get("zset-max-ziplist-entries") or 0)
    needed = settings.LEVEL_CAPS[2] + settings.WINDOW_SLACK
    yield judge(
        "feeds zset-max-listpack-entries",
        str(entries),
        warning=entries <= needed,
        todo="Set zset-max-listpack-entries 512: inboxes take three times the memory.",
    )
    saved = values.get("save", "") != "" or values.get("appendonly") == "yes"
    yield judge(
        "feeds persistence",
        "is on" if saved else "is off",
        warning=saved,
        todo='Set save "" and appendonly no: what it restores is not trusted, and only takes time.',
    )


def _of_node(values: dict[str, str]) -> Finding:
    whole = values.get("cluster-require-full-coverage") == "yes"
    return judge(
        "feeds cluster-require-full-coverage",
        "yes" if whole else "no",
        warning=whole,
        todo="Set it to no: else every node refuses while one is down, and all pages come from PostgreSQL.",
    )


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


# --- Impressions -----------------------------------------------------------------------------------------
def impressions_fill() -> Findings:
    """How full today's filters of what readers were shown are."""
    found = impressions.fill(database_now().date())
    fullest = max((each.impressions / each.capacity for each in found), default=0.0)
    yield judge(
        "impressions",
        f"{100 * fullest:.0f} % of today's capacity in the fullest shard",
        warning=fullest > 1,
        todo="Raise FEEDSITE_IMPRESSION_CAPACITY: further filters take the rest, and each claims more that is unseen.",
    )


# --- Disks -----------------------------------------------------------------------------------------------
def played_store() -> Findings:
    """Check the store of the month filters: size and room."""
    filters = store()
    months = filters.stats()
    count, size = sum(each.filters for each in months.values()), sum(each.size for each in months.values())
    yield judge("played store", f"{count:,} filters, {size // 2**20} MB")
    if isinstance(filters, LmdbStore):
        used, allowed = (filters.folder / "data.mdb").stat().st_size, settings.PLAYED_STORE_BYTES
        yield judge(
            "played store room",
            f"{used // 2**20} of {allowed // 2**20} MB",
            error=used > 0.9 * allowed,
            todo="Raise FEEDSITE_PLAYED_STORE_GB.",
        )


def disk() -> Findings:
    """Check the room on the disk of the data folder."""
    usage = shutil.disk_usage(settings.DATA_DIR)
    share = usage.free / usage.total
    yield judge(
        "disk",
        f"{usage.free / GIB:.1f} GB free ({100 * share:.0f} %) in {settings.DATA_DIR}",
        error=usage.free < GIB / 4 or share < 0.02,
        warning=usage.free < 2 * GIB or share < 0.1,
        todo="Make room: without it PostgreSQL stops.",
    )


# --- Traces ----------------------------------------------------------------------------------------------
def tracing() -> Findings:
    """Whether requests and tasks are traced, where they should be."""
    yield judge(
        "traces",
        "are sent" if traces.is_on() else "cannot be made" if settings.TRACES else "are off",
        warning=settings.TRACES and not traces.is_on(),
        todo=f"Install the extra ({traces.INSTALL}), or unset FEEDSITE_TRACES.",
    )


# --- Processes -------------------------------------------------------------------------------------------
def queues() -> Findings:
    """Check how many messages wait in Celery's queues."""
    lengths = queue_lengths()
    parked = lengths.pop(PARKED)
    yield judge(
        "parked messages",
        f"{parked:,} messages",
        warning=parked > 0,
        todo="Another version of the site wrote them: restart the workers that are older. They are kept for a week.",
    )
    for name, length in lengths.items():
        yield judge(
            f"queue {name}",
            f"{length:,} messages",
            warning=length > 10_000,
            todo="Start more workers, or see what keeps them (the log, `celery -A feedsite inspect active`).",
        )


def workers() -> Findings:
    """Check that workers answer."""
    names = sorted(ages())
    yield judge(
        "workers",
        ", ".join(names) or "none answers",
        error=not names,
        todo="Start `manage.py up`, or `manage.py program worker`: nothing is delivered; pages are exact, and slow.",
    )


def ages() -> dict[str, float]:
    """Workers that answer, and the seconds for which each has run."""
    stats = current_app.control.inspect(timeout=WAIT_SECONDS / 2).stats() or {}
    return {name: float(each["uptime"]) for name, each in stats.items()}


def beat(now: datetime) -> Findings:
    """Check that beat is at work: a worker notes the time every 20 seconds, when beat asks for it."""
    last = last_observed()
    late = last is None or last < now - YOUNG
    text = f"was last at work at {last:%Y-%m-%d %H:%M} UTC" if last else "was not at work within a day"
    youngest = max(ages().values(), default=math.inf) if late else 0.0
    young = late and youngest < YOUNG.total_seconds()
    if young:
        text += f"; the workers started {youngest:.0f} s ago"
    yield judge(
        "beat",
        text,
        error=late and not young,
        warning=young,
        todo="Look again in three minutes."
        if young
        else "Start `manage.py up`, or one `manage.py program beat`: nothing is swept, counted or purged.",
    )


def letters(now: datetime) -> Findings:
    """Letters that were given up, and how long others wait to be sent."""
    failed = Letter.objects.filter(state=State.FAILED).count()
    yield judge(
        "letters given up",
        f"{failed:,}",
        warning=failed > 0,
        todo="Mend the mail server by the errors in the admin's list of letters, and let them be tried again there.",
    )
    oldest = Letter.objects.filter(state=State.WAITING).order_by("next_at").first()
    waits = max((now - oldest.next_at).total_seconds(), 0.0) if oldest is not None else 0.0
    yield judge(
        "letters due",
        f"for {waits:,.0f} s" if oldest is not None else "none wait",
        warning=waits > LETTER_SECONDS,
        todo="See that a worker runs, and that FEEDSITE_EMAIL_URL names a server that answers.",
    )


def deliveries(now: datetime) -> Findings:
    """Check the deliveries: how many wait, for how long, and how many were given up."""
    pending, parked, oldest = fetch(BACKLOG, {"now": now})[0]
    yield judge(
        "deliveries",
        f"{pending:,} pending, the oldest for {max(oldest, 0):.0f} s",
        warning=oldest > 60,
        todo="See that workers run, and that the feeds server answers.",
    )
    yield judge(
        "parked deliveries", f"{parked:,}", warning=parked > 0, todo="Admin → Deliveries says why; retry them there."
    )


def upkeep_of_relations(now: datetime) -> Findings:
    """Check that mutes end and imports of lists come further."""
    over = Mute.objects.filter(expires_at__lt=now - LATE)[:LATE_SEEN].count()
    yield judge(
        "timed mutes",
        f"{over:,} stand though they are over" if over else "end in time",
        warning=over > 0,
        todo="See that beat and a worker run (relations.end_mutes).",
    )
    stuck = CsvImport.objects.filter(finished_at=None, created_at__lt=now - LATE)[:LATE_SEEN].count()
    yield judge(
        "imports of lists",
        f"{stuck:,} wait for long" if stuck else "none waits for long",
        warning=stuck > 0,
        todo="See that beat and a worker run (relations.sweep_imports).",
    )


def imports_of_archives(now: datetime) -> Findings:
    """Name the imports of archives that no worker has brought further for long."""
    running = ArchiveImport.objects.filter(finished_at=None).alias(moved_at=Coalesce("tried_at", "created_at"))
    stuck = list(running.filter(moved_at__lt=now - LATE).order_by("pk").values_list("pk", flat=True)[:LATE_SEEN])
    named = ", ".join(map(str, stuck[:LATE_NAMED])) + (" …" if stuck[LATE_NAMED:] else "")
    yield judge(
        "imports of archives",
        f"{len(stuck):,} have come no further for long (id {named})" if stuck else "come further",
        warning=bool(stuck),
        todo="See that beat and a worker run (moving.sweep), that it has the folder imports/, and its log.",
    )


def media_files() -> Findings:
    """Check media: each row has its files, and each old file a row; of the newest rows and of some of the files."""
    kept = media.store()
    until = time.monotonic() + MEDIA_SECONDS
    newest = MediaFile.objects.order_by("-pk")[:MEDIA_LOOKED_AT]
    looked = list(takewhile(lambda row: time.monotonic() < until, newest))
    lacking = [row.pk for row in looked if not all(map(kept.has, row.files))]
    yield judge(
        "media files",
        f"of the newest {len(looked):,}, {len(lacking)} have no file" + "".join(f" (id {one})" for one in lacking[:1]),
        error=bool(lacking),
        todo="Bring the files back from a backup of the data folder (media/files) or of the bucket, or delete what "
        "shows them.",
    )
    listed = (file for prefix in PREFIXES[::16] for file in islice(kept.listing(prefix), MEDIA_LISTED))
    in_time = takewhile(lambda file: time.monotonic() < until, listed)
    old = [file.name for file in in_time if file.age > 2 * DAY_SECONDS]
    strays = sum(
        len(without_row(old[start : start + MEDIA_LOOKED_AT])) for start in range(0, len(old), MEDIA_LOOKED_AT)
    )
    yield judge(
        "media rows",
        f"{strays} of {len(old):,} old files have no row",
        warning=strays > 0,
        todo="Look whether beat and workers run: the task media.sweep_files removes such files within a day.",
    )


def pushes() -> Findings:
    """The policy in force, and what the environment says, which counted when the site began."""
    found, configured = policy.current(), policy.configured()
    said = f"followers from level {found.push_level} on are pushed big-Vs' items"
    if found.inbox_from:
        said += f"; readers with fewer than {found.inbox_from:,} followees have no inbox"
    other = {name: value for name, value in configured._asdict().items() if value != getattr(found, name)}
    names = {"push_level": "FEEDSITE_BIG_V_PUSH_LEVEL", "inbox_from": "FEEDSITE_INBOX_FROM"}
    yield judge(
        "policy",
        said,
        warning=bool(other),
        todo=" and ".join(f"{names[name]} says {value}" for name, value in other.items())
        + ", which counts for a new site only: run manage.py policy "
        + " ".join(f"--{name.replace('_', '-')} {value}" for name, value in other.items())
        + ", or change the environment.",
    )
    yield judge(
        "windows",
        "are of another timeline of PostgreSQL" if found.generation is None else "are of PostgreSQL's timeline",
        warning=found.generation is None,
        todo="See that beat and a worker run (accounts.follow_timeline); until then pages come from PostgreSQL.",
    )


def need_of_inboxes(now: datetime) -> Findings:
    """The savings of another `inbox_from` here."""
    try:
        yield judge("inboxes", inboxes.advice(now=now))
    except GraphError as error:
        yield judge("inboxes", str(error))


def process(name: str, url: str) -> Findings:
    """Whether a process answers /healthz."""
    place = urlsplit(url)
    kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
    host = next((each.lstrip(".") for each in settings.ALLOWED_HOSTS if each != "*"), "localhost")
    session = kind(place.hostname or "", place.port, timeout=WAIT_SECONDS)
    try:
        session.request("GET", "/healthz", headers={"Host": host})
        status = session.getresponse().status
        said = f"{url} answers {status}"
    except (OSError, http.client.HTTPException) as error:
        status, said = 0, f"{url} does not answer ({type(error).__name__})"
    finally:
        session.close()
    yield judge(name, said, warning=status != 200, todo=f"Start it, or say where it listens (--{name} URL).")


def grpc_process(place: str) -> Findings:
    """Whether the standard health service says that it serves."""
    with grpc.insecure_channel(place) as channel:
        try:
            answer = HealthStub(channel).Check(HealthCheckRequest(), timeout=WAIT_SECONDS)
            serves, said = answer.status == answer.SERVING, HealthCheckResponse.ServingStatus.Name(answer.status)
        except grpc.RpcError as error:
            serves, said = False, f"no answer ({error.code().name})"
    yield judge(
        "grpc",
        f"{place}: {said}",
        warning=not serves,
        todo="Start it, say where it listens (--grpc HOST:PORT), or leave FEEDSITE_GRPC_PORT out where there is none.",
    )


def worst(findings: Sequence[Finding]) -> str:
    """The worst state of the findings."""
    states = {finding.state for finding in findings}
    return ERROR if ERROR in states else WARNING if WARNING in states else OK


def addresses() -> tuple[str, str, str]:
    """Where web, stream and gRPC listen under `up`; gRPC is empty where there is none."""
    port = settings.PORT
    stream = settings.STREAM_PORT or port + 1
    return (
        f"http://127.0.0.1:{port}",
        f"http://127.0.0.1:{stream}",
        f"{settings.GRPC_HOST}:{settings.GRPC_PORT}" if settings.GRPC_PORT else "",
    )
