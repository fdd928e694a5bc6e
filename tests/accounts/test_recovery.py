import re
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from oauth2_provider.models import AccessToken
from rest_framework.test import APIClient

from accounts import addresses
from accounts.actions import issue_token, log_out_everywhere
from accounts.deactivation import deactivate
from accounts.mail.models import Letter
from accounts.models import ResetRequest, User
from accounts.signing_in import recovery
from tests.support.at_once import at_once
from tests.support.factories import PASSWORD, UserFactory
from tests.support.pages import logged_in

NEW = "another long password"


def with_address(name: str = "ann", address: str = "ann@example.org") -> User:
    user: User = UserFactory(username=name)
    addresses.add(user=user, address=address)
    code = Letter.objects.latest("pk").context["code"]
    addresses.prove_by_code(user=user, code=code)
    Letter.objects.all().delete()
    return User.objects.get(pk=user.pk)


def link_for(asked: str) -> str:
    recovery.request_reset(asked=asked, language="en")
    recovery.process_reset_requests()
    letter = Letter.objects.get(kind="reset")
    path: str = re.sub(r"^https?://[^/]+", "", letter.context["link"])
    letter.delete()
    return path


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("asked", ["ann", "ANN", "@ann", "ann@example.org", " ANN@Example.ORG "])
def test_the_link_sets_another_password_once_in_any_browser(asked: str) -> None:
    user = with_address()
    signed_in = logged_in(user)
    issue_token(user=user)
    path = link_for(asked)

    page = Client().get(path)
    assert page.status_code == 200
    assert "@ann" in page.content.decode()
    assert Client().post(path, {"new": "short"}).status_code == 422
    answer = Client().post(path, {"new": NEW})
    assert answer["Location"] == "/login"

    assert signed_in.get("/settings").status_code == 302
    assert not AccessToken.objects.filter(user=user).exists()
    assert Client().post("/login", {"username": "ann", "password": PASSWORD}).status_code == 422
    assert Client().post("/login", {"username": "ann", "password": NEW}).status_code == 302
    assert {letter.kind for letter in Letter.objects.all()} == {"password_changed", "new_sign_in"}
    assert Client().get(path).status_code == 410
    assert Client().post(path, {"new": NEW + "!"}).status_code == 410


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("ends", ["time", "sign in", "everywhere", "address", "deactivated", "forged", "other"])
def test_a_link_ends(ends: str) -> None:
    user = with_address()
    path = link_for("ann")
    moment = timezone.now()
    match ends:
        case "time":
            moment += timedelta(hours=4, seconds=1)
        case "sign in":
            Client().post("/login", {"username": "ann", "password": PASSWORD})
        case "everywhere":
            log_out_everywhere(user=user)
        case "address":
            addresses.add(user=user, address="new@example.org")
            addresses.prove_by_code(user=user, code=Letter.objects.latest("pk").context["code"])
        case "deactivated":
            deactivate(user=user)
        case "forged":
            path = path[:-1] + ("a" if path[-1] != "a" else "b")
        case "other":
            other = with_address("bob", "bob@example.org")
            path = recovery.reset_link(other).rpartition("/")[0].partition("//")[2].partition("/")[2]
            path = f"/{path}/{link_for('ann').rpartition('/')[2]}"
    with time_machine.travel(moment, tick=True):
        assert Client().get(path).status_code == 410
        assert Client().post(path, {"new": NEW}).status_code == 410


@pytest.mark.django_db
def test_links_that_no_letter_brought() -> None:
    for path in ("/password-reset/x/y", "/password-reset/zzzzzzzzzzzzzzzzzzz/a-b", "/password-reset/-1/%00"):
        assert Client().get(path).status_code in (404, 410), path


@pytest.mark.django_db(transaction=True)
def test_two_who_use_a_link_at_once_set_one_password() -> None:
    user = with_address()
    number, token = link_for("ann").split("/")[-2:]
    calls = [lambda new=f"{NEW} {n}": recovery.set_password(number=number, token=token, new=new) for n in range(3)]
    answers = at_once(*calls)
    assert sum(isinstance(answer, User) for answer in answers) == 1
    assert sum(isinstance(answer, recovery.SpentResetError) for answer in answers) == 2
    assert Letter.objects.filter(kind="password_changed", user_id=user.pk).count() == 1


@pytest.mark.slow
@pytest.mark.django_db
def test_the_answer_tells_nothing_of_the_account() -> None:
    """Same status, bytes and SQL by page and API, whatever is typed."""
    with_address()
    UserFactory(username="bare")
    gone = with_address("gone", "gone@example.org")
    deactivate(user=gone)
    seen = set()
    for asked in (
        "ann",
        "ann@example.org",
        "bare",
        "gone",
        "gone@example.org",
        "nobody",
        "nobody@example.org",
        "?" * 254,
    ):
        with CaptureQueriesContext(
            connection,
        ) as statements:
            api = APIClient().post("/api/v1/auth/password-reset", {"username_or_email": asked})
            page = Client().post("/password-reset", {"username_or_email": asked})
        shapes = tuple(re.sub(r"'[^']*'|\d+", "?", each["sql"]) for each in statements.captured_queries)
        seen.add((api.status_code, api.content, page.status_code, page["Location"], shapes))
    assert len(seen) == 1
    ((status, *_rest),) = seen
    assert status == 202
    assert recovery.process_reset_requests() == 16
    assert [(letter.kind, letter.address) for letter in Letter.objects.all()] == [("reset", "ann@example.org")] * 4
    assert not ResetRequest.objects.exists()


@pytest.mark.slow
@pytest.mark.django_db
def test_letters_of_an_account_and_calls_of_a_network_are_limited(settings: Any) -> None:
    settings.RATES = settings.RATES | {"reset_name": "2/hour", "reset": "7/hour"}
    with_address()
    body = {"username_or_email": "ann"}
    statuses = [
        APIClient().post("/api/v1/auth/password-reset", body, REMOTE_ADDR="10.9.0.1").status_code for _ in range(8)
    ]
    assert statuses == [202] * 7 + [429]
    assert Client().post("/password-reset", body, REMOTE_ADDR="10.9.0.2").status_code == 302
    recovery.process_reset_requests()
    assert Letter.objects.filter(kind="reset").count() == 2


@pytest.mark.django_db
def test_no_header_chooses_where_a_link_leads(settings: Any) -> None:
    settings.SITE_URL = "https://feeds.example.org"
    settings.ALLOWED_HOSTS = ["*"]
    with_address()
    Client().post(
        "/password-reset", {"username_or_email": "ann"}, HTTP_HOST="evil.example", HTTP_X_FORWARDED_HOST="evil.example"
    )
    recovery.process_reset_requests()
    assert Letter.objects.get(kind="reset").context["link"].startswith("https://feeds.example.org/password-reset/")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "body", [{}, {"username_or_email": ""}, {"username_or_email": "a" * 255}, {"username_or_email": ["ann"]}, {"x": 1}]
)
def test_bad_bodies(body: Any) -> None:
    assert APIClient().post("/api/v1/auth/password-reset", body).status_code == 400


@pytest.mark.django_db
def test_a_request_waits_a_day_for_a_worker() -> None:
    with_address()
    recovery.request_reset(asked="ann", language="en")
    ResetRequest.objects.update(created_at=timezone.now() - timedelta(hours=25))
    assert recovery.process_reset_requests() == 0
    assert not Letter.objects.exists()
