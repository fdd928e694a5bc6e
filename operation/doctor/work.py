import math
from datetime import datetime, timedelta
from typing import Any

from celery import current_app
from django.conf import settings

from accounts.mail.models import Letter, LetterState
from accounts.mail.sending import unsent
from media import resizing
from operation.doctor.findings import WAIT_SECONDS, Findings, clock, make_finding
from operation.gauges import BACKLOG, last_observed, oldest_waits, queue_lengths
from seen.models import MergeRun
from seen.status import NodeState, waiting_users
from storage.connections import database_now, fetch
from storage.queue import OUTSIDE, check_room

YOUNG = timedelta(minutes=3)
"""Beat may have done nothing yet for this long after a start."""
LATE_SECONDS = 600.0
"""How long work may wait. deploy/prometheus/alerts.yml has the same limit."""
LATELY = timedelta(hours=2)
"""Failed merges of plays are reported for this long."""


def broker() -> Findings:
    """Check that RabbitMQ takes messages."""
    with current_app.connection_for_write(connect_timeout=WAIT_SECONDS) as connection:
        check_room(connection)
    yield make_finding("broker", "takes messages")


def queues() -> Findings:
    """Check the length of Celery's queues."""
    for name, length in queue_lengths().items():
        yield make_finding(
            f"queue {name}",
            f"{length:,} messages",
            warning=length > 10_000,
            todo="Start more workers, or find what blocks them: docs/runbook.md, Backlog.",
        )


def workers() -> Findings:
    """Check that workers answer."""
    names = sorted(name for name, _ in uptimes())
    lanes = [name for name in names if name.startswith(f"{OUTSIDE}@")]
    workers = [name for name in names if name not in lanes]
    yield make_finding(
        "workers",
        ", ".join(workers) or "none answers",
        error=not workers,
        warning=len(set(workers)) < len(workers),
        todo="Two workers have one name. Give each machine a hostname of its own, or stop one of them."
        if workers
        else "Restart the workers, or start `manage.py up`. Pages are correct but slow, and nothing is sent. "
        "docs/runbook.md, Backlog.",
    )
    yield make_finding(
        f"lane {OUTSIDE}",
        ", ".join(lanes) or "none answers",
        warning=not lanes,
        todo="Restart the workers. Until then link previews, pushes to devices, imports of archives and "
        "uploaded videos wait. docs/runbook.md, Backlog.",
    )


def clocks() -> Findings:
    """Compare each worker's clock with PostgreSQL's."""
    began = database_now().timestamp()
    answers = sorted(ask("wall_clock"))
    ended = database_now().timestamp()
    for name, theirs in answers:
        if isinstance(theirs, float):  # a worker of an older version does not know the question
            yield clock(f"clock of {name}", theirs, began, ended)


def uptimes() -> list[tuple[str, float]]:
    """Workers that answer, and their uptime in seconds. Those of one hostname have one name."""
    return [(name, float(each["uptime"])) for name, each in ask("stats")]


def ask(question: str) -> list[tuple[str, Any]]:
    """The workers' names and their answers. Raises FullBrokerError: kombu would repeat the question without end."""
    with current_app.connection_for_write(connect_timeout=WAIT_SECONDS) as connection:
        check_room(connection)
        control = current_app.control
        answers = control.broadcast(question, reply=True, timeout=WAIT_SECONDS / 2, connection=connection) or []
    return [each for answer in answers for each in answer.items()]


def beat(now: datetime) -> Findings:
    """Check when beat last worked. A worker records the time every 20 seconds, when beat asks."""
    last = last_observed()
    late = last is None or abs(now - last) > YOUNG  # the future says nothing either
    text = f"last worked at {last:%Y-%m-%d %H:%M} UTC" if last else "has not worked for a day"
    youngest = max((seconds for _, seconds in uptimes()), default=math.inf) if late else 0.0
    young = late and youngest < YOUNG.total_seconds()
    if young:
        text += f"; the workers started {youngest:.0f} s ago"
    yield make_finding(
        "beat",
        text,
        error=late and not young,
        warning=young,
        todo="Run `doctor` again in three minutes."
        if young
        else "Start `manage.py up` or `manage.py program worker`. No periodic task runs: no cleaning up, no counting.",
    )


def waiting_work() -> Findings:
    """Check how long work with retries of its own waits."""
    for work, seconds in oldest_waits().items():
        text = f"the oldest waits for {timedelta(seconds=int(seconds))}" if seconds else "none is late"
        todo = "Check that beat and a worker run. The worker's log says why it fails: docs/runbook.md, Backlog."
        late = seconds > LATE_SECONDS
        if work == "letters":
            todo = "Try `manage.py sendtestemail ADDRESS`: docs/runbook.md, Mail does not go out."
            tried = Letter.objects.filter(state=LetterState.WAITING).exclude(error="").order_by("created_at").first()
            text += f". The mail server's answer: {tried.error}" if tried else ""
            late |= bool(seconds and tried)  # the mail server refuses all
        yield make_finding(work, text, warning=late, todo=todo)


def letters() -> Findings:
    """Check letters that will not be sent any more."""
    failed = unsent().count()
    yield make_finding(
        "letters given up",
        f"{failed:,}",
        warning=failed > 0,
        todo="Admin → Letters shows the mail server's answer. Fix the cause, then retry them there: "
        "docs/runbook.md, Mail does not go out.",
    )


def picture_sizes() -> Findings:
    """Say how many old pictures have no sizes yet, if any. The newest get theirs first."""
    newest = resizing.lacking_sizes().order_by("-pk").first()
    if newest is not None:
        left = resizing.count_lacking()
        more = " or more" if left == resizing.MOST_COUNTED else ""
        paused = "" if settings.MEDIA_SIZES_SECONDS else "; paused by FEEDSITE_MEDIA_SIZES_SECONDS=0"
        text = f"{left:,}{more} pictures are without, the newest from {newest.created_at:%Y-%m-%d}{paused}"
        yield make_finding("sizes of pictures", text)


def deliveries(now: datetime) -> Findings:
    """Check pending and parked deliveries."""
    pending, parked, oldest = fetch(BACKLOG, {"now": now})[0]
    yield make_finding(
        "deliveries",
        f"{pending:,} pending, the oldest waits for {max(oldest, 0):.0f} s",
        warning=oldest > 60,
        todo="Check that workers run and that the feeds server answers: docs/runbook.md, Backlog.",
    )
    yield make_finding(
        "parked deliveries",
        f"{parked:,}",
        warning=parked > 0,
        todo="Admin → Deliveries shows the error. Fix it, then retry there.",
    )


def merges_of_plays(now: datetime) -> Findings:
    """Check that plays are merged in time."""
    left = waiting_users(now=now)[NodeState.LEFT]
    failed = MergeRun.objects.filter(started_at__gt=now - LATELY).exclude(error="").count()
    yield make_finding(
        "merges of plays",
        f"{left:,} users wait for more than two hours, {failed:,} merges failed" if left or failed else "in time",
        warning=bool(left or failed),
        todo="Check that beat and workers run. Admin → Merges of plays shows the errors: docs/plays.md.",
    )
