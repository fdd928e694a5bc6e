from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import User
from items.actions import (
    change_visibility,
    delete,
    edit,
    publish,
    restore,
)
from items.models import Item, ItemType, Status, Visibility, was_edited
from items.signals import item_published
from items.text import TEXT_LENGTH, URL_LENGTH, ContentError
from operation.doctor import postgresql
from storage import ids
from tests.support.at_once import at_once
from tests.support.factories import ItemFactory, UserFactory
from timeline.home import home_page
from timeline.models import Delivery

pytestmark = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)

News = list[tuple[int, bool]]


@pytest.fixture
def sender() -> User:
    return UserFactory.create()


@pytest.fixture
def news() -> Iterator[News]:
    """Item id, and whether it was published again."""
    heard: News = []

    def hear(item: Item, again: bool, **kwargs: Any) -> None:
        assert connection.in_atomic_block
        heard.append((item.pk, again))

    item_published.connect(hear)
    yield heard
    item_published.disconnect(hear)


def words(text: str = "words") -> dict[str, Any]:
    return {"text": text}


def test_an_item_carries_the_time_of_its_publication(sender: User, news: News) -> None:
    before = datetime.now(UTC)
    item = publish(sender=sender, content=words("first"))
    after = datetime.now(UTC)
    stored = Item.objects.get(pk=item.pk)
    assert before - ids.MILLISECOND <= stored.created_at <= after
    assert stored.created_at == item.created_at == ids.moment(item.pk)
    assert (stored.sender, stored.text, stored.status, stored.visibility, stored.type) == (
        sender, "first", Status.PUBLISHED, Visibility.PUBLIC, ItemType.TEXT,
    )  # fmt: skip
    # modified_at is the start of the test's transaction, which a slow machine delays.
    assert abs(stored.modified_at - stored.created_at) < timedelta(minutes=1)
    assert news == [(item.pk, False)]


def test_every_field_is_kept(sender: User) -> None:
    root = ItemFactory.create()
    fields: dict[str, Any] = {
        "type": ItemType.LINK,
        "title": "A title",
        "content": {"url": "https://example.org/", "text": "中文 <b>", "width": 3},
        "extra_info": {"client": "test", "nested": [1, None]},
        "visibility": Visibility.MUTUALS,
        "reply_to": root,
    }
    stored = Item.objects.get(pk=publish(sender=sender, **fields).pk)
    assert {name: getattr(stored, name) for name in fields} == fields


def test_the_delivery_row_commits_with_the_item(sender: User) -> None:
    with transaction.atomic():
        item = publish(sender=sender, content=words())
        assert Delivery.objects.filter(item=item).exists()
        transaction.set_rollback(True)
    assert not Item.objects.exists()
    assert not Delivery.objects.exists()


def test_ids_ascend(sender: User) -> None:
    published = [publish(sender=sender, content=words()).pk for _ in range(50)]
    moments = [ids.moment(item_id) for item_id in published]
    assert moments == sorted(moments)
    assert len(set(published)) == 50


@pytest.mark.parametrize(
    ("item_type", "content"),
    [
        (ItemType.TEXT, {}),
        (ItemType.TEXT, {"text": " \n\t"}),
        (ItemType.TEXT, {"text": None}),
        (ItemType.TEXT, {"text": 5}),
        (ItemType.TEXT, {"text": "x" * (TEXT_LENGTH + 1)}),
        (ItemType.LINK, {}),
        (ItemType.LINK, {"url": "http://example.org/"}),
        (ItemType.LINK, {"url": "javascript:alert(1)"}),
        (ItemType.IMAGE, {"url": 7}),
        (ItemType.LINK, {"url": f"https://{'x' * URL_LENGTH}"}),
    ],
)
def test_content_that_does_not_fit_publishes_nothing(
    sender: User, news: News, item_type: str, content: dict[str, Any]
) -> None:
    with pytest.raises(ContentError):
        publish(sender=sender, type=item_type, content=content)
    assert not Item.objects.exists()
    assert news == []


