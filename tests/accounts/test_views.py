import html
import re
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from accounts.models import User
from tests.support.factories import PASSWORD, UserFactory

pytestmark = pytest.mark.django_db

NEW = {"username": "newcomer", "password": "sesame-seeds-7"}


def test_sign_up_begins_a_session(client: Client) -> None:
    response = client.post("/signup", NEW, follow=True)
    assert response.redirect_chain == [("/welcome", 302)]
    assert response.context["user"] == User.objects.get(username="newcomer")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"username": "Taken"}, "This username is taken."),
        ({"username": "settings"}, "This name is reserved."),
        ({"username": "no spaces"}, "1 to 30 letters"),
        ({"username": "new\ncomer"}, "1 to 30 letters"),
        ({"username": ""}, "This field is required."),
        ({"username": "x" * 31}, "at most 30 characters"),
        ({"password": "1234"}, "too short"),
        ({"password": "x" * 300}, "at most 256 characters"),
        ({"password": "a\x00bcdefghij"}, "Null characters are not allowed."),
    ],
)
def test_what_sign_up_refuses_is_said_at_the_form(client: Client, fields: dict[str, str], words: str) -> None:
    UserFactory.create(username="taken")
    response = client.post("/signup", NEW | fields)
    assert response.status_code == 422
    assert words in response.content.decode()
    assert User.objects.count() == 1


def test_spaces_around_a_name_are_no_part_of_it_and_those_around_a_password_are(client: Client) -> None:
    client.post("/signup", {"username": " newcomer ", "password": " sesame-seeds-7 "})
    assert User.objects.get().check_password(" sesame-seeds-7 ")
    for password, status in (("sesame-seeds-7", 422), (" sesame-seeds-7 ", 302)):
        assert Client().post("/login", {"username": "newcomer ", "password": password}).status_code == status


@pytest.mark.parametrize("email", ["no address", "a@b"])
def test_sign_up_tells_the_errors_of_all_fields_and_begins_at_the_first(client: Client, email: str) -> None:
    UserFactory.create(username="taken")
    response = client.post("/signup", NEW | {"email": email, "password": "1234", "display_name": "a\u202eb"})
    assert set(response.context["form"].errors) == {"display_name", "email", "password"}
    assert re.findall(r'name="(\w+)"[^>]*? autofocus', response.content.decode()) == ["display_name"]
    wrong = client.post("/signup", NEW | {"username": "?", "email": email, "password": "1234"})
    assert set(wrong.context["form"].errors) == {"username", "email", "password"}
    assert set(client.post("/signup", {"username": "Taken", "password": "1234"}).context["form"].errors) == {
        "username",
        "password",
    }


@pytest.mark.parametrize("fields", [{"email": "no address"}, {"password": ""}, {"password": "x" * 300}])
def test_sign_up_tells_a_taken_name_beside_all_other_errors(client: Client, fields: dict[str, str]) -> None:
    UserFactory.create(username="taken")
    response = client.post("/signup", NEW | {"username": "Taken", "display_name": "a\u202eb"} | fields)
    assert set(response.context["form"].errors) == {"username", "display_name", *fields}
    assert response.context["form"].errors["username"] == ["This username is taken."]


def test_names_are_not_tried_out_by_forms_with_another_error(client: Client, settings: Settings) -> None:
    settings.RATES = settings.RATES | {"signup": "2/hour"}
    bad = {"username": "name", "email": "no address", "password": "1234"}
    assert [client.post("/signup", bad).status_code for _ in range(3)] == [422, 422, 429]


def test_an_empty_form_is_answered_like_one_of_empty_fields(client: Client) -> None:
    assert set(client.post("/signup").context["form"].errors) == {"username", "password"}


