"""The Celery application. The delivery table is the queue of record, not the broker (storage/queue.py)."""

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

app = Celery("feedsite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


# See docs/decisions.md: Programs load the site before they fork.
@signals.celeryd_after_setup.connect
def share_memory(**kwargs: Any) -> None:
    """Hide the current objects from the garbage collector before the fork."""
    gc.collect()
    gc.freeze()


@signals.worker_ready.connect
def tell_of_start(sender: Any, **kwargs: Any) -> None:
    """Log that the worker has started, at any log level."""
    logging.getLogger("feedsite.starts").info("worker is at work, with %s processes", sender.controller.concurrency)


# --- Beat as a child of the worker -----------------------------------------------------------------------
class EndsWithBeat(bootsteps.StartStopStep):
    """Ends a worker when its beat has died, so that the supervisor restarts both: a new fork would inherit open
    connections.
    """

    requires = ("celery.worker.components:Timer", "celery.worker.components:Beat")

    def __init__(self, worker: Any, **kwargs: Any) -> None:
        self.timer: Any = None
        super().__init__(worker, **kwargs)

    def include_if(self, worker: Any) -> bool:
        """Whether the worker has a beat."""
        return worker.beat is not None

    def start(self, worker: Any) -> None:
        """Begin to check once a second."""
        self.timer = worker.timer.call_repeatedly(1.0, self.look, (worker,))

    def stop(self, worker: Any) -> None:
        """Stop checking: beat ends before the worker."""
        self.timer.cancel()

    def look(self, worker: Any) -> None:
        """End the worker after its tasks if beat is gone."""
        if not worker.beat.is_alive():
            state.should_stop = EX_FAILURE  # type: ignore[assignment] # the stubs only know None


app.steps["worker"].add(EndsWithBeat)


@signals.beat_init.connect
def bound_questions(**kwargs: Any) -> None:
    """Limit the time of beat's queries."""
    from storage import postgresql, quiet  # once Django is set up

    postgresql.bound(quiet.WAIT_SECONDS)


@signals.beat_embedded_init.connect
def end_with_worker(**kwargs: Any) -> None:
    """Let the kernel end beat if its worker is killed."""
    die_with_parent(signal.SIGTERM, parent=os.getppid())()
    name_process("beat")
