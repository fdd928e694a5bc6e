"""Live sessions with workers that the test runs by hand."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from feedsite import celery
from live import actions, tasks
from live.models import LiveSession, State
from tests.support.factories import UserFactory

TASKS = {task.name: task.run for task in (tasks.apply, tasks.fan_out, tasks.materialise_replays)}


class Workers:
    """The messages that would be on their way to the workers."""

    def __init__(self) -> None:
        self.queue: list[tuple[str, tuple[Any, ...]]] = []

    def send_task(self, name: str, args: Iterable[Any], **options: Any) -> None:
        self.queue.append((name, tuple(args)))

    def work(self) -> None:
        """Run everything of live that is enqueued, and what that enqueues."""
        for _ in range(1_000):
            if not self.queue:
                return
            name, args = self.queue.pop(0)
            if name in TASKS:
                TASKS[name](*args)
        raise AssertionError("the queue does not empty")


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Workers:
    workers = Workers()
    monkeypatch.setattr(celery.app, "send_task", workers.send_task)
    return workers


def seen(**fields: Any) -> User:
    """A user whom reading does not raise to another level."""
    return UserFactory(last_seen_at=timezone.now(), level=3, **fields)


def session(host: User, state: State = State.UPCOMING, minutes: int = 60, title: str = "words") -> LiveSession:
    """A session of a host, brought to a state by the verbs; `minutes` from now it is planned."""
    now = timezone.now()
    made = actions.create(host=host, title=title, starts_at=now + timedelta(minutes=minutes), now=now)
    if state in (State.LIVE, State.REPLAY):
        made = actions.start(session=made, now=now)
    if state == State.REPLAY:
        made = actions.end(session=made, now=timezone.now())
    if state == State.CANCELLED:
        made = actions.cancel(session=made, now=now)
    return made


Make = Callable[..., LiveSession]
