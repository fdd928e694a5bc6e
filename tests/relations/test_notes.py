"""Notes about people, in apps and on profiles. Only their owners see them."""

from functools import partial

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from relations import actions
from relations.models import NOTE_LENGTH, AccountNote
from tests.support.at_once import at_once
from tests.support.clients import Caller
from tests.support.factories import UserFactory
from tests.support.pages import logged_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return UserFactory(username="ann")


@pytest.fixture
def bob() -> User:
    return UserFactory(username="bob")


def test_an_app_writes_changes_and_removes_a_note(ann: User, bob: User) -> None:
    caller, address = Caller(ann), f"v1/accounts/{bob.pk}/note"
    assert caller.post(address, {"comment": " met in Ulm "})["note"] == "met in Ulm"
    assert caller.get(f"v1/accounts/relationships?id[]={bob.pk}")[0]["note"] == "met in Ulm"
    assert Caller(bob).get(f"v1/accounts/relationships?id[]={ann.pk}")[0]["note"] == ""
    assert caller.post(address, {"comment": "x"})["note"] == "x"
    assert caller.post(address)["note"] == ""
    assert not AccountNote.objects.exists()
    caller.post(address, {"comment": "x" * (NOTE_LENGTH + 1)}, status=422)
    caller.post(f"v1/accounts/{ann.pk}/note", {"comment": "me"}, status=422)
    Caller(ann, "read").post(address, {"comment": "x"}, status=403)


def test_nobody_notes_or_reads_about_somebody_unseen(ann: User, bob: User) -> None:
    actions.write_note(owner=ann, subject=bob, text="secret")
    actions.block(blocker=bob, blocked=ann)
    caller = Caller(ann)
    caller.post(f"v1/accounts/{bob.pk}/note", {"comment": "x"}, status=404)
    assert caller.get(f"v1/accounts/relationships?id[]={bob.pk}") == []
    assert logged_in(ann).get(reverse("note", args=["bob"])).status_code == 404


def test_the_profile_shows_the_note_to_its_owner(ann: User, bob: User) -> None:
    page, profile = logged_in(ann), reverse("profile", args=["bob"])
    assert "Add a private note" in page.get(profile).content.decode()
    answer = page.post(reverse("note", args=["bob"]), {"text": "<b>met</b> in Ulm"})
    assert answer.url == profile
    assert "&lt;b&gt;met&lt;/b&gt; in Ulm" in page.get(profile).content.decode()
    assert "in Ulm</textarea>" in page.get(reverse("note", args=["bob"])).content.decode()
    for other in (logged_in(bob), logged_in(UserFactory()), Client()):
        assert "in Ulm" not in other.get(profile).content.decode()
    assert "note about" not in Client().get(profile).content.decode().lower()
    assert page.post(reverse("note", args=["ann"]), {"text": "me"}).status_code != 302
    page.post(reverse("note", args=["bob"]), {"text": ""})
    assert not AccountNote.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_notes_written_at_once_are_one(ann: User, bob: User) -> None:
    write = partial(actions.write_note, owner=ann, subject=bob)
    assert at_once(*(partial(write, text=text) for text in "abcd")) == [None] * 4
    assert AccountNote.objects.get().text in "abcd"


@pytest.mark.parametrize(("name", "column"), [("avatar", "avatar"), ("header", "banner")])
def test_an_app_removes_pictures_of_the_profile(name: str, column: str, ann: User) -> None:
    facts = {"id": "1", "kind": "image", "name": "aa/bb", "ext": "jpg"}
    User.objects.filter(pk=ann.pk).update(**{column: facts})
    caller = Caller(ann)
    assert "/media/aa/bb" in caller.get("v1/accounts/verify_credentials")[name]
    assert "/media/aa/bb" not in caller.delete(f"v1/profile/{name}")[name]
    ann.refresh_from_db()
    assert getattr(ann, column) is None
    caller.delete(f"v1/profile/{name}")
    Caller(ann, "read").delete(f"v1/profile/{name}", status=403)
