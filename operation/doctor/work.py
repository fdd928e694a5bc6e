import math
from datetime import datetime, timedelta

from celery import current_app
from django.db.models.functions import Coalesce

from accounts.mail.models import Letter, State
from community.archives.models import ArchiveImport
from operation.doctor.findings import WAIT_SECONDS, Findings, judge
from operation.gauges import BACKLOG, last_observed, queue_lengths
from relations.models import CsvImport, Mute
from seen.models import MergeRun
from seen.status import NodeState, waiting
from storage.connections import fetch
from storage.queue import OUTSIDE

YOUNG = timedelta(minutes=3)
"""Beat may have done nothing yet for this long after a start."""
LATE = timedelta(minutes=15)
LATE_SEEN, LATE_NAMED = 1_000, 5
"""Late mutes and imports are counted, and named, up to these numbers."""
LATELY = timedelta(hours=2)
"""Failed merges of plays are reported for this long."""
LETTER_SECONDS = 900.0
"""Maximum seconds that a due letter may wait."""


def queues() -> Findings:
    """Check the length of Celery's queues."""
    for name, length in queue_lengths().items():
        yield judge(
            f"queue {name}",
            f"{length:,} messages",
            warning=length > 10_000,
            todo="Start more workers, or find what blocks them: docs/runbook.md, Backlog.",
        )


def workers() -> Findings:
    """Check that workers answer."""
    names = sorted(ages())
    lanes = [name for name in names if name.startswith(f"{OUTSIDE}@")]
    workers = [name for name in names if name not in lanes]
    yield judge(
        "workers",
        ", ".join(workers) or "none answers",
        error=not workers,
        todo="Start `manage.py up` or `manage.py program worker`. Pages are correct but slow, and nothing is sent. "
        "docs/runbook.md, Backlog.",
    )
    yield judge(
        f"lane {OUTSIDE}",
        ", ".join(lanes) or "none answers",
        warning=not lanes,
        todo="Restart the workers. Until then there are no link previews, pushes to devices and imports of archives. "
        "docs/runbook.md, Backlog.",
    )


def ages() -> dict[str, float]:
    """Workers that answer, and their uptime in seconds."""
    stats = current_app.control.inspect(timeout=WAIT_SECONDS / 2).stats() or {}
    return {name: float(each["uptime"]) for name, each in stats.items()}


def beat(now: datetime) -> Findings:
    """Check when beat last worked. A worker records the time every 20 seconds, when beat asks."""
    last = last_observed()
    late = last is None or abs(now - last) > YOUNG  # the future says nothing either
    text = f"last worked at {last:%Y-%m-%d %H:%M} UTC" if last else "has not worked for a day"
    youngest = max(ages().values(), default=math.inf) if late else 0.0
    young = late and youngest < YOUNG.total_seconds()
    if young:
        text += f"; the workers started {youngest:.0f} s ago"
    yield judge(
        "beat",
        text,
        error=late and not young,
        warning=young,
        todo="Run `doctor` again in three minutes."
        if young
        else "Start `manage.py up` or `manage.py program worker`. No periodic task runs: no cleaning up, no counting.",
    )


def letters(now: datetime) -> Findings:
    """Check letters given up, and how long others wait."""
    failed = Letter.objects.filter(state=State.FAILED).count()
    yield judge(
        "letters given up",
        f"{failed:,}",
        warning=failed > 0,
        todo="Admin → Letters shows the mail server's answer. Fix the cause, then retry them there: docs/runbook.md, "
        "Mail does not go out.",
    )
    oldest = Letter.objects.filter(state=State.WAITING).order_by("next_at").first()
    waits = max((now - oldest.next_at).total_seconds(), 0.0) if oldest is not None else 0.0
    yield judge(
        "letters due",
        f"the oldest waits for {waits:,.0f} s" if oldest is not None else "none are waiting",
        warning=waits > LETTER_SECONDS,
        todo="Check that a worker runs, then try `manage.py sendtestemail`: docs/runbook.md, Mail does not go out.",
    )


def deliveries(now: datetime) -> Findings:
    """Check pending and parked deliveries."""
    pending, parked, oldest = fetch(BACKLOG, {"now": now})[0]
    yield judge(
        "deliveries",
        f"{pending:,} pending, the oldest waits for {max(oldest, 0):.0f} s",
        warning=oldest > 60,
        todo="Check that workers run and that the feeds server answers: docs/runbook.md, Backlog.",
    )
    yield judge(
        "parked deliveries",
        f"{parked:,}",
        warning=parked > 0,
        todo="Admin → Deliveries shows the error. Fix it, then retry there.",
    )


def upkeep_of_relations(now: datetime) -> Findings:
    """Check that mutes end, and imports of lists progress."""
    over = Mute.objects.filter(expires_at__lt=now - LATE)[:LATE_SEEN].count()
    yield judge(
        "timed mutes",
        f"{over:,} expired, not yet removed" if over else "end in time",
        warning=over > 0,
        todo="Check that beat and a worker run: relations.end_mutes removes them.",
    )
    stuck = CsvImport.objects.filter(finished_at=None, created_at__lt=now - LATE)[:LATE_SEEN].count()
    yield judge(
        "imports of lists",
        f"{stuck:,} are stuck" if stuck else "none is stuck",
        warning=stuck > 0,
        todo="Check that beat and a worker run: relations.sweep_imports restarts them.",
    )


def imports_of_archives(now: datetime) -> Findings:
    """Report imports that make no progress."""
    running = ArchiveImport.objects.filter(finished_at=None).alias(moved_at=Coalesce("tried_at", "created_at"))
    stuck = list(running.filter(moved_at__lt=now - LATE).order_by("pk").values_list("pk", flat=True)[:LATE_SEEN])
    named = ", ".join(map(str, stuck[:LATE_NAMED])) + (" …" if stuck[LATE_NAMED:] else "")
    yield judge(
        "imports of archives",
        f"{len(stuck):,} are stuck (id {named})" if stuck else "none is stuck",
        warning=bool(stuck),
        todo="Check that beat and a worker run (moving.sweep) and that the worker can read imports/. Its log has more.",
    )


def merges_of_plays(now: datetime) -> Findings:
    """Check that plays are merged in time."""
    left = waiting(now=now)[NodeState.LEFT]
    failed = MergeRun.objects.filter(started_at__gt=now - LATELY).exclude(error="").count()
    yield judge(
        "merges of plays",
        f"{left:,} users wait for more than two hours, {failed:,} merges failed" if left or failed else "in time",
        warning=bool(left or failed),
        todo="Check that beat and workers run. Admin → Merges of plays shows the errors: docs/plays.md.",
    )
