import math
import time
from collections import Counter
from datetime import timedelta

from django.apps import apps
from django.conf import settings
from django.db import Error, OperationalError, connection, transaction
from django.db.migrations.recorder import MigrationRecorder

from accounts.about.site import read
from operation.doctor.findings import Finding, Findings, clock, make_finding
from operation.locks import LockHolder, holders, idle_holders
from operation.upgrade import unapplied
from runtime.older_database import upgrade_refusal
from storage import replica, site_key
from storage.connections import fetch
from storage.postgresql import is_disk_full

LEAST_POSTGRESQL = 15
SESSIONS = """
    SELECT (SELECT sum(numbackends)::int FROM pg_stat_database),
        count(*) FILTER (WHERE xact_start < now() - interval '10 minutes')
    FROM pg_stat_activity WHERE backend_type = 'client backend'
"""

IDS = "SELECT extract(epoch FROM feedsite_id_time(last_value) - clock_timestamp())::float8 FROM feedsite_last_id"
"""By how many seconds the next id may be ahead of the clock. Up to one is usual."""

WRITE = "SELECT count(*) FROM generate_series(1, 200000)"
"""Writes three megabytes if it may not use memory."""


def postgresql() -> Findings:
    """Check version, settings, connections, indexes, migrations, clock and ids."""
    number = int(fetch("SHOW server_version_num")[0][0])
    yield make_finding(
        "postgresql version",
        f"{number // 10000}.{number % 10000}",
        error=number < LEAST_POSTGRESQL * 10_000,
        todo=f"Upgrade the server to {LEAST_POSTGRESQL} or newer.",
    )
    values = dict(fetch("SELECT name, setting FROM pg_settings"))
    yield from _server_settings(values)
    ((used, old),) = fetch(SESSIONS)
    allowed = int(values["max_connections"])
    yield make_finding(
        "postgresql connections",
        f"{used} of {allowed}",
        warning=used > 0.8 * allowed,
        todo="Raise max_connections, or run fewer web threads and workers: docs/scaling.md, How many processes.",
    )
    yield _indexes()
    yield _migrations()
    yield _tables()
    yield make_finding(
        "postgresql transactions",
        f"{old} older than 10 minutes",
        warning=old > 0,
        todo="End them; pg_stat_activity lists them. Meanwhile PostgreSQL cannot remove dead rows. "
        "docs/runbook.md, Site slow.",
    )
    began = time.time()
    theirs = float(fetch("SELECT extract(epoch FROM clock_timestamp())::float8")[0][0])
    yield clock("postgresql clock", theirs, began, time.time())
    ((ahead,),) = fetch(IDS)
    is_ahead = ahead > 2
    yield make_finding(
        "ids",
        f"are {timedelta(seconds=round(ahead))} ahead of PostgreSQL's clock, which was set back"
        if is_ahead
        else "follow the clock",
        warning=is_ahead,
        todo="New posts have times ahead until the clock is there: docs/runbook.md, A clock was wrong.",
    )


def disk() -> Findings:
    """Check that PostgreSQL's disk takes writes, by a statement that needs a temporary file."""
    why = ""
    try:
        with transaction.atomic():
            fetch("SELECT set_config('work_mem', '64kB', true)")
            fetch(WRITE)
    except OperationalError as error:
        if not is_disk_full(error):
            raise
        why = str(error).splitlines()[0]
    yield make_finding(
        "postgresql disk",
        f"is full: {why}" if why else "takes writes",
        error=bool(why),
        todo="Free some space on it: docs/runbook.md, Disk full.",
    )


def locks() -> Findings:
    """Check that nobody waits for a lock. Asks only PostgreSQL's own tables, so it does not wait itself."""
    found = holders()
    named = {each.pid for each in found}
    idle = [each for each in idle_holders() if each.pid not in named]
    if not found and not idle:
        yield make_finding("postgresql locks", "nobody waits")
    for each in found:
        waiters = ", ".join(f"{count} {name}" for name, count in sorted(Counter(each.waiters).items()))
        tables = ", ".join(sorted(filter(None, each.tables or []))) or "rows or a lock without a table"
        yield make_finding(
            "postgresql locks",
            f"{_session(each)} has locks for which {waiters} wait, for "
            f"{timedelta(seconds=int(each.waited))} at most, at {tables}. Its statement: {each.statement}",
            error=True,
            todo=f"See what it is, then end it: {each.ending} (docs/runbook.md, A lock in PostgreSQL)",
        )
    for each in idle:
        yield make_finding(
            "postgresql locks",
            f"{_session(each)} has locks at {', '.join(filter(None, each.tables or []))}, and nobody waits now. "
            f"Its statement: {each.statement}",
            warning=True,
            todo="Changes of these rows or tables get 503 until it ends. See what it is, then end it: "
            f"{each.ending} (docs/runbook.md, A lock in PostgreSQL)",
        )


