"""Finds tables and folders that grow faster than they are swept (docs/scaling.md)."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import BigIntegerField, Model
from oauth2_provider.models import AccessToken, Grant

from accounts.joining_models import Application
from accounts.mail import sending
from accounts.mail.models import Letter
from accounts.models import AddressCheck, Deletion, Recount, ResetRequest, Session
from accounts.signing_in import recovery
from community.archives.models import ArchiveImport
from discover import issued_pages
from discover.models import IssuedPage, ItemChange
from items import idempotency
from items.models import CountChange, Filter, IdempotencyKey
from live.models import KeptSnapshot
from media import sweeping
from media.models import FileMove, MediaFile, OwnerRename, Use, VideoConversion
from moderation import hashes
from moderation.models import PictureAttempt
from notifications.models import Notification
from operation.doctor.findings import Findings, make_finding
from relations.models import CsvImport, FollowerCountChange
from seen import merging
from seen.models import MergeRun
from storage import claims, ids
from storage.connections import database_now, fetch

GRACE = timedelta(days=2)
"""How late a row may be deleted. Some sweeps run daily, and workers may have been down."""
COUNTED = 1_000
"""Late rows are counted up to this number."""
STAGED = 100_000
"""More staged changes than this mean that folding, which runs every few seconds, does not keep up."""
NOTABLE_DEAD = 100_000
"""Fewer dead rows do not slow any page."""
DEAD_SHARE = 0.25
"""Autovacuum starts at a fifth, so at a quarter it does not keep up."""
LARGE = 50_000_000
"""Tables from this size need their own scale factor: a fifth would be ten million dead rows."""
LARGE_FACTOR = 0.05
AGED, NEAR_THE_END = 400_000_000, 1_500_000_000
"""Transactions since the oldest freeze. PostgreSQL freezes from 200 million on, and stops at 2,000 million."""
TABLES_NAMED = 5
BACKUPS = 5
LOG_BYTES = 2**30

DEAD = f"""
    SELECT relname::text, n_dead_tup, n_live_tup FROM pg_stat_user_tables
    WHERE n_dead_tup >= %(least)s AND n_dead_tup > %(share)s * (n_live_tup + n_dead_tup)
    ORDER BY n_dead_tup DESC LIMIT {TABLES_NAMED}
"""
UNTUNED = f"""
    SELECT c.relname::text, c.reltuples::bigint, factor FROM pg_class c
    LEFT JOIN LATERAL (
        SELECT option_value FROM pg_options_to_table(c.reloptions)
        WHERE option_name = 'autovacuum_vacuum_scale_factor') own ON true
    CROSS JOIN LATERAL (
        SELECT coalesce(option_value, current_setting('autovacuum_vacuum_scale_factor'))::float8 AS factor) used
    WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
        AND c.reltuples >= %(large)s AND factor > %(most)s
    ORDER BY c.reltuples DESC LIMIT {TABLES_NAMED}
"""
AGE = "SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database()"


# --- Tables ----------------------------------------------------------------------------------------------
def tables(*, notable_dead: int = NOTABLE_DEAD, large: int = LARGE) -> Findings:
    """Report tables that autovacuum does not keep up with."""
    dead = fetch(DEAD, {"least": notable_dead, "share": DEAD_SHARE})
    yield make_finding(
        "dead rows",
        "; ".join(f"{name}: {gone:,} dead, {rows:,} live" for name, gone, rows in dead) or "autovacuum keeps up",
        warning=bool(dead),
        todo="Autovacuum is too slow. End old transactions, and set autovacuum_vacuum_cost_delay = 0. "
        "To clean up now: " + " ".join(f"VACUUM (ANALYZE) {name};" for name, *_ in dead),
    )
    untuned = fetch(UNTUNED, {"large": large, "most": LARGE_FACTOR})
    yield make_finding(
        "large tables",
        "; ".join(
            f"{name}: {rows:,} rows, autovacuum waits for {factor * rows:,.0f} dead ones"
            for name, rows, factor in untuned
        )
        or "are vacuumed in time",
        warning=bool(untuned),
        todo=" ".join(
            f"ALTER TABLE {name} SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = "
            "0.02, autovacuum_analyze_scale_factor = 0.01);"
            for name, *_ in untuned
        )
        + " See docs/scaling.md, When to act.",
    )
    ((age,),) = fetch(AGE)
    yield make_finding(
        "transaction ids",
        f"{age:,} used since the last freeze",
        error=age > NEAR_THE_END,
        warning=age > AGED,
        todo="End old transactions, then run `VACUUM (FREEZE);`. PostgreSQL stops before 2,000,000,000.",
    )


# --- Rows that a sweep should have taken --------------------------------------------------------------------
class RetainedRows(NamedTuple):
    """A table's rows that `task` deletes when `column` (a time or an id, storage.ids) is older than `life`.

    A queue is small and has no index on the time, so its first rows are checked.
    """

    model: type[Model]
    column: str
    life: timedelta
    task: str
    only: dict[str, Any] = {}
    is_queue: bool = False

    @property
    def name(self) -> str:
        """The table's name."""
        return self.model._meta.db_table


AT_ONCE = timedelta()