@committed
def test_after_the_clock_was_set_back_new_items_stand_above_old_ones(sender: User) -> None:
    """It was two days ahead. Edits are still told from the first version, and from each other."""
    ahead = ids.compose(timezone.now() + timedelta(days=2), 0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval('feedsite_last_id', %s, false)", [ahead])
    try:
        old, new = publish(sender=sender, content=words("old")), publish(sender=sender, content=words("new"))
        assert [int(item.id) for item in home_page(sender).items] == [new.pk, old.pk]
        assert {finding.name: finding.state for finding in postgresql.postgresql()}["ids"] == "warning"
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT setval('feedsite_last_id', 1, false)")
    assert new.created_at == ids.moment(new.pk) == Item.objects.get(pk=new.pk).created_at
    times = [new.created_at, *(edit(item=new, content=words(f"edit {number}")).modified_at for number in range(3))]
    assert times == sorted(set(times))
    assert was_edited(new.created_at, times[1])
    publish(sender=sender, content=words("by the clock"))
    assert {finding.name: finding.state for finding in postgresql.postgresql()}["ids"] == "ok"


def test_an_id_that_is_taken_is_left_alone(sender: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the clock went back, a taken id is skipped."""
    taken = publish(sender=sender, content=words("mine"))
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE OR REPLACE FUNCTION feedsite_next_id() RETURNS bigint LANGUAGE sql VOLATILE AS"
            f" $$ SELECT {taken.pk} + nextval('stepped') $$".replace(
                "CREATE OR", "CREATE SEQUENCE stepped MINVALUE 0; CREATE OR"
            )
        )
    item = publish(sender=sender, content=words("other"))
    assert item.pk == taken.pk + 1
    assert [each.text for each in Item.objects.order_by("id")] == ["mine", "other"]


@pytest.mark.slow
@committed
def test_many_at_once_get_ids_of_their_own() -> None:
    senders = UserFactory.create_batch(8)

    def publish_some(sender: User) -> list[int]:
        return [publish(sender=sender, content=words()).pk for _ in range(20)]

    results = at_once(*(lambda sender=sender: publish_some(sender) for sender in senders))
    assert len({item_id for result in results for item_id in result}) == 160
    for result in results:
        assert [ids.moment(item_id) for item_id in result] == sorted(map(ids.moment, result))


def test_an_edit_changes_what_it_names(sender: User, news: News) -> None:
    item = publish(sender=sender, content=words(), title="old", extra_info={"a": 1})
    edited = edit(item=item, content=words("new"))
    stored = Item.objects.get(pk=item.pk)
    assert (stored.text, stored.title, stored.extra_info) == ("new", "old", {"a": 1})
    assert edit(item=item, title="", extra_info={}).title == ""
    stored = Item.objects.get(pk=item.pk)
    assert (stored.text, stored.title, stored.extra_info) == ("new", "", {})
    assert (stored.pk, stored.created_at) == (item.pk, item.created_at)
    assert edited.text == "new"
    assert news == [(item.pk, False)]


@committed
def test_an_edit_moves_the_time_of_modification(sender: User) -> None:
    item = publish(sender=sender, content=words())
    before = Item.objects.get(pk=item.pk).modified_at
    edited = edit(item=item, content=words("new"))
    assert edited.modified_at == Item.objects.get(pk=item.pk).modified_at > before


def test_an_edit_that_does_not_fit_changes_nothing(sender: User) -> None:
    item = publish(sender=sender, content=words("kept"))
    with pytest.raises(ContentError):
        edit(item=item, title="new", content={"text": ""})
    stored = Item.objects.get(pk=item.pk)
    assert (stored.text, stored.title, stored.modified_at) == ("kept", "", item.modified_at)


def test_an_edit_does_not_bring_back_what_was_deleted(sender: User) -> None:
    """The caller may have read the item before it was deleted."""
    item = publish(sender=sender, content=words())
    Item.objects.filter(pk=item.pk).update(status=Status.DELETED, visibility=Visibility.SELF)
    edit(item=item, content=words("new"))
    stored = Item.objects.get(pk=item.pk)
    assert (stored.status, stored.visibility) == (Status.DELETED, Visibility.SELF)


def test_delete_and_restore(sender: User, news: News) -> None:
    item = publish(sender=sender, content=words())
    assert delete(item=item) is True
    assert delete(item=item) is False
    assert Item.objects.get(pk=item.pk).status == Status.DELETED
    assert news == [(item.pk, False)]
    assert restore(item=item) is True
    assert restore(item=item) is False
    stored = Item.objects.get(pk=item.pk)
    assert (stored.status, stored.text) == (Status.PUBLISHED, "words")
    assert news == [(item.pk, False), (item.pk, True)]


@pytest.mark.parametrize("status", [Status.IN_REVIEW, Status.REJECTED, Status.DELETED])
def test_approval_delivers_again(sender: User, news: News, status: Status) -> None:
    item = ItemFactory.create(sender=sender, status=status)
    assert restore(item=item) is True
    assert news == [(item.pk, True)]
    assert Delivery.objects.filter(item=item).exists()


def test_showing_to_others_delivers_again(sender: User, news: News) -> None:
    item = ItemFactory.create(sender=sender, visibility=Visibility.SELF)
    assert change_visibility(item=item, visibility=Visibility.PUBLIC) is True
    assert change_visibility(item=item, visibility=Visibility.PUBLIC) is False
    assert Item.objects.get(pk=item.pk).visibility == Visibility.PUBLIC
    assert news == [(item.pk, True)]


@pytest.mark.parametrize("visibility", [Visibility.FOLLOWERS, Visibility.SELF])
def test_showing_to_fewer_delivers_nothing(sender: User, news: News, visibility: Visibility) -> None:
    """Nobody gains access, and pages hide the item from everybody else."""
    item = ItemFactory.create(sender=sender, visibility=Visibility.PUBLIC)
    assert change_visibility(item=item, visibility=visibility) is True
    assert news == []
    assert not Delivery.objects.filter(item=item).exists()


def test_unpublished_items_are_not_delivered_by_showing_them(sender: User, news: News) -> None:
    item = ItemFactory.create(sender=sender, status=Status.DELETED)
    assert change_visibility(item=item, visibility=Visibility.SELF) is True
    assert news == []
    assert Item.objects.get(pk=item.pk).status == Status.DELETED


@committed
def test_many_restorations_at_once_restore_once(sender: User, news: News) -> None:
    item = ItemFactory.create(sender=sender, status=Status.DELETED)
    assert sorted(at_once(*[lambda: restore(item=item)] * 6)) == [False] * 5 + [True]
    assert sorted(at_once(*[lambda: delete(item=item)] * 6)) == [False] * 5 + [True]
    assert news == [(item.pk, True)]
