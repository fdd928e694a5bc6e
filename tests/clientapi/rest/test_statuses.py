"""Each request has its own transaction, as on the site."""

from typing import Any

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
