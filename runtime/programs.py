"""The site's programs. `up` runs all, systemd and compose each by `manage.py program`."""

import fcntl
import os
from collections.abc import Iterator
from typing import NamedTuple

from runtime import shedding
from runtime.embedded import Home, lock_file, try_lock
from runtime.options import Options

NAMES = ("web", "stream", "grpc", "worker")
"""In stop order: first no new requests, then no new tasks, then running tasks end."""
LOCK = "program"
METRICS = "PROMETHEUS_MULTIPROC_DIR"
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


class Definition(NamedTuple):
    """How to start a program. `command` follows `python -m`."""

    name: str
    command: list[str]
    environ: dict[str, str]


def place(options: Options) -> ProgramAddress:
    """The default host and ports. The stream's port follows PORT."""
    return ProgramAddress(options.host, options.port, options.stream_port or options.port + 1, options.grpc_port)


def programs(options: Options, at: ProgramAddress) -> Iterator[Definition]:
    """The definitions of all programs. Beat and the lane `outside` are children of the worker.

    See docs/decisions.md: Programs load the site before they fork.
    See docs/decisions.md: Requests queue in the site, not in granian.
    """
    # The worker logs only warnings by default. A line per task would bury everything else.
    level = options.log_level or "WARNING"
    # Celery warns root of pickles, which this site does not accept.
    warnings = [os.environ.get("PYTHONWARNINGS"), "ignore:You're running the worker with superuser privileges"]
    environ = os.environ | {
        METRICS: os.environ.get(METRICS) or str(options.metrics_folder),
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": ",".join(filter(None, warnings)),
        # glibc gives each thread its own arena, up to eight per core, and never frees them.
        "MALLOC_ARENA_MAX": os.environ.get("MALLOC_ARENA_MAX") or "2",
    }
    # Celery would run Django's checks in each program and load every page. `prepare` and `migrate` have run them.
    quiet = environ | {"FEEDSITE_LOG_LEVEL": level, "CELERY_SKIP_CHECKS": "1"}
    granian = "runtime.preloaded granian"
    respawn = "--respawn-failed-workers --respawn-interval 0.5"

    web = f"{granian} --interface wsgi --no-ws --host {at.host} --port {at.port} --workers {options.web_processes}"
    web += f" --blocking-threads {shedding.DOORS} --blocking-threads-idle-timeout 30"
    web += f" --workers-max-rss {options.web_memory_mb} --rss-sample-interval {TOO_LARGE_SECONDS}"
    web += f" {respawn} --workers-kill-timeout 3 feedsite.wsgi:application"
    yield Definition("web", web.split(), environ | _named("web"))

    # All streams, and some more that are told that it is full.
    stream = f"runtime.stream_server --host {at.host} --port {at.stream} --most {options.stream_cap + 100}"
    yield Definition("stream", [*stream.split(), "feedsite.asgi:application"], environ | _named("stream"))

    if at.grpc:
        grpc = environ | _named("grpc") | {"FEEDSITE_GRPC_PORT": str(at.grpc)}
        yield Definition("grpc", ["django", "played_grpc"], grpc)

    worker = (
        f"celery -A feedsite --quiet worker --loglevel {level} --without-gossip --without-mingle --without-heartbeat"
    )
    worker += f" --concurrency {options.worker_processes} --max-memory-per-child {options.worker_memory_mb * 1024}"
    beat = ["--beat", "--schedule", str(options.servers.home.run / "beat")]
    yield Definition("worker", [*worker.split(), *beat], quiet | _named("worker"))


def _named(program: str) -> dict[str, str]:
    """The name that PostgreSQL shows for a program's sessions."""
    return {"PGAPPNAME": f"feedsite {program}"}
