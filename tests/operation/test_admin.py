"""The dashboard, by what it shows."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from items import actions as items
from operation.models import Sample
from relations import actions as relations
from tests.support.admin import text
from tests.support.factories import ItemFactory, UserFactory
from timeline.models import Delivery

pytestmark = pytest.mark.django_db

PAGE = "/admin/operation/sample/"


def sample(minutes: int, **figures: Any) -> None:
    at = timezone.now().replace(second=0, microsecond=0) - timedelta(minutes=minutes)
    Sample.objects.create(at=at, figures=figures)


def figures(step: int) -> dict[str, Any]:
    return {
        "pending": 1234,
        "parked": 0,
        "oldest": 75,
        "queues": {"celery": 7},
        "entries": 600 * step,
        "requests": 60 * step,
        "errors": 6 * step,
        "readers": 20 * step,
        "differences": {"missing": step},
        "pages": {"inbox": 6 * step, "inbox,pending": 3 * step, "sql": step},
        "lag": {"0.05": 9.0 * step, "0.1": 10.0 * step, "+Inf": 10.0 * step},
        "levels": {"0": 3, "3": 1},
        "big_vs": 2,
    }


@pytest.mark.slow
def test_samples_are_shown(admin_client: Client) -> None:
    for step in range(4):
        sample(3 - step, **figures(step))
    shown = text(admin_client.get(PAGE))
    for words in ("1,234", "75 s", "90 %", "28 ms", "95 ms", "of 60 readers", "Users by level", "75 %"):
        assert words in shown, words
    assert shown.count("<svg") >= 6
    assert "line-4" in shown
    assert 'style="' not in shown
    assert "Nothing was sampled" not in shown
    assert 'aria-current="true">1 hour<' in text(admin_client.get(PAGE, {"hours": "1"}))
    assert 'aria-current="true">6 hours<' in text(admin_client.get(PAGE, {"hours": "7"}))


@pytest.mark.slow
def test_nothing_and_one_sample_are_pages_too(admin_client: Client) -> None:
    assert "Nothing was sampled in this time" in text(admin_client.get(PAGE))
    sample(10)
    assert "Nothing was sampled since" in text(admin_client.get(PAGE))
    sample(0)
    assert "Nothing happened in this time" in text(admin_client.get(PAGE))


def test_parked_deliveries_lead_to_where_they_are_retried(admin_client: Client) -> None:
    item = ItemFactory()
    Delivery.objects.create(item=item, sender=item.sender, parked_at=timezone.now())
    assert "1 delivery was given up" in text(admin_client.get(PAGE))


def test_in_chinese(admin_client: Client) -> None:
    sample(1, **figures(1))
    sample(0, **figures(2))
    shown = text(admin_client.get(PAGE, HTTP_ACCEPT_LANGUAGE="zh-CN"))
    for words in ("积压的投递", "收件箱", "毫秒", "6 小时"):
        assert words in shown, words


@pytest.mark.slow
def test_only_staff_who_may_view_it(client: Client) -> None:
    staff = UserFactory(is_staff=True)
    client.force_login(staff)
    assert client.get(PAGE).status_code == 403
    staff.user_permissions.add(Permission.objects.get(codename="view_sample"))
    assert client.get(PAGE).status_code == 200
    assert client.get(f"{PAGE}add/").status_code == 403
    client.force_login(UserFactory())
    assert client.get(PAGE).status_code == 302


# --- A reader's home -------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_home_is_explained_from_the_page_of_the_user(admin_client: Client) -> None:
    """Why an item is not shown, what would serve the next page, and every window."""
    reader, friend = UserFactory.create(username="reader"), UserFactory.create(username="friend")
    relations.follow(follower=reader, followee=friend)
    item = items.publish(sender=friend, content={"text": "a word"})
    address = f"/admin/accounts/user/{reader.pk}/home/"
    assert f'href="{address}"' in text(admin_client.get(f"/admin/accounts/user/{reader.pk}/change/"))
    shown = text(admin_client.get(address))
    assert "1 item of followed senders is not delivered to all yet" in shown
    assert "follows no big-V" in shown
    assert "@reader sees item" in text(admin_client.get(address, {"item": item.pk}))
    relations.mute(muter=reader, muted=friend)
    shown = text(admin_client.get(address, {"item": item.pk}))
    assert f"@reader does not see item {item.pk} at home." in shown
    assert "<li>The reader mutes its sender.</li>" in shown
    assert "There is no such item." in text(admin_client.get(address, {"item": "5"}))
    for wrong in ("x", "-1", "9" * 500, "1\x00", "<b>"):
        shown = text(admin_client.get(address, {"item": wrong}))
        assert "That is no id of an item." in shown
        assert "<b>" not in shown


@pytest.mark.slow
def test_the_home_of_a_deactivated_reader_says_so(admin_client: Client) -> None:
    gone, here = UserFactory.create(is_active=False), UserFactory.create()
    told = "The account is deactivated: it can open no page."
    assert told in text(admin_client.get(f"/admin/accounts/user/{gone.pk}/home/"))
    assert told not in text(admin_client.get(f"/admin/accounts/user/{here.pk}/home/"))


@pytest.mark.slow
def test_a_home_is_explained_to_those_who_may_see_the_user(client: Client) -> None:
    reader, staff = UserFactory.create(), UserFactory.create(is_staff=True)
    address = f"/admin/accounts/user/{reader.pk}/home/"
    assert client.get(address).status_code == 302
    client.force_login(reader)
    assert client.get(address).status_code == 302
    client.force_login(staff)
    assert client.get(address).status_code == 403
    staff.user_permissions.add(Permission.objects.get(codename="view_user"))
    assert client.get(address).status_code == 403
    assert "/home/" not in text(client.get(f"/admin/accounts/user/{reader.pk}/change/"))
    staff.user_permissions.add(*Permission.objects.filter(codename__in=["view_follow", "view_block", "view_mute"]))
    assert client.get(address).status_code == 403, "it would tell sender, state and circle of any item"
    staff.user_permissions.add(Permission.objects.get(codename="view_item"))
    assert client.get(address).status_code == 200
    assert client.get("/admin/accounts/user/999999/home/").status_code == 302
