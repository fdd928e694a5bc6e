from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from accounts.models import User
from items.models import Item, Visibility
from tests.support.pictures import jpeg

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_folder")]
NEW = "/items/new"
FIRST = {"text": "one", "visibility": "followers", "repliable_by": "nobody", "language": "de", "key": "0" * 32}


@pytest.fixture
def page(client: Client, ann: User) -> Client:
    client.force_login(ann)
    return client


def picture() -> SimpleUploadedFile:
    return SimpleUploadedFile("a.jpg", jpeg(60, 40), "image/jpeg")


def test_a_thread_without_javascript(page: Client, ann: User) -> None:
    begun = page.post(NEW, FIRST | {"more": "1", "file_1": picture(), "file_description_1": "a corner"})
    text = begun.content.decode()
    assert begun.status_code == 200
    assert 'name="2-text"' in text
    assert 'name="posts" value="2"' in text
    assert "Write something" not in text
    assert not Item.objects.exists()
    media = text.split('name="media" value="')[1].split('"')[0]
    second = {"2-text": "two", "2-warning": "long", "2-option_1": "yes", "2-option_2": "no", "posts": "2"}
    again = page.post(NEW, FIRST | second | {"more": "1", "media": media, "keeps": "1", "keep": media})
    assert 'value="3"' in again.content.decode()
    third = {"3-text": "", "posts": "3"}
    sent = FIRST | second | third | {"media": media, "description": "a corner"}
    answer = page.post(NEW, sent | {"3-file_1": picture()})
    assert answer.status_code == 302
    first, poll, image = Item.objects.order_by("pk")
    assert answer["Location"] == f"/items/{first.pk}"
    assert [one.type for one in (first, poll, image)] == ["image", "poll", "image"]
    assert (poll.reply_to_id, image.reply_to_id, image.root_id) == (first.pk, poll.pk, first.pk)
    assert poll.content["warning"] == "long"
    assert {one.visibility for one in (first, poll, image)} == {Visibility.FOLLOWERS}
    assert {one.content["language"] for one in (first, poll, image)} == {"de"}
    assert first.repliable_by == "nobody"


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an empty one": ({"3-text": ""}, "Write something first."),
    "a long one": ({"3-text": "c" * 5_001}, "5000"),
    "half a poll": ({"3-option_1": "yes"}, "poll"),
    "a time": ({"publish_at": "2030-01-01T10:00"}, "A thread can&#39;t be scheduled. Remove the time first."),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_an_error_stands_at_its_post(page: Client, case: str, headers: dict[str, str]) -> None:
    more, words = REFUSED[case]
    answer = page.post(NEW, FIRST | {"2-text": "two", "3-text": "three", "posts": "3"} | more, headers=headers)
    text = answer.content.decode()
    assert answer.status_code == 422
    assert words in text
    assert "two</textarea>" in text
    assert text.count('<form class="composer part"') == (2 if headers else 0)
    assert not Item.objects.exists()


def test_the_rate_counts_each_post(page: Client, settings: Any) -> None:
    settings.RATES = settings.RATES | {"publish": "3/minute"}
    sent = FIRST | {"2-text": "two", "posts": "2"}
    assert page.post(NEW, sent).status_code == 302
    refused = page.post(NEW, sent | {"key": "1" * 32})
    assert (refused.status_code, Item.objects.count()) == (422, 2)
    assert "posted a lot" in refused.content.decode()


@pytest.mark.parametrize("posts", ["26", "99999999"])
def test_too_many_posts(page: Client, posts: str) -> None:
    assert page.post(NEW, FIRST | {"posts": posts}).status_code == 400
    assert page.get(f"/items/new/part?number={posts}").status_code == 400


def test_home_keeps_the_first_choices_of_its_reader(page: Client, ann: User) -> None:
    text = page.get("/").content.decode()
    assert "data-short" in text, "the usual choices come with the script"
    assert 'value="followers" checked' not in text
    ann.post_visibility, ann.post_repliable_by = "followers", "nobody"
    ann.save()
    text = page.get("/").content.decode()
    assert 'value="followers" checked' in text
    assert '<option value="nobody" selected>' in text
