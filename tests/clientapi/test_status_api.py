"""Edits of statuses with pictures, as apps send them. Each request has its own transaction, as on the site."""

import pytest

from accounts.models import User
from items.models import Item
from tests.support.clients import Caller
from tests.support.factories import UserFactory
from tests.support.picture_posts import posted, sent

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def user() -> User:
    return UserFactory(username="ann")


@pytest.mark.slow
def test_an_edit_describes_the_pictures(user: User) -> None:
    first, second = sent(user, description="one"), sent(user, description="two")
    item = posted(user, first, second, text="Look")
    fields = {"media_ids": [second, first], "media_attributes": [{"id": first, "description": "1", "focus": "0.5,-1"}]}
    shown = Caller(user).put(f"v1/statuses/{item.pk}", {"status": "Look here", **fields})
    assert [(one["id"], one["description"]) for one in shown["media_attachments"]] == [(second, "two"), (first, "1")]
    assert shown["media_attachments"][1]["meta"]["focus"] == {"x": 0.5, "y": -1.0}
    assert "Look here" in shown["content"]


@pytest.mark.slow
def test_an_edit_of_a_form_describes_too(user: User) -> None:
    picture = sent(user, description="one")
    item = posted(user, picture, text="Look")
    body = f"status=Look&media_ids[]={picture}&media_attributes[][id]={picture}&media_attributes[][description]=new"
    named = {"content_type": "application/x-www-form-urlencoded"}
    shown = Caller(user).ask("put", f"v1/statuses/{item.pk}", body, form=True, **named)
    assert shown["media_attachments"][0]["description"] == "new"


@pytest.mark.slow
def test_an_edit_is_done_as_a_whole_or_not_at_all(user: User) -> None:
    picture = sent(user, description="one")
    item = posted(user, picture, text="Look")
    wrong = {"status": "x", "media_ids": ["1"], "media_attributes": [{"id": picture, "description": "new"}]}
    Caller(user).put(f"v1/statuses/{item.pk}", wrong, status=422)
    now = Item.objects.get(pk=item.pk)
    assert (now.text, now.media[0]["description"]) == ("Look", "one")


@pytest.mark.django_db(transaction=True)
def test_an_edit_right_after_a_post_is_told(user: User) -> None:
    """Each call has a transaction of its own, and so a time of its own."""
    caller = Caller(user)
    status = caller.post("v1/statuses", {"status": "one"})
    assert status["edited_at"] is None
    edited = caller.put(f"v1/statuses/{status['id']}", {"status": "two"})
    assert edited["edited_at"] >= status["created_at"]
    assert caller.get(f"v1/statuses/{status['id']}")["edited_at"] == edited["edited_at"]