def test_login_is_without_regard_to_case_and_says_nothing_about_names(client: Client) -> None:
    UserFactory.create(username="Reader")
    UserFactory.create(username="gone", is_active=False)
    answers = {
        client.post("/login", {"username": name, "password": password}).context["form"].non_field_errors()[0]
        for name, password in [("reader", "wrong"), ("nobody", PASSWORD), ("gone", PASSWORD), ("a\x00b", "x")]
        if "\x00" not in name
    }
    assert len(answers) == 1
    assert client.post("/login", {"username": "rEADER", "password": PASSWORD})["Location"] == "/"
    assert client.get("/login")["Location"] == "/"


def test_sign_up_asks_for_a_display_name_that_may_be_left_out(client: Client) -> None:
    assert 'name="display_name"' in client.get("/signup").content.decode()
    assert client.post("/signup", NEW | {"display_name": "a\u202eb"}).status_code == 422
    assert not User.objects.exists()
    client.post("/signup", NEW | {"display_name": "林美"})
    assert User.objects.get().display_name == "林美"


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "Wrong username or password. Passwords are case-sensitive, usernames aren't."),
        ("zh-CN", "用户名或密码不对。"),
    ],
)
def test_a_login_that_fails_says_what_capital_letters_mean(client: Client, language: str, words: str) -> None:
    UserFactory.create(username="Reader")
    wrong = client.post("/login", {"username": "reader", "password": "x"}, HTTP_ACCEPT_LANGUAGE=language)
    assert words in html.unescape(wrong.content.decode())


@pytest.mark.parametrize(
    ("page", "target"),
    [
        ("/@writer?last_id=7", "?next=%2F%40writer%3Flast_id%3D7"),
        ("/search?q=a%20b", "?next=%2Fsearch%3Fq%3Da%2520b"),
        ("/login?next=/settings", "?next=%2Fsettings"),
        ("/signup?next=/settings", "?next=%2Fsettings"),
        ("/login?next=foo", ""),
        ("/login", ""),
    ],
)
def test_the_links_of_the_header_lead_back_to_the_page(client: Client, page: str, target: str) -> None:
    UserFactory.create(username="writer")
    header = client.get(page).content.decode().split("</header>")[0]
    for entrance in ("login", "signup"):
        assert f'href="/{entrance}{target}"' in header


def test_logout_is_a_post(client: Client) -> None:
    client.force_login(UserFactory.create())
    assert client.get("/logout").status_code == 405
    assert client.post("/logout")["Location"] == "/login"
    assert client.get("/settings")["Location"] == "/login?next=%2Fsettings"


def test_sign_up_and_login_are_limited(client: Client, settings: Settings) -> None:
    settings.RATES = settings.RATES | {"signup": "1/hour", "login": "1/minute"}
    client.post("/signup", NEW)
    client.post("/logout")
    response = client.post("/signup", NEW | {"username": "another"})
    assert response.status_code == 429
    assert 0 < int(response["Retry-After"]) <= 3600
    assert "Slow down" in response.content.decode()
    for status in (422, 429):
        assert client.post("/login", {"username": "newcomer", "password": "x"}).status_code == status
    assert client.post("/login", {"username": "other", "password": "x"}).status_code == 422


def test_settings_change_how_one_presents_oneself(client: Client) -> None:
    reader: Any = UserFactory.create()
    client.force_login(reader)
    assert client.post("/settings", {"display_name": "林美", "bio": "慢"})["Location"] == "/settings/profile"
    assert "Saved." in client.get("/settings").content.decode()
    reader.refresh_from_db()
    assert (reader.display_name, reader.bio) == ("林美", "慢")
    for fields in ({"display_name": "x" * 51}, {"bio": "x" * 501}, {"bio": "\x00"}):
        assert client.post("/settings", fields).status_code == 422
    client.post("/settings", {"display_name": "", "bio": "", "is_staff": "on", "is_big_v": "on", "username": "root"})
    reader.refresh_from_db()
    assert not any((reader.display_name, reader.bio, reader.is_staff, reader.is_big_v))
