import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import redis

from storage import connections
from storage.queue import QUEUES
from tests.support import servers
from tests.support.rabbits import Rabbit


def prompt_tasks(send: Callable[[str, tuple[Any, ...]], object]) -> Callable[..., bool]:
    """Replaces Celery's `send_task`, without delayed tasks. Those only inform open pages."""

    def send_task(name: str, args: Iterable[Any], *more: Any, countdown: float | None = None, **options: Any) -> bool:
        if countdown is None:
            send(name, tuple(args))
        return True

    return send_task


class Workers:
    """The messages on their way to workers.

    `tasks` maps names to functions. Others fail the test, or are dropped with `drops_others`.
    """

    def __init__(self, tasks: Mapping[str, Callable[..., Any]], *, drops_others: bool = False) -> None:
        self.tasks = tasks
        self.drops_others = drops_others
        self.queue: list[tuple[str, tuple[Any, ...]]] = []

    def send_task(self, name: str, args: Iterable[Any], *more: Any, **options: Any) -> bool:
        """Stands in for Celery's."""
        return prompt_tasks(lambda *task: self.queue.append(task))(name, args, **options)

    def work(self) -> None:
        """Run what is queued, and what that queues."""
        for _ in range(1_000):
            if not self.queue:
                return
            name, args = self.queue.pop(0)
            if name in self.tasks or not self.drops_others:
                self.tasks[name](*args)
        raise AssertionError("the queue does not empty")


def empty_queue() -> None:
    broker = servers.servers.broker
    if isinstance(broker, Rabbit):
        broker.empty()
    else:
        queue_server().delete(*QUEUES)


@functools.cache
def queue_server() -> redis.Redis:
    """The broker, if it is a Valkey."""
    return connections.client_of(f"unix://{servers.servers.broker.socket}?db=0", connections.TASK_TIMEOUT_SECONDS)