def retentions() -> Iterator[RetainedRows]:
    """Rows with a lifetime, except those that only a full scan would find."""
    yield RetainedRows(Session, "expire_date", AT_ONCE, "accounts.clear_sessions")
    yield RetainedRows(AddressCheck, "expires_at", AT_ONCE, "accounts.clear_sessions")
    yield RetainedRows(ResetRequest, "created_at", recovery.KEPT, "accounts.send_resets", is_queue=True)
    yield RetainedRows(
        Application, "created_at", timedelta(days=settings.APPLICATION_DAYS), "accounts.forget_applications"
    )
    yield RetainedRows(Deletion, "created_at", AT_ONCE, "accounts.sweep_deletions", is_queue=True)
    yield RetainedRows(AccessToken, "expires", AT_ONCE, "clientapi.forget_unused")
    yield RetainedRows(Grant, "expires", AT_ONCE, "clientapi.forget_unused")
    yield RetainedRows(IdempotencyKey, "created_at", idempotency.LIFE, "items.forget_idempotency_keys")
    yield RetainedRows(Filter, "expires_at", AT_ONCE, "items.forget_filters")
    yield RetainedRows(CsvImport, "finished_at", claims.KEPT, "relations.sweep_imports")
    yield RetainedRows(ArchiveImport, "finished_at", claims.KEPT, "moving.sweep")
    yield RetainedRows(IssuedPage, "issued_at", issued_pages.KEPT, "discover.forget_issued_pages")
    yield RetainedRows(KeptSnapshot, "expires_at", AT_ONCE, "live.forget_snapshots")
    yield RetainedRows(Letter, "created_at", sending.KEPT, "mail.sweep")
    yield RetainedRows(MediaFile, "created_at", sweeping.UNUSED, "media.sweep", {"use": Use.NONE})
    yield RetainedRows(MediaFile, "withdrawn_at", sweeping.WITHDRAWN, "media.sweep")
    yield RetainedRows(VideoConversion, "finished_at", sweeping.COUNTED, "media.sweep")
    yield RetainedRows(FileMove, "created_at", AT_ONCE, "media.sweep", is_queue=True)
    yield RetainedRows(Recount, "created_at", AT_ONCE, "accounts.sweep_recounts", is_queue=True)
    yield RetainedRows(OwnerRename, "created_at", AT_ONCE, "media.sweep", is_queue=True)
    yield RetainedRows(Notification, "position", settings.NOTIFICATION_LIFE, "notifications.forget_old")
    yield RetainedRows(PictureAttempt, "at", hashes.LIFE, "moderation.forget_attempts")
    yield RetainedRows(MergeRun, "started_at", merging.RUNS_KEPT, "seen.forget_runs")


STAGES: dict[type[Model], str] = {
    CountChange: "items.fold_counts",
    FollowerCountChange: "relations.fold_follower_counts",
    ItemChange: "discover.index",
}
"""Tables of staged changes without a time → the task that empties them."""


def old_rows(*, staged: int = STAGED) -> Findings:
    """Report overdue rows, and too many staged changes."""
    well = True
    for each in retentions():
        late = _count_overdue(each)
        well &= not late
        if late:
            said = f"{late:,} rows{' or more' * (late == COUNTED)} are at least {GRACE.days} days overdue for deletion"
            yield make_finding(f"rows of {each.name}", said, warning=True, todo=_advice(each.task))
    for model, task in STAGES.items():
        waiting = model._default_manager.all()[:staged].count()
        well &= waiting < staged
        if waiting >= staged:
            said = f"{waiting:,} or more are waiting"
            yield make_finding(f"rows of {model._meta.db_table}", said, warning=True, todo=_advice(task))
    if well:
        yield make_finding("old rows", "are deleted in time")


def _count_overdue(each: RetainedRows) -> int:
    before: Any = database_now() - each.life - GRACE
    if isinstance(each.model._meta.get_field(each.column), BigIntegerField):
        before = ids.compose(before, 0)
    rows = each.model._default_manager.all()
    if each.is_queue:
        return sum(at < before for at in rows.order_by("pk").values_list(each.column, flat=True)[:COUNTED])
    late = rows.filter(**{f"{each.column}__lt": before}, **each.only)
    return late.order_by()[:COUNTED].count()


def _advice(task: str) -> str:
    return f"Check that beat and a worker run. If so, the worker's log says why {task} fails: docs/runbook.md, Backlog."


# --- Files -------------------------------------------------------------------------------------------------
def old_files() -> Findings:
    """Check folders that only people clean up."""
    backups = _sizes(settings.DATA_DIR / "backups")
    yield make_finding(
        "old backups",
        f"{len(backups)} files, {sum(backups) // 2**20:,} MB in backups/",
        warning=len(backups) > BACKUPS,
        todo="Copy what you need to another machine and delete the rest. Each `upgrade` adds a file; none is deleted.",
    )
    logs = _sizes(settings.DATA_DIR / "log")
    yield make_finding(
        "log files",
        f"{sum(logs) // 2**20:,} MB in log/",
        warning=sum(logs) > LOG_BYTES,
        todo="Read what fills them. You can delete `*.log.1` at any time. `up` rotates files over 10 MB at its start.",
    )


def _sizes(folder: Path) -> list[int]:
    return [path.stat().st_size for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
