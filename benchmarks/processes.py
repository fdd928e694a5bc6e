"""The processes of a site, from /proc: kind, memory and processor time."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from runtime.supervisor import TAG

TICK = os.sysconf("SC_CLK_TCK")
KINDS = {
    "manage.py\0up": "supervisor",
    "feedsite.wsgi": "web",
    "feedsite.asgi": "stream",
    "played_grpc": "grpc",
    "\0worker\0": "worker",
    "\0beat\0": "beat",
    "\0outside\0": "outside",
    "runtime.loader": "loader",
    "runtime.keeper": "keeper",
    "valkey-server": "redis",
    "bin/postgres": "postgresql",
}
"""A part of the command line, and the kind. Others, such as PostgreSQL's sessions, have their parent's kind."""


class Process(NamedTuple):
    """A process of the site. `pss`: bytes, with shared pages in parts. `seconds`: with ended children."""

    pid: int
    kind: str
    pss: int
    seconds: float


class ProcessUsage(NamedTuple):
    """What all processes of one kind use."""

    processes: int
    pss: int
    seconds: float


def of_site(data_dir: Path) -> list[Process]:
    """The site's processes that this user may read."""
    parents = dict(_parents())
    found: dict[int, str] = {}
    for pid in parents:
        if kind := _own_kind(pid, data_dir):
            found[pid] = kind
    keeper = _keeper(data_dir)
    if keeper in parents:
        found[keeper] = "keeper"
    for pid in sorted(parents, key=lambda pid: (pid == keeper, pid)):
        kin = _kin(pid, parents, found)
        if pid not in found and kin:
            found[pid] = _named(pid) or found[kin]
    return [process for pid, kind in sorted(found.items()) if (process := _look(pid, kind))]


def usage(processes: list[Process]) -> dict[str, ProcessUsage]:
    """The sums of each kind, in the order of `KINDS`."""
    sums: dict[str, ProcessUsage] = {}
    for kind in KINDS.values():
        own = [each for each in processes if each.kind == kind]
        if own:
            sums[kind] = ProcessUsage(len(own), sum(each.pss for each in own), sum(each.seconds for each in own))
    return sums


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            yield int(entry.name), int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue


def _own_kind(pid: int, data_dir: Path) -> str:
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # it has ended, or is another user's
        return ""
    folder = os.fsencode(data_dir)
    if TAG.encode() + b"=" + folder in environ or b"FEEDSITE_DATA_DIR=" + folder in environ:
        return _named(pid)
    return ""


def _named(pid: int) -> str:
    try:
        name = Path(f"/proc/{pid}/comm").read_text().strip()
        if name in ("beat", "outside"):  # children of the worker
            return name
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
    return next((kind for part, kind in KINDS.items() if part in command), "")


def _keeper(data_dir: Path) -> int:
    try:
        return int(json.loads((data_dir / "run" / "keeper.lock").read_text())["pid"])
    except (OSError, ValueError, KeyError):
        return 0


def _kin(pid: int, parents: dict[int, int], found: dict[int, str]) -> int:
    above = parents[pid]
    while above in parents and above not in found:
        above = parents[above]
    return above if above in found else 0


def _look(pid: int, kind: str) -> Process | None:
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    pss = next((int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")), 0)
    return Process(pid, kind, pss * 1024, sum(map(int, fields[11:15])) / TICK)
