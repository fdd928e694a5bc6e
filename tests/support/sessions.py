from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from feedsite import celery
from live import actions, lineup, replays
from live.models import LiveSession, State
from tests.support.factories import UserFactory
from tests.support.workers import Workers

TASKS = {task.name: task.run for task in (lineup.apply, replays.fan_out, replays.materialise)}


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Workers:
    workers = Workers(TASKS, drops_others=True)
    monkeypatch.setattr(celery.app, "send_task", workers.send_task)
    return workers


def seen(**fields: Any) -> User:
    """A user whose level does not rise by reading."""
    return UserFactory(last_seen_at=timezone.now(), level=3, **fields)


def session(host: User, state: State = State.UPCOMING, minutes: int = 60, title: str = "words") -> LiveSession:
    """Brought to a state by actions, planned in `minutes`."""
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
