import threading
from collections.abc import Callable

import pytest
from django.db import transaction
from oauth2_provider.models import AccessToken

from accounts.actions import issue_token
from accounts.models import User
from items.models import Status
from moderation import actions, senders
from moderation.models import Case, Decision, SenderKind, SenderRule, Verb
from tests.support.at_once import at_once, until_one_waits
from tests.support.cases import log, status
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db


@pytest.mark.slow
def test_a_ban_and_its_end(held: Case, sender: User, moderator: User) -> None:
    issue_token(user=sender)
    actions.reject_and_ban(case=held, by=moderator, note="enough")
    sender.refresh_from_db()
    assert not sender.is_active
    assert not AccessToken.objects.filter(user=sender).exists()
    assert SenderRule.objects.get(user=sender).kind == SenderKind.BAN
    assert status(held.item) == Status.REJECTED
    assert [verb for verb, _ in log()] == ["hold", "reject", "ban"]

    assert senders.unban(user=sender, by=moderator)
    sender.refresh_from_db()
    assert sender.is_active
    assert not SenderRule.objects.exists()
    assert status(held.item) == Status.REJECTED
    assert not senders.unban(user=sender, by=moderator)
    assert [verb for verb, _ in log()][3:] == ["unban"]


def test_staff_is_not_banned(held: Case, sender: User, moderator: User) -> None:
    User.objects.filter(pk=sender.pk).update(is_staff=True)
    with pytest.raises(PermissionError):
        actions.reject_and_ban(case=held, by=moderator)
    assert status(held.item) == Status.IN_REVIEW
    with pytest.raises(PermissionError):
        senders.ban(user=moderator, by=moderator)


Second = Callable[[User, User], object]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "second",
    [
        lambda user, by: senders.list_sender(user=user, kind=SenderKind.BLACK, by=by),
        lambda user, by: senders.unban(user=user, by=by),
        lambda user, by: senders.unlist_sender(user=user, by=by),
        lambda user, by: senders.reactivate_unless_banned(user=user),
        lambda user, by: senders.ban(user=user, by=by),
    ],
)
@pytest.mark.parametrize("is_active", [True, False])
def test_what_comes_beside_a_ban_waits_for_it(second: Second, is_active: bool, moderator: User) -> None:
    """A user is hidden exactly if banned, in any order of the two verbs."""
    user = UserFactory.create(is_active=is_active)
    by = UserFactory.create(is_staff=True)
    banned = threading.Event()

    def first() -> None:
        with transaction.atomic():
            assert senders.ban(user=user, by=moderator)
            banned.set()
            until_one_waits()

    def then() -> None:
        assert banned.wait(30)
        second(user, by)

    assert at_once(first, then) == [None, None]
    is_banned = SenderRule.objects.filter(user=user, kind=SenderKind.BAN).exists()
    assert User.objects.get(pk=user.pk).is_active is not is_banned
    assert Decision.objects.filter(verb=Verb.BAN).count() == 1


@pytest.mark.django_db(transaction=True)
def test_users_who_become_staff_beside_a_ban_are_not_banned(moderator: User) -> None:
    user = UserFactory.create()
    promoted = threading.Event()

    def promote() -> None:
        with transaction.atomic():
            User.objects.filter(pk=user.pk).update(is_staff=True)
            promoted.set()
            until_one_waits()

    def then() -> None:
        assert promoted.wait(30)
        senders.ban(user=user, by=moderator)

    done, refused = at_once(promote, then)
    assert done is None
    assert isinstance(refused, PermissionError)
    assert User.objects.get(pk=user.pk).is_active


def test_a_sender_is_on_one_list_at_most(sender: User, moderator: User) -> None:
    senders.list_sender(user=sender, kind=SenderKind.BLACK, by=moderator, reason="spammer")
    senders.list_sender(user=sender, kind=SenderKind.WHITE, by=moderator)
    assert SenderRule.objects.get().kind == SenderKind.WHITE
    assert [(line.before, line.after) for line in Decision.objects.order_by("pk")] == [
        ({"list": None}, {"list": "black"}),
        ({"list": "black"}, {"list": "white"}),
    ]
    assert senders.unlist_sender(user=sender, by=moderator)
    assert not senders.unlist_sender(user=sender, by=moderator)
