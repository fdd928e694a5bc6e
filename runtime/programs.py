"""The site's programs. `up` runs all, systemd and compose each by `manage.py program`."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from runtime import shedding
from runtime.embedded import IS_LINUX, MALLOC_LIMITS, Home, lock_file, try_lock
from runtime.version import VERSION

if TYPE_CHECKING:
    from runtime.options import Options

NAMES = ("web", "stream", "grpc", "worker")
"""In stop order: first no new requests, then no new tasks, then running tasks end."""
LOCK = "program"
PROGRAM = "FEEDSITE_PROGRAM"
"""In the environment of each program: its name, version and data folder."""
METRICS = "PROMETHEUS_MULTIPROC_DIR"
PREPARED = "prepared"
"""The file in `run/` that says for which files and database `prepare` did its work."""
LOADER = "loader"
"""The process that loads the site once, and forks `FORKED` under `up`."""
FORKED = ("web", "stream", "worker")
"""gRPC's library must not be forked."""
LOADER_ROOM = 1000
"""Bytes for the command line and the variables of a forked program, which replace the loader's in /proc."""
TOO_LARGE_SECONDS = 30
"""How often granian checks the memory of web's processes."""


def mark_program(home: Home) -> None:
    """Mark that a program of the data folder runs: hold a lock until this process ends."""
    handle = os.open(home.run / f"{LOCK}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    os.set_inheritable(handle, True)  # the program replaces this process
    fcntl.flock(handle, fcntl.LOCK_SH)


def programs_run(home: Home) -> bool:
    """Whether a program runs without `up`."""
    if not (home.run / f"{LOCK}.lock").exists():
        return False
    with lock_file(home, LOCK) as lock:
        return not try_lock(lock, fcntl.LOCK_EX)


class ProgramAddress(NamedTuple):
    """Host and ports of the programs. gRPC's port may be 0."""

    host: str
    port: int
    stream: int
    grpc: int


class ProgramDefinition(NamedTuple):
    """How to start a program. `command` follows `python -m`."""

    name: str
    command: list[str]
    environ: dict[str, str]


def default_address(options: "Options") -> ProgramAddress:
    """The default host and ports. The stream's port follows PORT."""
    return ProgramAddress(options.host, options.port, options.stream_port or options.port + 1, options.grpc_port)


def programs(options: "Options", at: ProgramAddress) -> Iterator[ProgramDefinition]:
    """The definitions of all programs. Beat and the lane `outside` are children of the worker.

    See docs/decisions.md: Programs load the site before they fork.
    See docs/decisions.md: Requests queue in the site, not in granian.
    """
    # The worker logs only warnings by default. A line per task would bury everything else.
    level = options.log_level or "WARNING"
    environ = program_environ(options)
    # Celery would run Django's checks in each program and load every page. `prepare` and `migrate` have run them.

    def named(program: str) -> dict[str, str]:
        return {"PGAPPNAME": f"feedsite {program}", PROGRAM: f"{program} {VERSION} {options.data_dir}"}

    quiet = environ | {"FEEDSITE_LOG_LEVEL": level, "CELERY_SKIP_CHECKS": "1"}
    granian = "runtime.preloaded granian"
    respawn = "--respawn-failed-workers --respawn-interval 0.5"

    web = f"{granian} --interface wsgi --no-ws --host {at.host} --port {at.port} --workers {options.web_processes}"
    web += f" --blocking-threads {shedding.DOORS} --blocking-threads-idle-timeout 30"
    web += f" --workers-max-rss {options.web_memory_mb} --rss-sample-interval {TOO_LARGE_SECONDS}"
    web += f" {respawn} --workers-kill-timeout 3 feedsite.wsgi:application"
    yield ProgramDefinition("web", web.split(), environ | named("web"))

    # All streams, and some more that are told that it is full.
    stream = f"runtime.stream_server --host {at.host} --port {at.stream} --most {options.stream_cap + 100}"
    yield ProgramDefinition("stream", [*stream.split(), "feedsite.asgi:application"], environ | named("stream"))

    if at.grpc:
        grpc = environ | named("grpc") | {"FEEDSITE_GRPC_PORT": str(at.grpc)}
        yield ProgramDefinition("grpc", ["django", "played_grpc"], grpc)

    worker = (
        f"celery -A feedsite --quiet worker --loglevel {level} --without-gossip --without-mingle --without-heartbeat"
    )
    worker += f" --concurrency {options.worker_processes} --max-memory-per-child {options.worker_memory_mb * 1024}"
    beat = ["--beat", "--schedule", str(options.servers.home.run / "beat")]
    yield ProgramDefinition("worker", [*worker.split(), *beat], quiet | named("worker"))


def programs_of_up(options: "Options", at: ProgramAddress) -> list[ProgramDefinition]:
    """The definitions of all processes of `up`. Where forking is safe, the loader too."""
    return [*programs(options, at), *([loader(options)] if IS_LINUX else [])]


def loader(options: "Options") -> ProgramDefinition:
    """The definition of the loader."""
    room = " " * LOADER_ROOM
    return ProgramDefinition(LOADER, ["runtime.loader", room], program_environ(options) | {PROGRAM: room})


def program_environ(options: "Options") -> dict[str, str]:
    """The variables of all programs."""
    # Celery warns root of pickles, which this site does not accept.
    warnings = [os.environ.get("PYTHONWARNINGS"), "ignore:You're running the worker with superuser privileges"]
    given = MALLOC_LIMITS | os.environ
    return given | {
        METRICS: os.environ.get(METRICS) or str(options.metrics_folder),
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": ",".join(filter(None, warnings)),
        # numpy's library would start threads when it is imported. The site does no algebra.
        "OPENBLAS_NUM_THREADS": "1",
        # glibc gives each thread its own arena, up to eight per core, and never frees them.
        "MALLOC_ARENA_MAX": os.environ.get("MALLOC_ARENA_MAX") or "2",
    }


class RunningProgram(NamedTuple):
    """A program that runs on this machine."""

    name: str
    version: str
    pid: int
    since: datetime


def running_programs(data_dir: Path) -> list[RunningProgram]:
    """The programs of a data folder, without their child processes. Only the user that runs them sees them."""
    found, parents = [], {}
    now, up = datetime.now(UTC), float(Path("/proc/uptime").read_text().split()[0])
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            variables = (folder / "environ").read_bytes().split(b"\0")
            words = next((each for each in variables if each.startswith(f"{PROGRAM}=".encode())), b"").decode()
            name, version, place = words.partition("=")[2].split(" ", 2) if words else ("", "", "")
            if place == str(data_dir):
                numbers = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(numbers[1])
                age = timedelta(seconds=up - int(numbers[19]) / os.sysconf("SC_CLK_TCK"))
                found.append(RunningProgram(name, version, int(folder.name), now - age))
    return sorted(each for each in found if parents[each.pid] not in parents)
