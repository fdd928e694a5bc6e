"""Only who proves the password learns of a suspension. What they get opens nothing but the appeal and their data."""

import io
import re
import time
import zipfile
from datetime import timedelta
from typing import Any

import pyotp
import pytest
from django.test import Client
from django.utils import timezone
from oauth2_provider.models import AccessToken
from pytest_django import Settings
from rest_framework.test import APIClient

from accounts.deactivation import deactivate
from accounts.mail.models import Letter
from accounts.models import EmailAddress, User
from accounts.signing_in import recovery, second_factors, suspension
from moderation import actions, appeals, senders
from moderation.decisions import Grounds, decisions_about
from moderation.models import Appeal, SenderRule
from tests.support.cases import Say
from tests.support.factories import PASSWORD

pytestmark = pytest.mark.django_db

WRONG = "Wrong username or password."


@pytest.fixture
def banned(sender: User, moderator: User) -> User:
    senders.ban(
        user=sender, by=moderator, reason="troll", grounds=Grounds("Enough."), until=timezone.now() + timedelta(days=3)
    )
    sender.refresh_from_db()
    return sender


def sign_in(password: str = PASSWORD, **fields: str) -> Any:
    return APIClient().post("/api/v1/auth/token", {"username": "sender", "password": password} | fields, format="json")


def right_of(browser: Client, password: str = PASSWORD) -> str:
    """The address to which the right password leads."""
    answer = browser.post("/login", {"username": "sender", "password": password})
    assert answer.status_code == 302
    return str(answer["Location"])


@pytest.mark.slow
def test_the_right_password_leads_to_the_page(banned: User, moderator: User, client: Client) -> None:
    address = right_of(client)
    assert re.fullmatch(r"/suspended/\d+\.\d+\.[0-9a-f]{64}", address)
    answer = client.get(address)
    page = answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    for words in ("suspended your account @sender", "Enough.", "Until ", "Download my data", "<textarea"):
        assert words in page
    for secret in ("troll", "@moderator"):
        assert secret not in page
    assert client.post(address, {"text": " "}).status_code == 422
    assert "Your appeal is sent." in client.post(address, {"text": "Not me."}, follow=True).content.decode()
    again = client.post(address, {"text": "Not me."}, follow=True).content.decode()
    assert "You can&#39;t appeal this anymore." in again
    assert Appeal.objects.get().text == "Not me."
    data = client.post(f"{address}/data")
    with zipfile.ZipFile(io.BytesIO(b"".join(data.streaming_content))) as files:
        assert "Not me." in files.read("decisions.jsonl").decode()


def test_a_wrong_password_says_what_it_always_says(banned: User, client: Client) -> None:
    answers = [sign_in(password="wrong"), sign_in(password="wrong", username="nobody")]
    assert [(each.status_code, each.json()) for each in answers] == [(400, {"non_field_errors": [WRONG]})] * 2
    page = client.post("/login", {"username": "sender", "password": "wrong"})
    assert page.status_code == 422
    assert "suspend" not in page.content.decode()


def test_an_inactive_account_without_a_suspension_says_so_neither(sender: User) -> None:
    deactivate(user=sender)
    assert sign_in().json() == {"non_field_errors": [WRONG]}


def test_the_api_says_why_until_when_and_where_to_appeal(banned: User, settings: Settings, client: Client) -> None:
    answer = sign_in()
    body = answer.json()
    assert (answer.status_code, body["code"], body["reason"]) == (403, "suspended", "Enough.")
    assert body["until"] == SenderRule.objects.get().until.isoformat().replace("+00:00", "Z")  # type: ignore[union-attr]
    assert body["appeal_url"].startswith(f"{settings.SITE_URL}/suspended/")
    assert "Enough." in client.get(body["appeal_url"].removeprefix(settings.SITE_URL)).content.decode()
    senders.unban(user=banned, by=None)
    senders.ban(user=banned, by=None)
    assert sign_in().json() | {"appeal_url": ""} == {
        "detail": "This account is suspended.",
        "code": "suspended",
        "reason": "",
        "until": None,
        "appeal_url": "",
    }


