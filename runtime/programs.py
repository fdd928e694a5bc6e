"""The programs of the site: `up` supervises them all, systemd and compose start each by `manage.py program`."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from django.conf import settings

NAMES = ("web", "stream", "grpc", "beat", "worker")
"""In the order in which they are stopped: no new requests, no new tasks, and then the tasks at work."""
METRICS = "PROMETHEUS_MULTIPROC_DIR"


class Place(msgspec.Struct):
    """Where the programs listen; no gRPC where its port is 0."""

    host: str
    port: int
    stream: int
    grpc: int


class Program(msgspec.Struct):
    """`command` are the words behind `python -m`."""

    name: str
    command: list[str]
    environ: dict[str, str]


def place() -> Place:
    """Where they listen if nothing looks for free ports: the stream behind PORT, and gRPC behind the stream."""
    stream = settings.STREAM_PORT or settings.PORT + 1
    grpc = settings.PORT + 2 if settings.GRPC_PORT is None else settings.GRPC_PORT
    return Place(settings.HOST, settings.PORT, stream, grpc)


def metrics_folder() -> Path:
    """Where the programs count under `up` (runtime.metrics)."""
    folder: Path = settings.SERVERS.home.run / "metrics"
    return folder


def programs(at: Place) -> Iterator[Program]:
    """All of them, as this environment has them."""
    # A line for each task would bury everything else: unless asked, beat and worker tell of trouble only.
    level = settings.LOG_LEVEL or "WARNING"
    # Celery warns root of pickles, which this site does not accept.
    warnings = [os.environ.get("PYTHONWARNINGS"), "ignore:You're running the worker with superuser privileges"]
    environ = os.environ | {
        METRICS: os.environ.get(METRICS) or str(metrics_folder()),
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": ",".join(filter(None, warnings)),
    }
    quiet = environ | {"FEEDSITE_LOG_LEVEL": level}
    respawn = "--respawn-failed-workers --respawn-interval 0.5"

    web = f"granian --interface wsgi --no-ws --host {at.host} --port {at.port} --workers {settings.WEB_PROCESSES}"
    web += f" --blocking-threads {settings.WEB_THREADS} --blocking-threads-idle-timeout 600"
    web += f" {respawn} --workers-kill-timeout 3 feedsite.wsgi:application"
    yield Program("web", web.split(), environ)

    # Granian's limit of requests at once: every open stream, and a few more that are told that it is full. To stop it
    # waits for streams to end by themselves, which they do not.
    stream = f"granian --interface asgi --host {at.host} --port {at.stream} --workers 1 --log-level warning"
    stream += f" --backlog 2048 --backpressure {settings.STREAM_LIMIT + 100}"
    stream += f" {respawn} --workers-kill-timeout 1 feedsite.asgi:application"
    yield Program("stream", stream.split(), environ)

    if at.grpc:
        yield Program("grpc", ["django", "played_grpc"], environ | {"FEEDSITE_GRPC_PORT": str(at.grpc)})

    celery = "celery -A feedsite --quiet"
    beat = f"{celery} beat --loglevel {level} --pidfile= --schedule".split()
    yield Program("beat", [*beat, str(settings.SERVERS.home.run / "beat")], quiet)

    worker = f"{celery} worker --loglevel {level} --without-gossip --without-mingle"
    yield Program("worker", f"{worker} --concurrency {settings.WORKER_PROCESSES}".split(), quiet)
