"""The same password in other characters. Each door sets it in one form, and asks for it in others."""

import unicodedata
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.core.management import call_command
from django.test import Client
from rest_framework.test import APIClient

from accounts import actions, passwords
from accounts.joining import actions as joining
from accounts.joining import applications
from accounts.models import User
from accounts.signing_in import recovery
from accounts.user_admin import CreationForm, PasswordByAdminForm
from tests.support.factories import PASSWORD, UserFactory
from tests.support.pages import logged_in

pytestmark = pytest.mark.django_db

WORDS = "élève ﬁnal ｆｕｌｌ Ångström 각"  # noqa: RUF001
FORMS = {form: unicodedata.normalize(form, WORDS) for form in ("NFC", "NFD", "NFKC", "NFKD")}
NEW = "naïve résumé 한글 words"
NFD_NEW = unicodedata.normalize("NFD", NEW)


@pytest.fixture
def ann() -> User:
    user: User = UserFactory(username="ann", password=passwords.hashed(FORMS["NFC"]))
    return user


def token(password: str, username: str = "ann") -> int:
    return int(APIClient().post("/api/v1/auth/token", {"username": username, "password": password}).status_code)


def logs_in(password: str, username: str = "ann") -> bool:
    return bool(Client().post("/login", {"username": username, "password": password}).status_code == 302)


def test_the_forms_differ() -> None:
    assert len({*FORMS.values(), WORDS}) == 4
    assert NEW != NFD_NEW


@pytest.mark.parametrize("form", FORMS)
def test_each_form_opens_page_api_and_admin(ann: User, form: str) -> None:
    actions.promote(user=ann)
    assert logs_in(FORMS[form])
    assert token(FORMS[form]) == 200
    fields = {"username": "ann", "password": FORMS[form]}
    assert Client().post("/admin/login/?next=/admin/", fields)["Location"] == "/admin/"


@pytest.mark.parametrize("form", FORMS)
def test_each_form_confirms(ann: User, form: str) -> None:
    page, api = Client(), APIClient()
    page.force_login(ann)
    api.force_login(ann)
    assert page.post("/settings/confirm", {"password": FORMS[form]}).status_code == 302
    change = {"email": "a@example.org", "current_password": FORMS[form]}
    assert api.patch("/api/v1/users/me", change).status_code == 200
    assert api.post("/api/v1/users/me/delete", {"password": FORMS[form]}).status_code == 204


def test_a_change_takes_any_form(ann: User) -> None:
    page = logged_in(ann)
    assert page.post("/settings/password", {"current": FORMS["NFD"], "new": NFD_NEW}).status_code == 302
    assert logs_in(NEW)
    api = APIClient()
    api.force_login(User.objects.get())
    change = {"current_password": NEW, "new_password": FORMS["NFKD"]}
    assert api.post("/api/v1/users/me/password", change).status_code == 204
    assert logs_in(FORMS["NFC"])


def test_a_reset_takes_any_form(ann: User) -> None:
    path = recovery.reset_link(ann).partition("//")[2].partition("/")[2]
    assert Client().post(f"/{path}", {"new": NFD_NEW}).status_code == 302
    assert logs_in(NEW)


def test_a_new_account_takes_any_form(settings: Any) -> None:
    settings.SIGN_UP = "open"
    assert joining.join(joining.SignUpInput("bob", NFD_NEW)) is not None
    assert logs_in(NEW, "bob")
    application = joining.apply(joining.SignUpInput("cat", NFD_NEW, reason="why not"))
    assert applications.is_waiting("cat", NEW)
    applications.approve(application_id=application.pk)
    assert logs_in(NEW, "cat")


def test_the_admins_forms_take_any_form(ann: User) -> None:
    form = PasswordByAdminForm(ann, {"password1": NFD_NEW, "password2": NEW, "usable_password": "true"})
    assert form.is_valid(), form.errors
    form.save()
    assert logs_in(NEW)
    made = CreationForm({"username": "bob", "password1": NEW, "password2": NFD_NEW, "usable_password": "true"})
    assert made.is_valid(), made.errors
    made.save()
    assert logs_in(NFD_NEW, "bob")
    wide = "１２３４５６７８９０"  # noqa: RUF001
    for weak in (
        PasswordByAdminForm(ann, {"password1": wide, "password2": wide, "usable_password": "true"}),
        CreationForm({"username": "dan", "password1": wide, "password2": wide, "usable_password": "true"}),
    ):
        assert "password2" in weak.errors


def test_the_command_takes_any_form(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = iter([NFD_NEW, NFD_NEW])
    monkeypatch.setattr("getpass.getpass", lambda *args, **options: next(typed))
    call_command("changepassword", "ann")
    assert logs_in(NEW)


def test_rules_are_asked_of_the_form_that_is_kept(ann: User) -> None:
    with pytest.raises(actions.ValidationError):
        actions.check_password_shape("ｐａｓｓｗｏｒｄ", ann)  # noqa: RUF001


@pytest.mark.parametrize("form", FORMS)
def test_an_old_hash_of_another_form_opens_and_is_renewed(form: str) -> None:
    old = make_password(FORMS[form])
    user: User = UserFactory(username="ann", password=old)
    assert user.check_password(FORMS[form])  # a confirmation renews nothing: that would end its session
    user.refresh_from_db()
    assert user.password == old
    assert logs_in(FORMS[form])
    assert all(logs_in(other) for other in FORMS.values())
    user.refresh_from_db()
    assert (user.password == old) is (form == "NFKC")


def test_a_session_outlives_its_confirmation_with_an_old_hash() -> None:
    user: User = UserFactory(username="ann", password=make_password(FORMS["NFD"]))
    page = logged_in(user)
    assert page.post("/settings/confirm", {"password": FORMS["NFD"]}).status_code == 302
    assert page.get("/settings").status_code == 200


def test_other_passwords_open_nothing(ann: User) -> None:
    for wrong in ("", PASSWORD, WORDS.upper(), WORDS + " ", "x" * 4096):
        assert token(wrong) == 400
        assert not ann.check_password(wrong)
