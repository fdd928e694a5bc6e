"""The Celery application. The delivery table is the queue of record, not the broker (storage/queue.py)."""

import gc
import logging
import math
import os
import signal
import sys
from importlib import import_module
from typing import Any

from billiard.context import Process
from celery import Celery, bootsteps, signals
from celery.platforms import EX_FAILURE
from celery.worker import state
from django.conf import settings

from runtime.embedded import die_with_parent, name_process
from storage.queue import OUTSIDE

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "feedsite.settings")

app = Celery("feedsite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


# See docs/decisions.md: Programs load the site before they fork.
@signals.celeryd_init.connect
@signals.celeryd_after_setup.connect
def share_memory(**kwargs: Any) -> None:
    """Load what tasks need, and hide the current objects from the garbage collector before the forks."""
    import_module("feedsite.loading").load_tasks()  # once Django is set up
    import_module("storage.postgresql").set_process_timeout(math.inf)  # `up` forks it from a process with web's bound
    gc.freeze()


@signals.worker_ready.connect
def log_start(sender: Any, **kwargs: Any) -> None:
    """Log that the worker has started, at any log level."""
    name = OUTSIDE if is_outside(sender.hostname) else "worker"
    logging.getLogger("feedsite.starts").info("%s is at work, with %s processes", name, sender.controller.concurrency)


# --- The lane `outside` as a child of the worker ---------------------------------------------------------
# See docs/decisions.md: What strangers choose has a lane.
LANE_TASK_SECONDS = 60
"""Seconds after which a task of the lane is killed, unless it has a limit of its own."""
LANE_MEMORY_KB = 192 << 10
"""A process of the lane with more memory is replaced, between two tasks."""
LANE_NICE = 10
"""By how much the site's own work comes first where processors are short."""
lane: Process | None = None


def is_outside(hostname: str) -> bool:
    """Whether a worker's name is that of the lane."""
    return hostname.startswith(f"{OUTSIDE}@")


@signals.celeryd_init.connect
def fork_lane(sender: str, options: dict[str, Any], **kwargs: Any) -> None:
    """Start the lane's own worker, before this one has connections or an event loop."""
    global lane
    if not is_outside(sender):
        lane = Process(target=run_lane, args=(os.getpid(), sender, options))
        lane.start()


def run_lane(parent: int, name: str, options: dict[str, Any]) -> None:
    """Run the worker of the lane, beside the worker `name`, until it is stopped."""
    die_with_parent(signal.SIGTERM, parent=parent)()
    name_process(OUTSIDE)
    os.nice(LANE_NICE)
    worker = app.Worker(
        hostname=f"{OUTSIDE}@{name.partition('@')[2]}",
        **options
        | {
            "quiet": True,
            "queues": [OUTSIDE],
            "beat": False,
            "concurrency": settings.OUTSIDE_PROCESSES,
            "autoscale": (settings.OUTSIDE_PROCESSES, 1),  # one while it is quiet
            "max_memory_per_child": LANE_MEMORY_KB,
            "time_limit": LANE_TASK_SECONDS,
        },
    )
    worker.start()
    sys.exit(worker.exitcode)


# --- Children of the worker ------------------------------------------------------------------------------
class EndsWithChildren(bootsteps.StartStopStep):
    """Ends a worker when its beat or its lane has died, so that the supervisor restarts all: a new fork would inherit
    open connections.
    """

    requires = ("celery.worker.components:Timer", "celery.worker.components:Beat")

    def __init__(self, worker: Any, **kwargs: Any) -> None:
        self.timer: Any = None
        super().__init__(worker, **kwargs)

    def include_if(self, worker: Any) -> bool:
        """Whether the worker has children of its own."""
        return not is_outside(worker.hostname)

    def start(self, worker: Any) -> None:
        """Begin to check once a second."""
        self.timer = worker.timer.call_repeatedly(1.0, self.check_children, (worker,))

    def stop(self, worker: Any) -> None:
        """Stop checking, and end the lane after its tasks. Beat ends before the worker."""
        self.timer.cancel()
        if lane is not None:
            lane.terminate()

    def check_children(self, worker: Any) -> None:
        """End the worker after its tasks if a child is gone."""
        if not all(child.is_alive() for child in (worker.beat, lane) if child is not None):
            state.should_stop = EX_FAILURE  # type: ignore[assignment] # the stubs only know None


app.steps["worker"].add(EndsWithChildren)


class ForgetsLostConnections(bootsteps.StartStopStep):
    """Frees the half megabyte that each lost connection to the broker leaves behind."""

    requires = ("celery.worker.consumer.connection:Connection",)

    def start(self, consumer: Any) -> None:
        """Collect the garbage of the last one. Few objects die in this process, so Python would wait for days."""
        gc.collect()

    def stop(self, consumer: Any) -> None:
        """Take its callbacks off the event loop: kombu leaves them there since its pull request 2492."""
        on_tick = consumer.hub.on_tick
        on_tick -= {each for each in on_tick if each.__module__ == "kombu.transport.redis"}


app.steps["consumer"].add(ForgetsLostConnections)


@signals.beat_init.connect
def limit_beat_queries(**kwargs: Any) -> None:
    """Limit the time of beat's queries."""
    from storage import postgresql, quiet  # once Django is set up

    postgresql.set_process_timeout(quiet.WAIT_SECONDS)


@signals.beat_embedded_init.connect
def end_beat_with_worker(**kwargs: Any) -> None:
    """Let the kernel end beat if its worker is killed."""
    die_with_parent(signal.SIGTERM, parent=os.getppid())()
    name_process("beat")
