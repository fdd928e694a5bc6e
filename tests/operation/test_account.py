import io
import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import CommandError, call_command
from django.test import Client

from accounts import addresses
from accounts.actions import issue_token
from accounts.models import Authenticator, User
from accounts.signing_in.second_factors import Type
from moderation.models import Decision, SenderRule, Verb
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db

PASSWORD = "a long enough one"


def account(*words: str) -> str:
    out = io.StringIO()
    call_command("account", *words, stdout=out)
    return out.getvalue()


def logged(user: User) -> list[str]:
    entries = LogEntry.objects.filter(object_id=str(user.pk)).order_by("pk")
    return [entry.change_message for entry in entries]


def path_of(said: str) -> str:
    found = re.search(r"http://[^/]+(/\S+)", said)
    assert found, said
    return found[1]


def test_an_account_is_made_and_its_owner_sets_the_password(client: Client) -> None:
    path = path_of(account("make", "mira", "--email", "Mira@example.org"))
    mira = User.objects.get(username="mira")
    assert addresses.confirmed_address(mira) == "mira@example.org"
    assert client.post(path, {"new": PASSWORD}).status_code == 302
    assert client.login(username="mira", password=PASSWORD)
    assert logged(mira) == ["By a command of the operator: made the account."]


@pytest.mark.parametrize("words", [("mira",), ("MIRA",), ("no spaces",), ("tomas", "--email", "ann@example.org")])
def test_an_account_that_cannot_be_made(words: tuple[str, ...]) -> None:
    UserFactory(username="mira", email="ann@example.org")
    with pytest.raises(CommandError):
        account("make", *words)
    assert User.objects.count() == 1


def test_powers_are_given_and_taken() -> None:
    ann, bob = UserFactory.create(username="ann"), UserFactory.create(username="bob")
    assert "is an administrator." in account("promote", "@ann")
    assert "is already an administrator." in account("promote", "ann")
    assert "is a moderator." in account("promote", "bob", "--moderator")
    ann, bob = User.objects.get(pk=ann.pk), User.objects.get(pk=bob.pk)
    assert (ann.is_staff, ann.is_superuser, bob.is_staff, bob.is_superuser) == (True, True, True, False)
    assert bob.has_perm("moderation.decide_case")
    with pytest.raises(CommandError, match="the last administrator"):
        account("demote", "ann")
    assert "is an ordinary member now." in account("demote", "bob")
    assert "is an ordinary member already." in account("demote", "bob")
    bob = User.objects.get(pk=bob.pk)
    assert (bob.is_staff, bob.has_perm("moderation.decide_case")) == (False, False)
    assert logged(bob) == [
        "By a command of the operator: made a moderator.",
        "By a command of the operator: took all powers.",
    ]


def test_an_owner_is_let_in_again(client: Client, ann: User) -> None:
    token = issue_token(user=ann)
    path = path_of(account("reset-link", "ann"))
    assert client.post(path, {"new": PASSWORD}).status_code == 302
    assert client.get("/api/v1/timeline/home", headers={"Authorization": f"Token {token}"}).status_code == 401
    Authenticator.objects.create(user=ann, type=Type.TOTP, data={"secret": "x"})
    assert "can log in with the password alone." in account("remove-factors", "ann")
    assert "has no second factor." in account("remove-factors", "ann")
    assert len(logged(ann)) == 2


def test_bans_are_in_the_log_of_decisions(ann: User) -> None:
    assert "is banned." in account("ban", "ann", "--why", "spam")
    assert "is already banned." in account("ban", "ann")
    assert SenderRule.objects.get(user=ann).by is None
    with pytest.raises(CommandError, match="deactivated, banned or deleted"):
        account("promote", "ann")
    assert "is no longer banned." in account("unban", "ann")
    assert "is not banned." in account("unban", "ann")
    decisions = Decision.objects.order_by("pk").values_list("verb", "by", "note")
    assert list(decisions) == [
        (Verb.BAN, None, "By a command of the operator: spam"),
        (Verb.UNBAN, None, "By a command of the operator."),
    ]
    UserFactory(username="keeper", is_staff=True)
    with pytest.raises(CommandError, match="Demote them first"):
        account("ban", "keeper")


def test_a_deletion_asks_first(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda question: "an")
    with pytest.raises(CommandError, match=r"Nothing was deleted\."):
        account("delete", "ann")
    assert "ann is deleted." in account("delete", "ann", "--yes")
    ann.refresh_from_db()
    assert ann.deleted_at is not None
    assert logged(ann) == ["By a command of the operator: deleted the account."]
    with pytest.raises(CommandError, match="There is no user ann"):
        account("delete", "ann", "--yes")


@pytest.mark.parametrize("words", [(), ("promote",), ("praise", "ann")])
def test_wrong_words(words: tuple[Any, ...]) -> None:
    with pytest.raises(CommandError):
        account(*words)
