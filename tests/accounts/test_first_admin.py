import io
import re
from typing import Any
from urllib.parse import urlsplit

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from accounts.joining import actions as joining
from accounts.joining import first_admin
from accounts.models import User
from tests.support.at_once import at_once
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db

FORM = {"username": "keeper", "password": "a long enough one"}


def printed(*args: str) -> str:
    out = io.StringIO()
    call_command("account", "first-admin", *args, stdout=out)
    return out.getvalue()


def link() -> str:
    found = re.search(r"http\S+", printed())
    assert found
    return urlsplit(found[0]).path


@pytest.mark.slow
def test_the_link_makes_one_superuser_who_is_led_into_the_admin(client: Client) -> None:
    path, other = link(), link()
    page = client.get(path)
    assert page.status_code == 200
    assert "no-cache" in page.headers["Cache-Control"]
    assert not User.objects.exists(), "only who sends the form is made"
    response = client.post(path, FORM)
    assert (response.status_code, response.headers["Location"]) == (302, "/admin/about/sitesettings/")
    keeper = User.objects.get()
    assert (keeper.username, keeper.is_superuser, keeper.is_staff) == ("keeper", True, True)
    assert client.get("/admin/").status_code == 200

    for used in (path, other):
        assert Client().get(used).status_code == 410
        assert Client().post(used, FORM | {"username": "second"}).status_code == 410
    assert User.objects.count() == 1


def test_users_who_are_no_administrators_are_no_reason_against_it(client: Client) -> None:
    UserFactory.create(username="keeper")
    UserFactory.create(is_superuser=True, is_active=False)
    path = link()
    response = client.post(path, FORM)
    assert response.status_code == 422
    assert "This username is taken." in response.content.decode()
    assert client.post(path, FORM | {"password": "short"}).status_code == 422
    assert client.post(path, FORM | {"username": "another"}).status_code == 302
    assert User.objects.filter(is_superuser=True, is_active=True).get().username == "another"


def test_it_is_over_after_a_day(client: Client) -> None:
    path = link()
    with time_machine.travel(timezone.now() + first_admin.LIFE * 0.99, tick=False):
        assert client.get(path).status_code == 200
    with time_machine.travel(timezone.now() + first_admin.LIFE * 1.01, tick=False):
        assert client.get(path).status_code == 410
        assert client.post(path, FORM).status_code == 410
    assert not User.objects.exists()


@pytest.mark.parametrize("token", ["x", "first:x:y", "first"])
def test_another_token_is_none(client: Client, token: str) -> None:
    assert client.post(f"/first-admin/{token}", FORM).status_code == 410
    assert not User.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_one_is_made() -> None:
    def make(name: str) -> Any:
        return joining.make_first_admin(username=name, password=FORM["password"])

    made = at_once(lambda: make("one"), lambda: make("two"))
    assert sorted(type(each).__name__ for each in made) == ["AdminExistsError", "User"]
    assert User.objects.count() == 1


def test_the_command_is_silent_or_refuses_where_there_is_one() -> None:
    UserFactory.create(is_superuser=True)
    assert printed("--if-wanted") == ""
    with pytest.raises(CommandError, match="The site has an administrator"):
        printed()


def test_the_link_leads_where_the_site_answers(settings: Any) -> None:
    settings.SITE_URL = "https://feeds.example.org"
    assert "https://feeds.example.org/first-admin/" in printed()
