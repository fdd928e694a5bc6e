from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from seen import status
from seen.status import NodeState, Status

TIME = "%Y-%m-%d %H:%M"


class Command(BaseCommand):
    """Shows the state of the played history."""

    help = "Show the plays that wait, the merges and the filters. Exits with 1 if there are problems."

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the state. Exit code 1 if there are problems."""
        found = status.collect(now=timezone.now())
        self.stdout.write("\n".join(_lines(found)))
        if found.problems:
            raise SystemExit(1)


def _lines(found: Status) -> Iterator[str]:
    yield f"Played history, {found.at:{TIME}} UTC"
    for problem in found.problems:
        yield f"PROBLEM {problem.name}: {problem.text}"
    if ring := found.ring:
        yield "Users waiting: " + ", ".join(f"{ring.waiting(state):,} {state}" for state in NodeState)
    yield from _merged(found)
    yield from _filters(found)
    if moving := found.migration:
        unread = f"; {moving.unread} of {moving.files} files not complete" if moving.unread else ""
        yield f"Migration: {moving.phase}; {moving.merged:,} users merged, {moving.left:,} left{unread}"


def _merged(found: Status) -> Iterator[str]:
    last = f"{found.last_merge:{TIME}}" if found.last_merge else "never"
    yield f"Merged within a day: {found.merged.users:,} users, {found.merged.plays:,} plays; last merge: {last}"
    for failure in found.failures:
        yield f"  {failure.at:%H:%M} node {failure.node}, task shard {failure.task_shard}: {failure.error}"


def _filters(found: Status) -> Iterator[str]:
    yield "Filters"
    for month in found.months:
        each = month.size // month.filters
        yield f"  {month.month}  {month.filters:11,}  {_size(month.size):>9}  {each:,} bytes each"
    if not found.months:
        yield "  none"


def _size(size: int) -> str:
    number, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if number < 1000:
            break
        number, unit = number / 1000, larger
    return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
