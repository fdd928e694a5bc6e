"""Messages that a worker cannot run, because another version of the site wrote them: they are kept until one can.

While two versions run side by side, a worker is sent tasks that it does not know, or arguments that its function does
not take. Celery drops the first and fails the second. Here both go to a queue of their own, `parked`, and every worker
sends from it what it knows itself: a worker of the other version does, a minute later at most. A message that expires
is dropped as ever: the next one says the same.

See docs/decisions.md: A message of another version is parked.
See docs/decisions.md: Code written by hand, and why it stays.
"""

import inspect
import logging
import time
from collections.abc import Mapping, Sequence
from functools import cache
from queue import Empty
from typing import Any

from celery import Celery, Task, current_app
from celery.worker.consumer import Consumer as CeleryConsumer

from runtime import traces

logger = logging.getLogger(__name__)

PARKED = "parked"
"""The queue, from which no worker takes but by `unpark`."""
AT_ONCE = 1_000
"""Messages that one `unpark` looks at."""
KEPT_SECONDS = 7 * 86_400.0
"""After which a message that no worker knew is dropped, with a line in the log."""
SINCE = "parked_at"
"""The header with the time (of the worker's clock) at which a message was parked first."""


class ParkingTask(Task[Any, Any]):
    """A task that parks a call whose arguments it does not take, instead of failing it."""

    abstract = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the task, or park the message that called it."""
        if self.request.called_directly:
            return self.run(*args, **kwargs)
        if takes(self.run, args, kwargs):
            with traces.task(str(self.name), self.request.get(traces.HEADER)):
                return self.run(*args, **kwargs)
        logger.warning("%s does not take %s %s: parked for another version", self.name, args, kwargs)
        park(self.app, self.name, args, kwargs)
        return None


class Consumer(CeleryConsumer):
    """A worker's consumer that parks the messages of tasks that it does not know."""

    def on_unknown_task(self, body: Any, message: Any, exc: Exception) -> None:
        """Park the message, or leave it to Celery where it expires or says no arguments."""
        try:
            name, (args, kwargs, _) = message.headers["task"], message.decode()
        except (KeyError, TypeError, ValueError):
            super().on_unknown_task(body, message, exc)
            return
        if message.headers.get("expires"):
            logger.info("%s is unknown and expires: dropped", name)
            message.ack()
            return
        try:
            park(self.app, name, args, kwargs)
        except Exception:
            logger.exception("%s is unknown and could not be parked", name)
            message.requeue()
        else:
            logger.warning("%s is unknown: parked for another version", name)
            message.ack()


def park(app: Celery, name: str, args: Sequence[Any], kwargs: dict[str, Any], *, since: float | None = None) -> None:
    """Send a call to the queue from which a worker that knows it takes it. Raises what the broker's client raises."""
    headers = {SINCE: time.time() if since is None else since}
    app.send_task(name, args, kwargs, queue=PARKED, headers=headers)


def unpark(*, app: Celery = current_app) -> int:
    """Send what this worker knows to the workers; how many messages. Raises what the broker's client raises.

    A message is taken off the queue when it has been sent: a kill in between sends it twice, and loses none.
    """
    sent = 0
    with app.connection_for_write() as connection, connection.SimpleQueue(PARKED) as queue:
        channel: Any = connection.default_channel
        waiting = channel.queue_declare(queue=PARKED, durable=True, auto_delete=False).message_count
        for _ in range(min(waiting, AT_ONCE)):
            try:
                message = queue.get_nowait()
            except Empty:
                break
            name, (args, kwargs, _) = message.headers["task"], message.decode()
            since = float(message.headers.get(SINCE) or time.time())
            if name in app.tasks and takes(app.tasks[name].run, args, kwargs):
                app.send_task(name, args, kwargs)
                sent += 1
            elif time.time() - since > KEPT_SECONDS:
                logger.error("%s %s %s: no worker knew it for a week; dropped", name, args, kwargs)
            else:
                park(app, name, args, kwargs, since=since)
            message.ack()
    return sent


@cache
def _signature(function: Any) -> inspect.Signature:
    return inspect.signature(function)


def takes(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether the function can be called with the arguments."""
    try:
        _signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True
