"""The Celery application. The broker is a hint: the delivery table is the queue of record (storage/queue.py)."""

import gc
import logging
import os
import signal
from typing import Any

from celery import Celery, bootsteps, signals
from celery.platforms import EX_FAILURE
from celery.worker import state

from runtime.embedded import die_with_parent, name_process

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "feedsite.settings")

app = Celery("feedsite", task_cls="runtime.traces:TracedTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


# See docs/decisions.md: Programs load the site before they fork.
@signals.celeryd_after_setup.connect
def share_memory(**kwargs: Any) -> None:
    """Before a worker forks beat and its processes, have the collector leave alone what they share."""
    gc.collect()
    gc.freeze()


@signals.worker_ready.connect
def tell_of_start(sender: Any, **kwargs: Any) -> None:
    """One line at the start, whatever the level of the others."""
    logging.getLogger("feedsite.starts").info("worker is at work, with %s processes", sender.controller.concurrency)


# --- Beat as a child of the worker -----------------------------------------------------------------------
class EndsWithBeat(bootsteps.StartStopStep):
    """Ends a worker whose beat has died, so that the supervisor starts both again.

    A second beat, forked from a worker at work, would hold the worker's open connections.

    See docs/decisions.md: Programs load the site before they fork.
    """

    requires = ("celery.worker.components:Timer", "celery.worker.components:Beat")

    def __init__(self, worker: Any, **kwargs: Any) -> None:
        self.timer: Any = None
        super().__init__(worker, **kwargs)

    def include_if(self, worker: Any) -> bool:
        """Only in a worker that has a beat."""
        return worker.beat is not None

    def start(self, worker: Any) -> None:
        """Look once a second."""
        self.timer = worker.timer.call_repeatedly(1.0, self.look, (worker,))

    def stop(self, worker: Any) -> None:
        """Look no more: beat ends before the worker does."""
        self.timer.cancel()

    def look(self, worker: Any) -> None:
        """End the worker, after its running tasks, when beat is gone."""
        if not worker.beat.is_alive():
            state.should_stop = EX_FAILURE  # type: ignore[assignment]  # the stubs know None alone


app.steps["worker"].add(EndsWithBeat)


@signals.beat_init.connect
def bound_questions(**kwargs: Any) -> None:
    """Bound what beat asks PostgreSQL, in beat's own process."""
    from storage import postgresql, quiet  # once Django is set up

    postgresql.bound(quiet.WAIT_SECONDS)


@signals.beat_embedded_init.connect
def end_with_worker(**kwargs: Any) -> None:
    """Have the kernel end beat when its worker is killed, and show which process it is."""
    die_with_parent(signal.SIGTERM, parent=os.getppid())()
    name_process("beat")
