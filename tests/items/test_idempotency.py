from typing import Any

import pytest

from accounts.models import User
from items.actions import delete, edit, publish
from items.idempotency import IdempotencyConflictError, IdempotencyGoneError
from items.models import IdempotencyKey, Item, ItemType, Visibility
from tests.support.at_once import at_once
from tests.support.factories import UserFactory
from timeline.models import Delivery

pytestmark = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sender() -> User:
    return UserFactory.create()


def words(text: str = "words") -> dict[str, Any]:
    return {"text": text}


def test_a_repeated_call_gets_the_item_of_the_first(sender: User) -> None:
    first = publish(sender=sender, content=words(), idempotency_key="one")
    again = publish(sender=sender, content=words(), idempotency_key="one")
    other = publish(sender=sender, content=words(), idempotency_key="two")
    without = publish(sender=sender, content=words())
    stranger = publish(sender=UserFactory.create(), content=words(), idempotency_key="one")
    assert again == first
    assert len({first.pk, other.pk, without.pk, stranger.pk}) == 4
    assert [delivery.item_id for delivery in Delivery.objects.order_by("item_id")] == sorted(
        [first.pk, other.pk, without.pk, stranger.pk]
    )


@pytest.mark.parametrize(
    "change",
    [
        {"content": words("other")},
        {"title": "t"},
        {"visibility": Visibility.SELF},
        {"extra_info": {"a": 1}},
        {"type": ItemType.LINK},
    ],
)
def test_the_same_key_for_something_else_is_a_conflict(sender: User, change: dict[str, Any]) -> None:
    call: dict[str, Any] = {"sender": sender, "content": words(), "idempotency_key": "one"}
    publish(**call)
    with pytest.raises(IdempotencyConflictError):
        publish(**call | change)
    assert Item.objects.count() == 1


def test_the_key_holds_after_the_item_was_edited_and_says_when_it_was_deleted(sender: User) -> None:
    item = publish(sender=sender, content=words(), idempotency_key="one")
    edit(item=item, content=words("edited"))
    assert publish(sender=sender, content=words(), idempotency_key="one") == item
    delete(item=item)
    with pytest.raises(IdempotencyGoneError):
        publish(sender=sender, content=words(), idempotency_key="one")
    assert Item.objects.count() == 1


@pytest.mark.slow
@committed
def test_the_same_call_many_times_at_once_publishes_once(sender: User) -> None:
    results = at_once(*[lambda: publish(sender=sender, content=words(), idempotency_key="one")] * 8)
    assert {result.pk for result in results} == {Item.objects.get().pk}
    assert IdempotencyKey.objects.count() == 1
    assert Delivery.objects.count() == 1


@committed
def test_two_things_under_one_key_at_once(sender: User) -> None:
    results = at_once(
        lambda: publish(sender=sender, content=words("a"), idempotency_key="one"),
        lambda: publish(sender=sender, content=words("b"), idempotency_key="one"),
    )
    assert {type(result) for result in results} == {Item, IdempotencyConflictError}
    assert Item.objects.count() == 1