def test_the_second_factor_comes_first(sender: User, client: Client) -> None:
    secret = pyotp.random_base32()
    second_factors.set_up_app(user=sender, secret=secret, code=pyotp.TOTP(secret).now())
    senders.ban(user=sender, by=None)
    code, other = second_factors.recovery_codes(sender)[:2]
    assert [sign_in(**more).status_code for more in ({}, {"code": "00000000"}, {"code": other})] == [400, 400, 403]
    address = right_of(client)
    assert address.startswith("/login/code")
    assert client.post(address, {"code": "00000000"}).status_code == 422
    assert client.post(address, {"code": code})["Location"].startswith("/suspended/")


def test_the_right_opens_nothing_else(banned: User, client: Client) -> None:
    address = right_of(client)
    client.get(address)
    for page in ("/settings", "/decisions", f"/decisions/{decisions_about(banned).get().pk}", "/notifications"):
        assert client.get(page)["Location"].startswith("/login")
    assert client.get("/api/v1/me/decisions").status_code == 401
    right = address.rpartition("/")[2]
    for header in (f"Token {right}", f"Bearer {right}"):
        assert client.get("/api/v1/users/me", HTTP_AUTHORIZATION=header).status_code == 401


def _spoil(right: str) -> dict[str, str]:
    number, until, digest = right.split(".")
    return {
        "another's": f"{int(number) + 1}.{until}.{digest}",
        "longer": f"{number}.{int(until) + 60}.{digest}",
        "cut": f"{number}.{until}",
        "no numbers": f"x.y.{digest}",
        "empty": "..",
        "non-ascii": f"{number}.{until}.é",
        "huge": f"{'9' * 400}.{until}.{digest}",
    }


def test_a_spoiled_right_has_expired(banned: User, client: Client) -> None:
    right = suspension.make_right(banned)
    for why, spoiled in _spoil(right).items():
        for ask in (client.get, client.post):
            assert ask(f"/suspended/{spoiled}").status_code == 410, why
        assert client.post(f"/suspended/{spoiled}/data").status_code == 410, why


