"""The programs of the site: `up` supervises them all, systemd and compose start each by `manage.py program`."""

import fcntl
import os
from collections.abc import Iterator
from typing import NamedTuple

from runtime import shedding
from runtime.embedded import Home, lock_file, try_lock
from runtime.options import Options

NAMES = ("web", "stream", "grpc", "beat", "worker")
"""In the order in which they are stopped: no new requests, no new tasks, and then the tasks at work."""
LOCK = "program"
METRICS = "PROMETHEUS_MULTIPROC_DIR"
TOO_LARGE_SECONDS = 30
"""How often granian looks whether a process of web has outgrown its bound."""


def mark_program(home: Home) -> None:
    """Have this process hold a lock until it ends: it becomes a program that `up` does not supervise."""
    handle = os.open(home.run / f"{LOCK}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    os.set_inheritable(handle, True)  # the program takes this process's place
    fcntl.flock(handle, fcntl.LOCK_SH)


def programs_run(home: Home) -> bool:
    """Whether a program of this data folder runs that `up` does not supervise."""
    if not (home.run / f"{LOCK}.lock").exists():
        return False
    with lock_file(home, LOCK) as lock:
        return not try_lock(lock, fcntl.LOCK_EX)


class Place(NamedTuple):
    """Where the programs listen; no gRPC where its port is 0."""

    host: str
    port: int
    stream: int
    grpc: int


class Definition(NamedTuple):
    """A program as it is started. `command` are the words behind `python -m`."""

    name: str
    command: list[str]
    environ: dict[str, str]


def place(options: Options) -> Place:
    """Where they listen if nothing looks for free ports: the stream behind PORT."""
    return Place(options.host, options.port, options.stream_port or options.port + 1, options.grpc_port)


def programs(options: Options, at: Place, *, together: bool = False) -> Iterator[Definition]:
    """All of them, as this environment has them; `together` on one machine, where a worker has beat as its child.

    See docs/decisions.md: Programs load the site before they fork.
    See docs/decisions.md: Requests queue in the site, not in granian.
    """
    # A line for each task would bury everything else: unless asked, beat and worker tell of trouble only.
    level = options.log_level or "WARNING"
    # Celery warns root of pickles, which this site does not accept.
    warnings = [os.environ.get("PYTHONWARNINGS"), "ignore:You're running the worker with superuser privileges"]
    environ = os.environ | {
        METRICS: os.environ.get(METRICS) or str(options.metrics_folder),
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": ",".join(filter(None, warnings)),
        # glibc gives every thread an arena of its own, up to eight a core, and none is given back.
        "MALLOC_ARENA_MAX": os.environ.get("MALLOC_ARENA_MAX") or "2",
    }
    # Celery would run Django's checks in each program, which load every page; `prepare` and `migrate` have run them.
    quiet = environ | {"FEEDSITE_LOG_LEVEL": level, "CELERY_SKIP_CHECKS": "1"}
    granian = "runtime.preloaded granian"
    respawn = "--respawn-failed-workers --respawn-interval 0.5"

    web = f"{granian} --interface wsgi --no-ws --host {at.host} --port {at.port} --workers {options.web_processes}"
    web += f" --blocking-threads {shedding.DOORS} --blocking-threads-idle-timeout 30"
    web += f" --workers-max-rss {options.web_memory_mb} --rss-sample-interval {TOO_LARGE_SECONDS}"
    web += f" {respawn} --workers-kill-timeout 3 feedsite.wsgi:application"
    yield Definition("web", web.split(), environ)

    # Every open stream, and a few more that are told that it is full.
    stream = f"runtime.stream_server --host {at.host} --port {at.stream} --most {options.stream_cap + 100}"
    yield Definition("stream", [*stream.split(), "feedsite.asgi:application"], environ)

    if at.grpc:
        yield Definition("grpc", ["django", "played_grpc"], environ | {"FEEDSITE_GRPC_PORT": str(at.grpc)})

    celery = "celery -A feedsite --quiet"
    schedule = ["--schedule", str(options.servers.home.run / "beat")]
    if not together:
        yield Definition("beat", [*f"{celery} beat --loglevel {level} --pidfile=".split(), *schedule], quiet)

    worker = f"{celery} worker --loglevel {level} --without-gossip --without-mingle --without-heartbeat"
    worker += f" --concurrency {options.worker_processes} --max-memory-per-child {options.worker_memory_mb * 1024}"
    yield Definition("worker", [*worker.split(), *(["--beat", *schedule] if together else [])], quiet)
