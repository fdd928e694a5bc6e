import time
from collections.abc import Iterator
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import Group, Permission
from django.test import Client

from accounts.about import site
from accounts.models import User
from accounts.signing_in import step_up
from tests.support.factories import PASSWORD, UserFactory

pytestmark = pytest.mark.django_db

ASKED = "/settings/confirm?next="


@pytest.fixture
def page(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("keeper", password=PASSWORD))
    return client


@pytest.fixture
def later() -> Iterator[Any]:
    """After every open form has expired."""
    with time_machine.travel(time.time() + step_up.OPEN_SECONDS + 1, tick=False) as traveller:
        yield traveller


def dangers(user: User) -> list[tuple[str, dict[str, Any]]]:
    chosen = {"_selected_action": [user.pk], "confirmed": "1"}
    return [
        (f"/admin/accounts/user/{user.pk}/change/", {"is_superuser": "on"}),
        (f"/admin/accounts/user/{user.pk}/password/", {"password1": "x", "password2": "x"}),
        ("/admin/accounts/user/add/", {"username": "second"}),
        ("/admin/accounts/user/", chosen | {"action": "deactivate"}),
        ("/admin/accounts/user/", chosen | {"action": "forget_factors"}),
        ("/admin/auth/group/add/", {"name": "all"}),
        ("/admin/about/sitesettings/1/change/", {"name": "Taken over"}),
        ("/admin/about/rule/add/", {"number": 1, "text": "Obey."}),
        ("/admin/moderation/case/act/?of=users&ids=1", {"verb": "ban"}),
        ("/admin/moderation/case/", chosen | {"action": "ban"}),
    ]


def test_nothing_dangerous_is_done_without_a_recent_proof(page: Client, ann: User, later: Any) -> None:
    for address, fields in dangers(ann):
        answer = page.post(address, fields)
        assert answer["Location"].startswith(ASKED), address
    assert "Nothing has changed yet" in page.get("/settings/confirm").content.decode()
    ann.refresh_from_db()
    assert ann.is_active
    assert not ann.is_superuser
    assert not Group.objects.filter(name="all").exists()
    assert site.read().name == "feedsite"


def test_forms_that_write_are_not_even_opened_and_lists_are(page: Client, ann: User, later: Any) -> None:
    for address, _fields in dangers(ann)[:3]:
        assert page.get(address)["Location"].startswith(ASKED)
    assert page.get("/admin/accounts/user/?q=ann").status_code == 200
    assert page.get("/admin/moderation/case/").status_code == 200


def test_the_proof_leads_back(page: Client, ann: User, later: Any) -> None:
    address = f"/admin/accounts/user/{ann.pk}/change/?_changelist_filters=q%3Dann"
    asked = page.get(address)["Location"]
    assert page.post(asked, {"password": PASSWORD})["Location"] == address
    assert page.get(address).status_code == 200


def test_a_form_that_was_opened_in_time_is_taken(page: Client) -> None:
    with time_machine.travel(time.time() + step_up.SECONDS + 1, tick=False):
        address = "/admin/about/rule/add/"
        assert page.get(address).status_code == 302
        assert page.post(address, {"number": 1, "text": "Be kind."})["Location"] == "/admin/about/rule/"
    assert [rule.text for rule in site.read().rules] == ["Be kind."]


def test_staff_who_only_look_are_not_asked(client: Client, ann: User, later: Any) -> None:
    clerk: User = UserFactory(is_staff=True)
    clerk.user_permissions.add(Permission.objects.get(codename="view_user"))
    client.force_login(clerk)
    session = client.session
    session[step_up.PROVEN] = 1
    session.save()
    assert client.get(f"/admin/accounts/user/{ann.pk}/change/").status_code == 200


def test_strangers_meet_the_admins_own_door(client: Client, ann: User, later: Any) -> None:
    for address, fields in dangers(ann):
        assert client.post(address, fields)["Location"].startswith("/admin/login/")


def test_the_admin_bears_the_name_of_the_site(page: Client) -> None:
    page.post(
        "/admin/about/sitesettings/1/change/", {"name": "Reading room", "looking": "everybody", "sign_up": "open"}
    )
    site.site_copy.forget()
    shown = page.get("/admin/").content.decode()
    assert "Reading room" in shown
    assert "feedsite</a>" not in shown
