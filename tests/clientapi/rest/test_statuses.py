"""Each request has its own transaction, as on the site."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from accounts.models import User
from items import actions as items
from items.models import Item
from items.text import ContentError
from media import attaching
from media.models import MediaFile, Use
from media.store import store
from tests.support.at_once import at_once
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
    """Each call has its own transaction time."""
    caller = Caller(user)
    status = caller.post("v1/statuses", {"status": "one"})
    assert status["edited_at"] is None
    edited = caller.put(f"v1/statuses/{status['id']}", {"status": "two"})
    assert edited["edited_at"] >= status["created_at"]
    assert caller.get(f"v1/statuses/{status['id']}")["edited_at"] == edited["edited_at"]


@pytest.mark.parametrize("name", ["media_ids", "media_ids[]", "media_ids[0]"])
def test_pictures_are_named_by_either_spelling(name: str, user: User) -> None:
    picture = sent(user)
    shown = Caller(user).post("v1/statuses", {"status": "Look", name: picture if name.endswith("0]") else [picture]})
    assert [one["id"] for one in shown["media_attachments"]] == [picture]
    shown = Caller(user).put(
        f"v1/statuses/{shown['id']}", {"status": "Look", name: ["", picture] if "0" not in name else picture}
    )
    assert [one["id"] for one in shown["media_attachments"]] == [picture]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"mediaIds": ["1"]}, 422),
        ({"attachments": [{"id": "1"}]}, 422),
        ({"media_ids[": ["1"]}, 400),
        ({"media_ids[][x][y][z]": ["1"]}, 400),
        ({"media_ids[x": "1"}, 400),
        ({"status[media_ids][]": ["1"]}, 400),
    ],
)
def test_data_under_an_unknown_name_is_not_passed_over(fields: dict[str, Any], status: int, user: User) -> None:
    caller = Caller(user)
    caller.post("v1/statuses", {"status": "Look", "language": "en", "local_only": False})
    caller.post("v1/statuses", {"status": "Look", **fields}, status=status)
    assert Item.objects.count() == 1


def test_blank_means_not_sent(user: User) -> None:
    picture = sent(user)
    blank = {
        "scheduled_at": "",
        "poll": {},
        "quoted_status_id": "",
        "quote_id": None,
        "in_reply_to_id": "",
        "visibility": "",
        "sensitive": "",
        "spoiler_text": "",
        "language": "",
    }
    shown = Caller(user).post("v1/statuses", {"status": "Look", "media_ids": ["", picture, None], **blank})
    assert [one["id"] for one in shown["media_attachments"]] == [picture]
    assert (shown["visibility"], shown["sensitive"]) == ("public", False)
    poll = {"options": ["", ""], "expires_in": "", "multiple": ""}
    Caller(user).post("v1/statuses", {"status": "Look", "media_ids": [""], "poll": poll})
    Caller(user).ask("post", "v1/statuses", {"status": "x", "media_ids[]": "", "poll[options][]": ""}, form=True)
    sensitive = Caller(user).put(f"v1/statuses/{shown['id']}", {"status": "Look", "sensitive": True})
    assert sensitive["sensitive"]
    assert Caller(user).put(f"v1/statuses/{shown['id']}", {"status": "Look", "sensitive": ""})["sensitive"]
    for sent_poll in ({"options": ["a", "b"], "expires_in": 299}, [{"options": ["a"]}]):
        Caller(user).post("v1/statuses", {"status": "Look", "poll": sent_poll}, status=422)


def test_a_link_counts_for_as_many_letters_as_the_site_says(user: User) -> None:
    caller, link = Caller(user), f"https://example.org/{'a' * 199}"
    told = caller.get("v2/instance")["configuration"]["statuses"]
    most, reserved = told["max_characters"], told["characters_reserved_per_url"]
    assert (len(link), most, reserved) == (219, 5_000, 23)
    text = "b" * 4_900 + f" {link}"
    shown = caller.post("v1/statuses", {"status": text})
    assert caller.get(f"v1/statuses/{shown['id']}/source")["text"] == text
    full = "b" * (most - reserved - 1) + f" {link}"
    edited = caller.put(f"v1/statuses/{shown['id']}", {"status": full})
    assert link in edited["content"]
    for long in (f"b{full}", "b" * (most + 1), f"{link} " * 100):
        caller.post("v1/statuses", {"status": long}, status=422)
        caller.put(f"v1/statuses/{shown['id']}", {"status": long}, status=422)
    short = "b" * (most - 13) + " https://a.io"
    caller.post("v1/statuses", {"status": short})


def test_a_deleted_picture_can_be_posted_again_by_its_author_for_a_day(user: User) -> None:
    picture, caller = sent(user, description="one"), Caller(user)
    first = posted(user, picture, text="Look")
    before = caller.get(f"v1/statuses/{first.pk}")["media_attachments"][0]["url"]
    (shown,) = caller.delete(f"v1/statuses/{first.pk}")["media_attachments"]
    assert (shown["id"], shown["description"], shown["url"] != before) == (picture, "one", True)
    assert is_served(shown["url"])
    assert not is_served(before)
    other = Caller(UserFactory())
    other.get(f"v1/media/{picture}", status=404)
    other.post("v1/statuses", {"status": "x", "media_ids": [picture]}, status=422)
    caller.put(f"v1/media/{picture}", {"description": "two"})
    (again,) = caller.post("v1/statuses", {"status": "Look", "media_ids": [picture]})["media_attachments"]
    assert (again["id"], again["description"]) == (picture, "two")
    caller.post("v1/statuses", {"status": "x", "media_ids": [picture]}, status=422)
    assert items.restore(item=first)
    assert caller.get(f"v1/statuses/{first.pk}")["media_attachments"] == []
    assert is_served(again["url"])


def test_a_restored_post_has_its_picture_again(user: User) -> None:
    picture, caller = sent(user), Caller(user)
    first = posted(user, picture, text="Look")
    caller.delete(f"v1/statuses/{first.pk}")
    assert items.restore(item=first)
    assert [one["id"] for one in caller.get(f"v1/statuses/{first.pk}")["media_attachments"]] == [picture]
    caller.post("v1/statuses", {"status": "x", "media_ids": [picture]}, status=422)


def test_what_moderators_or_time_took_is_not_posted_again(user: User) -> None:
    caller = Caller(user)
    hidden, held, old, unwanted = (sent(user) for _ in range(4))
    first, second, third = (posted(user, one, text="Look") for one in (hidden, held, old))
    with transaction.atomic():
        attaching.hide(first.pk, None)
    items.hold(item=second, reasons=[])
    for item in (first, second, third):
        caller.delete(f"v1/statuses/{item.pk}")
    MediaFile.objects.filter(pk=old).update(withdrawn_at=timezone.now() - attaching.AGAIN)
    fourth = posted(user, unwanted, text="Look")
    assert caller.delete(f"v1/statuses/{fourth.pk}?delete_media=true")["media_attachments"]
    for picture in (hidden, held, old, unwanted):
        caller.get(f"v1/media/{picture}", status=404)
        caller.post("v1/statuses", {"status": "x", "media_ids": [picture]}, status=422)


def test_a_picture_is_scheduled_again_and_published_once(user: User) -> None:
    picture, caller = sent(user), Caller(user)
    caller.delete(f"v1/statuses/{posted(user, picture, text='Look').pk}")
    later = {"status": "Look", "media_ids": [picture], "scheduled_at": timezone.now() + timedelta(hours=1)}
    found = caller.post("v1/statuses", later)
    assert [one["id"] for one in found["media_attachments"]] == [picture]
    caller.post("v1/statuses", {"status": "x", "media_ids": [picture]}, status=422)


def test_of_posts_and_a_restoring_at_once_one_gets_the_picture(user: User) -> None:
    picture = sent(user)
    first = posted(user, picture, text="Look")
    Caller(user).delete(f"v1/statuses/{first.pk}")
    done = at_once(*[partial(posted, user, picture, text="Look")] * 3, partial(items.restore, item=first))
    assert done[3] is True
    assert sum(isinstance(one, Item) for one in done[:3]) + sum(isinstance(one, ContentError) for one in done[:3]) == 3
    (holder,) = Item.objects.exclude(media=[])
    medium = MediaFile.objects.get(pk=picture)
    assert (medium.item_id, medium.use, medium.withdrawn_at) == (holder.pk, Use.ITEM, None)


def is_served(address: str) -> bool:
    try:
        store().open(address.rpartition("/media/")[2]).close()
    except FileNotFoundError:
        return False
    return True


def test_own_posts_say_everywhere_whether_they_are_pinned(user: User) -> None:
    caller, other = Caller(user), Caller(UserFactory())
    first, second = (caller.post("v1/statuses", {"status": f"#cats {one}"})["id"] for one in ("a", "b"))
    caller.post(f"v1/statuses/{first}/pin")
    for one in (first, second):
        caller.post(f"v1/statuses/{one}/favourite")
        caller.post(f"v1/statuses/{one}/bookmark")
        other.post(f"v1/statuses/{one}/favourite")
    lists = ["timelines/home", "timelines/public", "timelines/tag/cats", "favourites", "bookmarks"]
    for path in (*lists, f"accounts/{user.pk}/statuses"):
        found = {one["id"]: one["pinned"] for one in caller.get(f"v1/{path}")}
        assert found == {first: True, second: False}, path
    assert {one["status"]["pinned"] for one in caller.get("v1/notifications")} == {True, False}
    assert {one["id"]: one["pinned"] for one in caller.get("v2/search?q=cats")["statuses"]}[first] is True
    assert all("pinned" not in one for one in other.get("v1/timelines/public"))
