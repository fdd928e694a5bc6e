"""`played_status`: shows the state of the played history."""

from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from seen import status
from seen.ring import NODES
from seen.state import NodeState, Run, Status

TIME = "%Y-%m-%d %H:%M"


class Command(BaseCommand):
    """Shows the state of the played history."""

    help = "Show the plays that wait, the merges and the filters. Exits with 1 if there are problems."

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the state; exit code 1 if there are problems."""
        found = status.collect(now=timezone.now())
        self.stdout.write("\n".join(_lines(found)))
        if found.problems:
            raise SystemExit(1)


def _lines(found: Status) -> Iterator[str]:
    yield f"Played history, {found.at:{TIME}} UTC"
    for problem in found.problems:
        yield f"PROBLEM {problem.name}: {problem.text}"
    yield from _ring(found)
    yield from _task_shards(found)
    yield from _merged(found)
    yield from _filters(found)
    if moving := found.migration:
        unread = f"; {moving.unread} of {moving.files} files not complete" if moving.unread else ""
        yield f"\nMigration: {moving.phase}; {moving.merged:,} users merged, {moving.left:,} left{unread}"


def _ring(found: Status) -> Iterator[str]:
    if not found.nodes:
        return
    yield f"\nRing ({NODES} nodes of an hour)\n  node  hour   state    users waiting"
    for node in found.nodes:
        state = node.state if node.users or node.state != NodeState.LEFT else ""
        yield f"  {node.number:4}  {node.hour:%H:%M}  {state:7}  {node.users:9,}"
    if found.server:
        log = "AOF" if found.server.is_logged else "no AOF"
        yield f"  Redis: {_size(found.server.memory)}, {log}, {'evicts' if found.server.evicts else 'evicts nothing'}"


def _task_shards(found: Status) -> Iterator[str]:
    shown = [one for one in found.task_shards if one.users or one.first or one.second]
    if not found.task_shards:
        return
    yield f"\nTask shards ({len(found.task_shards)}; shown if users wait or were merged within a day)"
    if not shown:
        yield "  none"
        return
    yield "  shard  current  merging     left  first pass                    second pass"
    for one in shown:
        runs = f"{_run(one.first):28}  {_run(one.second)}".rstrip()
        yield f"  {one.number:5}  {one.current:7,}  {one.merging:7,}  {one.left:7,}  {runs}"


def _run(run: Run | None) -> str:
    if run is None:
        return "-"
    return f"{run.started_at:%H:%M} {'FAILED' if run.error else f'{run.users:,} users, {run.seconds:.1f} s'}"


def _merged(found: Status) -> Iterator[str]:
    last = f"{found.last_merge:{TIME}}" if found.last_merge else "never"
    users, plays = (sum(getattr(hour, name) for hour in found.hours) for name in ("users", "plays"))
    yield f"\nMerged within a day: {users:,} users, {plays:,} plays; last merge: {last}"
    for hour in found.hours:
        if hour.users or hour.failures:
            failed = f"  {hour.failures} failed" if hour.failures else ""
            yield f"  {hour.hour:%H:%M}  {hour.users:9,} users  {hour.plays:11,} plays{failed}"
    for failure in found.failures:
        yield f"  {failure.at:%H:%M} node {failure.node}, task shard {failure.task_shard}: {failure.error}"


def _filters(found: Status) -> Iterator[str]:
    yield "\nFilters"
    for month in found.months:
        yield f"  {month.month}  {month.filters:11,}  {_size(month.size):>9}  {month.each:,} bytes each"
    if not found.months:
        yield "  none"
    if found.room:
        room = found.room
        yield f"  LMDB: {_size(room.used)} of {_size(room.most)}; {_size(room.free)} free on its disk"


def _size(size: int) -> str:
    """Bytes for people."""
    number, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if number < 1000:
            break
        number, unit = number / 1000, larger
    return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
