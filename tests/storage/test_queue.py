"""Tasks that beat sends exist, and failures of the broker reach no caller."""

import time
from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.utils import timezone

from feedsite.celery import app
from items.models import IdempotencyKey
from runtime.embedded import wait_for
from storage import connections
from storage.queue import enqueue
from tests.support.factories import ItemFactory
from tests.support.servers import Valkey, dead, frozen


def test_every_scheduled_task_exists() -> None:
    app.loader.import_default_modules()
    assert {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()} <= set(app.tasks)


@pytest.mark.slow
@pytest.mark.django_db
def test_periodic_tasks_run() -> None:
    app.loader.import_default_modules()
    old, new = timezone.now() - timedelta(days=2), timezone.now() + timedelta(days=2)
    Session.objects.bulk_create(
        Session(session_key=key, session_data="", expire_date=when) for key, when in (("old", old), ("new", new))
    )
    item = ItemFactory()
    for key in ("old", "new"):
        IdempotencyKey.objects.create(sender=item.sender, key=key, fingerprint="", item=item)
    IdempotencyKey.objects.filter(key="old").update(created_at=old)
    for entry in settings.CELERY_BEAT_SCHEDULE.values():
        app.tasks[entry["task"]]()
    assert list(Session.objects.values_list("session_key", flat=True)) == ["new"]
    assert list(IdempotencyKey.objects.values_list("key", flat=True)) == ["new"]


def test_a_dead_broker_is_told_and_not_raised(broker_server: Valkey) -> None:
    with dead(broker_server):
        assert enqueue("timeline.sweep") is False
        assert enqueue("timeline.sweep") is False, "not even asked again for a second"
    connections.broker_breaker.reset()
    assert enqueue("timeline.sweep") is True, "the connection is another"


@pytest.mark.slow
def test_a_frozen_broker_is_told_in_little_time(broker_server: Valkey) -> None:
    assert enqueue("timeline.sweep") is True
    with frozen(broker_server):
        began = time.monotonic()
        assert enqueue("timeline.sweep") is False
        assert time.monotonic() - began < 5
    connections.broker_breaker.reset()
    assert wait_for(lambda: enqueue("timeline.sweep"), 30)
