from datetime import timedelta

import pytest
from django.conf import settings
from django.test import Client, RequestFactory
from django.utils import timezone
from rest_framework.test import APIClient

from accounts import addresses, tasks
from accounts.actions import log_out_everywhere
from accounts.mail.models import Letter
from accounts.models import Session, SessionOrigin, User
from accounts.signing_in import places
from tests.support.factories import PASSWORD, UserFactory
from tests.support.pages import logged_in

pytestmark = pytest.mark.django_db

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Safari/604.1"


def log_in(agent: str, address: str = "10.0.0.1", name: str = "ann") -> Client:
    client = Client(headers={"user-agent": agent}, REMOTE_ADDR=address)
    assert client.post("/login", {"username": name, "password": PASSWORD}).status_code == 302
    return client


@pytest.fixture
def ann() -> User:
    user: User = UserFactory(username="ann")
    addresses.add(user=user, address="ann@example.org")
    addresses.prove_by_code(user=user, code=Letter.objects.latest("pk").context["code"])
    Letter.objects.all().delete()
    return user


@pytest.mark.slow
def test_the_list_and_ending_one(ann: User) -> None:
    here, there = log_in(FIREFOX), log_in(PHONE, "2001:db8::7")
    page = here.get("/settings/devices").content.decode()
    assert "Firefox on Linux" in page
    assert "Safari on iPhone" in page
    assert "2001:db8::7" in page
    key = there.cookies[settings.SESSION_COOKIE_NAME].value
    assert key not in page

    (other,) = [place for place in places.sessions(ann, here.session.session_key) if not place.is_here]
    stranger = logged_in(UserFactory())
    stranger.post("/settings/devices/end", {"key": other.key})
    assert there.get("/settings").status_code == 200
    here.post("/settings/devices/end", {"key": other.key})
    assert there.get("/settings").status_code == 302
    assert here.get("/settings").status_code == 200
    assert "iPhone" not in here.get("/settings/devices").content.decode()


def test_tokens(ann: User) -> None:
    here = log_in(FIREFOX)
    body = {"username": "ann@example.org", "password": PASSWORD}
    token = APIClient(headers={"user-agent": "Tusky/24"}).post("/api/v1/auth/token", body).json()["token"]
    client = APIClient(headers={"authorization": f"Token {token}"})
    assert client.get("/api/v1/users/me").status_code == 200
    assert "Tusky/24" in here.get("/settings/devices").content.decode()
    (place,) = places.tokens(ann)
    here.post("/settings/devices/end", {"key": place.key})
    assert client.get("/api/v1/users/me").status_code == 401
    assert not places.tokens(ann)


def test_sessions_of_an_earlier_password_or_epoch_are_not_listed(ann: User) -> None:
    log_in(FIREFOX)
    assert len(places.sessions(ann, None)) == 1
    log_out_everywhere(user=ann)
    assert places.sessions(ann, None) == []


@pytest.mark.slow
def test_a_session_whose_row_is_lacking_gets_one_when_it_is_seen(ann: User) -> None:
    client = log_in(FIREFOX)
    SessionOrigin.objects.all().delete()
    client.get("/settings/preferences")
    assert SessionOrigin.objects.get().user_id == ann.pk


def test_a_new_browser_is_told_to_the_owner_and_a_known_one_not(ann: User) -> None:
    first = log_in(FIREFOX)
    assert not Letter.objects.exists()  # the first sign-in
    first.post("/logout")
    first.post("/login", {"username": "ann", "password": PASSWORD})
    assert not Letter.objects.exists()
    log_in(PHONE, "10.0.0.2")
    letter = Letter.objects.get()
    assert letter.kind == "new_sign_in"
    assert (letter.context["device"], letter.context["ip"]) == ("Safari on iPhone", "10.0.0.2")


def test_another_password_keeps_the_place_of_the_browser_that_set_it(ann: User) -> None:
    client = log_in(FIREFOX)
    assert client.post("/settings/password", {"current": PASSWORD, "new": "another long password"}).status_code == 302
    assert "this device" in client.get("/settings/devices").content.decode()


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("", "Unknown device"),
        ("curl/8.5", "curl/8.5"),
        ("<b>" + "x" * 300, "<b>" + "x" * 37),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit Chrome/126 Safari/537 Edg/126", "Edge on Windows"),
        ("\u202eabc", "abc"),
    ],
)
def test_names(agent: str, name: str) -> None:
    assert places.device_name(agent) == name


@pytest.mark.parametrize("agent", ["Call +1 555 0100 about your account", "curl/8.5", "", "Firefox evil.example"])
def test_the_letter_of_a_new_sign_in_has_no_word_of_the_strangers(ann: User, agent: str) -> None:
    log_in(FIREFOX)
    log_in(agent, "10.0.0.9")
    device = Letter.objects.get(kind="new_sign_in").context["device"]
    assert device == ("Firefox" if "Firefox" in agent else "Unknown device")


def test_a_place_ends_with_its_session(ann: User, rf: RequestFactory) -> None:
    old, new = log_in(FIREFOX), log_in(PHONE)
    Session.objects.filter(session_key=old.session.session_key).update(expire_date=timezone.now() - timedelta(days=1))
    late = rf.get("/", headers={"user-agent": FIREFOX})
    late.session = old.session
    tasks.clear_sessions()
    places.record_visit(late)  # it answers after its session has ended
    assert [row.session_key for row in SessionOrigin.objects.all()] == [new.session.session_key]
