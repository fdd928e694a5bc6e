from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from items.models import Item
from tests.support.admin import act, text
from tests.support.workers import Workers
from timeline.models import Backfill, Delivery

pytestmark = pytest.mark.django_db(transaction=True)

DELIVERIES = "/admin/timeline/delivery/"


def test_a_parked_delivery_is_found_and_retried(admin_client: Client, reader: Any, say: Any, workers: Workers) -> None:
    parked, pending = say(reader), say(reader)
    Delivery.objects.filter(pk=parked.pk).update(parked_at=timezone.now(), attempts=5, last_error="a poison item")
    workers.queue.clear()
    shown = text(admin_client.get(DELIVERIES, {"state": "parked"}))
    assert "a poison item" in shown
    assert str(parked.pk) in shown
    assert str(pending.pk) not in shown
    assert "Retrying 1 delivery." in text(act(admin_client, DELIVERIES, "retry", parked))
    assert workers.queue == [("timeline.fan_out", (parked.pk,))]
    workers.work()
    assert list(Delivery.objects.values_list("pk", flat=True)) == [pending.pk]
    assert Item.objects.count() == 2


def test_the_progress_of_a_demotion_is_shown(admin_client: Client, reader: Any) -> None:
    Backfill.objects.create(sender=reader, followers=200, done=50)
    shown = text(admin_client.get("/admin/timeline/backfill/"))
    assert '<progress value="50" max="200"' in shown
    assert "50 of 200" in shown


def test_a_demotion_is_called_by_the_users_name(admin_client: Client, reader: Any) -> None:
    one = Backfill.objects.create(sender=reader, followers=200, done=50)
    page = text(admin_client.get(f"/admin/timeline/backfill/{one.pk}/change/"))
    assert f"@{reader.username} is becoming ordinary: 50 of 200 followers done" in page


@pytest.mark.slow
@pytest.mark.parametrize("model", ["delivery", "backfill"])
def test_rows_of_the_workers_are_not_written_by_hand(admin_client: Client, model: str) -> None:
    assert admin_client.get(f"/admin/timeline/{model}/").status_code == 200
    assert admin_client.get(f"/admin/timeline/{model}/add/").status_code == 403