def _session(holder: LockHolder) -> str:
    whose = f"{holder.application or 'a program'} of {holder.role} from {holder.address}"
    if holder.age is None:
        whose += ", hidden: GRANT pg_read_all_stats TO this site's role shows more"
    else:
        whose += f", {holder.state}, since {timedelta(seconds=int(holder.age))}"
    return f"session {holder.pid} ({whose})"


def key_and_read_only_mode() -> Findings:
    """Check this machine's secret key, and read-only mode."""
    try:
        site_key.check_fingerprint(*fetch(site_key.QUESTION)[0])
        said = "is this machine's key"
    except site_key.WrongKeyError:
        said = "differs from this machine's key, so sessions from other machines fail here"
    yield make_finding("site key", said, error="differs" in said, todo=site_key.ADVICE)
    why = read().read_only_why
    yield make_finding(
        "read-only mode",
        f"is on: {why}" if why else "is off",
        warning=bool(why),
        todo="`manage.py readonly off` ends it: docs/runbook.md, Read-only mode.",
    )


def _server_settings(values: dict[str, str]) -> Findings:
    for name, wanted, loses in (
        ("fsync", "on", "A crash can destroy the database"),
        ("full_page_writes", "on", "A crash can destroy the database"),
        ("synchronous_commit", "on", "A crash loses the newest posts"),
        ("server_encoding", "UTF8", "Some texts cannot be stored"),
    ):
        having = values[name]
        wrong = having not in (wanted, "remote_apply", "remote_write")  # these also wait for a replica
        yield make_finding(f"postgresql {name}", having, error=wrong, todo=f"Set {name} = {wanted}. {loses}.")
    buffers = int(values["shared_buffers"]) * 8192
    yield make_finding(
        "postgresql shared_buffers",
        f"{buffers // 2**20} MB",
        warning=buffers < 128 * 2**20,
        todo="Set shared_buffers to a quarter of the machine's memory.",
    )


def _indexes() -> Finding:
    invalid = [row[0] for row in fetch("SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid")]
    return make_finding(
        "postgresql indexes",
        f"invalid: {', '.join(invalid)}" if invalid else "are valid",
        error=bool(invalid),
        todo=" ".join(f"REINDEX INDEX CONCURRENTLY {name};" for name in invalid),
    )


def _migrations() -> Finding:
    why = upgrade_refusal("database", MigrationRecorder(connection).applied_migrations())
    missing = [] if why else unapplied()
    names = ", ".join(missing[:5]) + (" …" if missing[5:] else "")
    return make_finding(
        "migrations",
        why or (f"{len(missing)} not applied: {names}" if missing else "are applied"),
        error=bool(why or missing),
        todo="docs/runbook.md, Upgrade." if why else "Run `manage.py migrate`.",
    )


def _tables() -> Finding:
    """Whether somebody dropped a table, or restored only a part."""
    existing = set(connection.introspection.table_names())
    models = apps.get_models(include_auto_created=True)
    missing = sorted({model._meta.db_table for model in models if model._meta.managed} - existing)
    return make_finding(
        "postgresql tables",
        f"missing: {', '.join(missing)}" if missing else "exist",
        error=bool(missing),
        todo="If migrations are missing too, run `manage.py migrate`. Otherwise somebody dropped the tables: "
        "docs/runbook.md, Restore.",
    )


def replicas() -> Findings:
    """Check the replica and its lag. Never an error, because the primary serves without it."""
    try:
        found = replica.condition()
    except Error as error:
        said = f"does not answer ({(str(error).splitlines() or [''])[0]})"
        yield make_finding(
            "replica",
            said,
            warning=True,
            todo="Start it, or correct FEEDSITE_REPLICA_URL. The primary serves all reads.",
        )
        return
    sound = found.is_replica and found.is_of_primary
    yield make_finding(
        "replica",
        "streams from the primary" if sound else "is not a replica of the primary",
        warning=not sound,
        todo="Set FEEDSITE_REPLICA_URL to a hot standby of FEEDSITE_DATABASE_URL. The primary serves all reads.",
    )
    yield make_finding(
        "replica lag",
        "is unknown: the replica has replayed no commit since it started"
        if math.isinf(found.lag)
        else f"{found.lag:.1f} s",
        warning=found.lag > settings.REPLICA_LAG_SECONDS,
        todo="Read pg_stat_replication on the primary, and end long queries on the replica. Until it catches up, the "
        "primary serves all reads.",
    )
