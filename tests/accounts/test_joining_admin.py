import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from accounts.about import site
from accounts.joining import actions as joining
from accounts.joining import invitations
from accounts.joining_models import Application, Invitation
from accounts.models import User
from tests.support.factories import PASSWORD, UserFactory
from tests.support.pages import logged_in

pytestmark = pytest.mark.django_db

QUEUE = "/admin/accounts/application/"


@pytest.fixture
def page(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("keeper", PASSWORD))
    return client


def waiting(*names: str) -> list[Application]:
    return [joining.apply(joining.SignUpInput(name, PASSWORD, reason=f"I am {name}.")) for name in names]


def act(page: Client, action: str, rows: list[Any], address: str = QUEUE, **more: str) -> str:
    fields = {"action": action, "_selected_action": [row.pk for row in rows], **more}
    return page.post(address, fields, follow=True).content.decode()


def test_applications_are_approved_in_bulk(page: Client) -> None:
    rows = waiting("ann", "bob", "cem")
    assert "I am ann." in page.get(QUEUE).content.decode()
    assert "2 accounts created." in act(page, "approve", rows[:2])
    assert {user.username for user in User.objects.all()} == {"keeper", "ann", "bob"}
    assert [row.username for row in Application.objects.all()] == ["cem"]
    assert all("ann" not in entry.object_repr for entry in LogEntry.objects.all())


def test_applications_are_rejected_after_a_question(page: Client) -> None:
    rows = waiting("ann", "bob")
    assert "ann" in act(page, "reject", rows)
    assert Application.objects.count() == 2
    assert "2 applications rejected." in act(page, "reject", rows, confirmed="yes")
    assert not Application.objects.exists()


def test_one_application_is_decided_on_its_page(page: Client) -> None:
    (row,) = waiting("ann")
    said = page.get(f"{QUEUE}{row.pk}/change/").content.decode()
    assert "I am ann." in said
    assert 'form="approve"' in said
    assert PASSWORD not in said
    assert "md5" not in said, "no hash of a password"


def test_a_name_that_was_taken_meanwhile_is_told(page: Client) -> None:
    rows = waiting("ann", "bob")
    UserFactory(username="ANN")
    said = act(page, "approve", rows)
    assert "This username is taken." in said
    assert "1 account created." in said


def test_staff_without_the_permission_decide_nothing(client: Client) -> None:
    rows = waiting("ann")
    client.force_login(UserFactory(is_staff=True))
    assert client.get(QUEUE).status_code == 403
    act(client, "approve", rows)
    assert Application.objects.exists()


@pytest.mark.slow
def test_invitations_are_listed_and_revoked(page: Client) -> None:
    keeper = User.objects.get(username="keeper")
    row = invitations.create(user=keeper)
    joining.join(joining.SignUpInput("ann", PASSWORD), invite=row.code)
    other = invitations.create(user=keeper)
    address = "/admin/accounts/invitation/"
    assert page.get(address).status_code == 200
    assert "@ann" in page.get(f"{address}{row.pk}/change/").content.decode()
    assert "1 invitation revoked." in act(page, "revoke", [other], address)
    assert not invitations.is_valid(other.code)


@pytest.mark.slow
def test_members_make_invitations_where_the_site_lets_them(client: Client) -> None:
    ann = UserFactory(username="ann")
    client.force_login(ann)
    assert client.get("/settings/invitations").status_code == 404
    assert "/settings/invitations" not in client.get("/settings").content.decode()
    site.site_copy.set(site.Site(members_invite=True))
    assert "/settings/invitations" in client.get("/settings").content.decode()
    assert client.post("/settings/invitations", {"most_uses": "3", "days": "7"}).status_code == 302
    row = Invitation.objects.get()
    assert (row.made_by, row.most_uses) == (ann, 3)
    shown = client.get("/settings/invitations").content.decode()
    assert f"http://testserver/invite/{row.code}" in shown
    assert re.search(r"expires \d+ \w+ \d{4}, \d\d:\d\d<", shown)
    for fields in ({"most_uses": "11", "days": "7"}, {"most_uses": "1", "days": ""}, {"most_uses": "x", "days": "2"}):
        assert client.post("/settings/invitations", fields).status_code == 422
    other = logged_in(UserFactory())
    other.post(f"/settings/invitations/{row.pk}/revoke")
    assert invitations.is_valid(row.code)
    client.post(f"/settings/invitations/{row.pk}/revoke")
    assert not invitations.is_valid(row.code)
