import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from notifications.export import files
from notifications.models import PushSubscription, QuietHours
from notifications.push import actions
from tests.support.clients import app_of, token_of
from tests.support.factories import UserFactory
from tests.support.pages import logged_in
from tests.support.push_services import Device

pytestmark = pytest.mark.django_db

PAGE = "/settings/notifications/push"


@pytest.fixture
def reader(client: Client) -> User:
    reader = UserFactory(username="reader")
    client.force_login(reader)
    return reader


@pytest.fixture
def row(client: Client, reader: User) -> PushSubscription:
    device = Device()
    body = {"endpoint": "https://push.example.org/1", "keys": {"p256dh": device.p256dh, "auth": device.auth}}
    agent = "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"
    answer = client.post("/api/v1/me/push", body, content_type="application/json", HTTP_USER_AGENT=agent)
    assert answer.status_code == 201, answer.content
    return PushSubscription.objects.get()


def shown(client: Client) -> str:
    answer = client.get(PAGE)
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_devices_are_listed(client: Client, reader: User, row: PushSubscription) -> None:
    page = shown(client)
    assert "Firefox on Linux" in page
    assert '">this device' in page
    assert "Turn on in this browser" not in page
    another = logged_in(reader)
    page = shown(another)
    assert "Turn on in this browser" in page
    assert '">this device' not in page
    PushSubscription.objects.update(failing_since=timezone.now())
    assert "We couldn't reach this device recently." in shown(client)


def test_apps_are_named(client: Client, reader: User) -> None:
    app = app_of()
    device = Device()
    body = {
        "subscription": {
            "endpoint": "https://push.example.org/2",
            "keys": {"p256dh": device.p256dh, "auth": device.auth},
        }
    }
    header = {"HTTP_AUTHORIZATION": f"Bearer {token_of(reader, app=app)}"}
    Client().post("/api/v1/push/subscription", body, content_type="application/json", **header)
    assert "An app" in shown(client)


def test_choices_are_saved(client: Client, row: PushSubscription) -> None:
    answer = client.post(f"{PAGE}/{row.pk}", {"kinds": ["reply"], "words": "all"})
    assert answer["Location"] == PAGE
    row.refresh_from_db()
    assert (row.kinds, row.words, row.policy) == (["reply"], "all", "all")
    client.post(f"{PAGE}/{row.pk}", {"words": "none"})
    row.refresh_from_db()
    assert row.kinds == []
    client.post(f"{PAGE}/{row.pk}", {"kinds": ["like"], "words": "all"})
    client.post(f"{PAGE}/{row.pk}", {"kinds": ["reply"], "words": "some"})
    row.refresh_from_db()
    assert (row.kinds, row.words) == ([], "none")


@pytest.mark.parametrize("act", ["", "/trial"])
def test_devices_of_others_are_not_there(row: PushSubscription, act: str) -> None:
    other = logged_in(UserFactory())
    assert other.post(f"{PAGE}/{row.pk}{act}", {"kinds": [], "words": "all"}).status_code == 404
    other.post(f"{PAGE}/{row.pk}/remove")
    assert PushSubscription.objects.exists()


def test_a_device_is_turned_off(client: Client, row: PushSubscription) -> None:
    for _ in range(2):
        assert client.post(f"{PAGE}/{row.pk}/remove")["Location"] == PAGE
    assert not PushSubscription.objects.exists()


def test_a_trial_is_left_to_a_worker(client: Client, row: PushSubscription) -> None:
    client.post(f"{PAGE}/{row.pk}/trial")
    row.refresh_from_db()
    assert row.trial_at
    assert row.due_at
    page = shown(client)
    assert "Test sent. It should arrive in a moment." in page
    assert "A test is on its way to this device." in page
    assert "Send test" not in page
    client.post(f"{PAGE}/{row.pk}/trial")
    assert "Test sent." not in shown(client)


def test_quiet_hours_are_saved_in_the_readers_zone(client: Client, reader: User) -> None:
    reader.time_zone = "Asia/Shanghai"
    reader.save()
    assert client.post(PAGE, {"begins": "22", "ends": "7"}).status_code == 302
    row = QuietHours.objects.get()
    assert (row.begins, row.ends, row.time_zone) == (22, 7, "Asia/Shanghai")
    page = shown(client)
    assert '<option value="22" selected>22:00</option>' in page
    assert "Time zone: Asia/Shanghai." in page
    for bad in ({"begins": "22", "ends": ""}, {"begins": "24", "ends": "1"}, {"begins": "x", "ends": "1"}):
        assert client.post(PAGE, bad).status_code == 422
    client.post(PAGE, {"begins": "5", "ends": "5"})
    assert not QuietHours.objects.exists()


def test_strangers_and_other_methods(client: Client, row: PushSubscription) -> None:
    assert client.get(f"{PAGE}/{row.pk}").status_code == 405
    assert Client().get(PAGE)["Location"].startswith("/login")
    assert Client().post(f"{PAGE}/{row.pk}/remove").status_code == 302
    assert PushSubscription.objects.exists()


def test_the_export_has_no_secrets(reader: User, row: PushSubscription) -> None:
    actions.set_quiet_hours(user=reader, hours=(22, 7))
    *_others, devices, hours = files(reader)
    (device,) = devices.rows
    assert device.server == "push.example.org"
    assert device.kinds == row.kinds
    assert (row.auth in str(device), row.endpoint in str(device)) == (False, False)
    (quiet,) = hours.rows
    assert (quiet.begins, quiet.ends) == (22, 7)
