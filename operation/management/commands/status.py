from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from django.core.management.base import BaseCommand

from operation.doctor.examination import STATEMENT_SECONDS
from operation.status import SiteStatus, status
from storage import postgresql


class Command(BaseCommand):
    """Prints what runs here."""

    help = "Print what runs on this machine, since when, its version, what waits, and the last backup."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, json: bool, **options: Any) -> None:
        """Print the status."""
        with postgresql.statement_timeout(STATEMENT_SECONDS):
            found = status()
        self.stdout.write(as_json(found) if json else "\n".join(text_lines(found)))


def as_json(found: SiteStatus) -> str:
    """The status as an object."""
    programs = [each._asdict() for each in found.programs]
    return msgspec.json.encode(msgspec.structs.asdict(found) | {"programs": programs}).decode()


def text_lines(found: SiteStatus) -> Iterator[str]:
    """The lines for people."""
    yield f"feedsite {found.version} of {found.url}"
    for each in found.programs:
        yield f"{each.name:>10}  since {moment(each.since)}, version {each.version}, process {each.pid}"
    if not found.programs:
        yield f"{'programs':>10}  none runs on this machine"
    facts = {
        "queues": found.queues and ", ".join(f"{name} {length:,}" for name, length in found.queues.items()),
        "deliveries": f"{found.deliveries:,} wait, the oldest for {found.lag_seconds:.0f} s"
        if found.deliveries is not None
        else None,
        "beat": found.beat_at and f"last worked at {moment(found.beat_at)}",
        "backup": found.backup_at and f"the last is of {moment(found.backup_at)}",
    }
    for name, fact in facts.items():
        yield f"{name:>10}  {fact or found.unknown.get(name) or 'none yet'}"


def moment(at: datetime) -> str:
    """A time for people."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