def _end(banned: User, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    match how:
        case "an hour":
            monkeypatch.setattr(suspension.time, "time", lambda: now + suspension.LIFE_SECONDS + 1)
        case "a clock set back":
            monkeypatch.setattr(suspension.time, "time", lambda: now - 60)
        case "the suspension":
            senders.unban(user=banned, by=None)
        case "another suspension":
            senders.unban(user=banned, by=None)
            senders.ban(user=banned, by=None)
        case "its time":
            SenderRule.objects.update(until=timezone.now())
        case "a new password":
            banned.set_password("another one entirely")
            banned.save()
        case "deletion":
            User.objects.filter(pk=banned.pk).update(deleted_at=timezone.now())


@pytest.mark.parametrize(
    "how",
    [
        *("an hour", "a clock set back", "the suspension", "another suspension", "its time", "a new password"),
        "deletion",
    ],
)
def test_the_right_ends_with(banned: User, client: Client, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    address = f"/suspended/{suspension.make_right(banned)}"
    assert client.get(address).status_code == 200
    _end(banned, how, monkeypatch)
    assert client.get(address).status_code == 410
    assert client.post(address, {"text": "Not me."}).status_code == 410
    assert client.post(f"{address}/data").status_code == 410
    assert not Appeal.objects.exists()


def test_a_suspension_that_is_over_ends_at_the_login(banned: User, client: Client) -> None:
    SenderRule.objects.update(until=timezone.now())
    assert client.post("/login", {"username": "sender", "password": PASSWORD})["Location"] == "/"
    assert client.get("/settings").status_code == 200
    assert sign_in().status_code == 200


def test_only_the_suspension_is_appealed(banned: User, say: Say, moderator: User, client: Client) -> None:
    address = right_of(client)
    client.post(address, {"text": "Not me."})
    assert Appeal.objects.get().decision == decisions_about(banned).get(verb="ban")


@pytest.mark.slow
def test_an_accepted_appeal_opens_the_account(banned: User, client: Client) -> None:
    address = right_of(client)
    client.post(address, {"text": "Not me."})
    appeals.answer(appeal_id=Appeal.objects.get().pk, by=_other_moderator(), accepts=True)
    assert client.get(address).status_code == 410
    assert client.post("/login", {"username": "sender", "password": PASSWORD})["Location"] == "/"


@pytest.mark.slow
def test_a_forgotten_password_is_no_obstacle_to_the_appeal(banned: User, client: Client) -> None:
    EmailAddress.objects.create(user=banned, email="sender@example.org", verified=True, primary=True)
    Letter.objects.all().delete()
    for asked in ("sender", "sender@example.org"):
        recovery.request_reset(asked=asked, language="en")
    recovery.process_reset_requests()
    first, second = [
        re.sub(r"^https?://[^/]+", "", each.context["link"]) for each in Letter.objects.filter(kind="reset")
    ]
    answer = client.post(first, {"new": "another long password"})
    assert answer["Location"] == "/login"
    assert client.get(second).status_code == 410, "used"
    assert "sessionid" not in client.cookies
    banned.refresh_from_db()
    assert not banned.is_active
    address = right_of(client, "another long password")
    assert address.startswith("/suspended/")
    assert "Your appeal is sent." in client.post(address, {"text": "Not me."}, follow=True).content.decode()
    assert client.get("/settings").status_code == 302, "logged out"
    refused = sign_in("another long password")
    assert (refused.status_code, refused.json().get("token")) == (403, None)
    assert not AccessToken.objects.filter(user=banned).exists()


@pytest.mark.parametrize("how", ["deactivated", "deleted"])
def test_who_is_not_suspended_sets_no_password(sender: User, moderator: User, client: Client, how: str) -> None:
    EmailAddress.objects.create(user=sender, email="sender@example.org", verified=True, primary=True)
    link = re.sub(r"^https?://[^/]+", "", recovery.reset_link(sender))
    if how == "deactivated":
        deactivate(user=sender)
    else:
        senders.ban(user=sender, by=moderator, reason="troll", grounds=Grounds("Enough."))
        User.objects.filter(pk=sender.pk).update(deleted_at=timezone.now())
        link = re.sub(r"^https?://[^/]+", "", recovery.reset_link(User.objects.get(pk=sender.pk)))
    recovery.request_reset(asked="sender", language="en")
    recovery.request_reset(asked="sender@example.org", language="en")
    recovery.process_reset_requests()
    assert not Letter.objects.filter(kind="reset").exists()
    assert client.post(link, {"new": "another long password"}).status_code == 410


def test_rates_of_the_right(banned: User, client: Client, settings: Settings) -> None:
    settings.RATES = settings.RATES | {"appeal": "1/day", "export": "1/day"}
    address = right_of(client)
    assert [client.post(address, {"text": "x"}).status_code for _ in range(2)] == [302, 429]
    first, second = client.post(f"{address}/data"), client.post(f"{address}/data")
    assert (first.status_code, second.status_code) == (200, 429)
    first.close()


def test_a_suspension_without_a_decision_says_only_that(sender: User, client: Client) -> None:
    SenderRule.objects.create(user=sender, kind="ban")
    deactivate(user=sender)
    page = client.get(right_of(client)).content.decode()
    assert "suspended your account @sender" in page
    assert "<textarea" not in page


def _other_moderator() -> User:
    return User.objects.create(username="other", is_staff=True, is_superuser=True)


def test_who_decided_is_never_named(banned: User, moderator: User, say: Say, client: Client) -> None:
    actions.warn(user=banned, by=moderator, grounds=Grounds("x"))
    assert "moderator<" not in client.get(right_of(client)).content.decode()
