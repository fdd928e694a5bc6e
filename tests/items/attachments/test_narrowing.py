"""A file's address is valid only for the audience that its post was published for."""

from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from rest_framework.test import APIClient

from accounts.models import User
from items import actions
from items.hydrate import hydrate
from items.models import LISTED, Item, Visibility, is_within
from media import sweeping
from media.files import StoreError
from media.models import FileMove, MediaFile
from media.store import store
from relations.actions import follow
from tests.support.api import API, client_of
from tests.support.at_once import at_once
from tests.support.factories import UserFactory, say
from tests.support.pages import logged_in
from tests.support.picture_posts import posted, sent
from tests.support.pictures import files_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media_folder")]


def files(item: Item) -> list[str]:
    return [name for row in MediaFile.objects.filter(item_id=item.pk).order_by("pk") for name in row.files]


def consistent(item: Item, folder: Path) -> None:
    item.refresh_from_db()
    assert [one["name"] for one in item.media] == [name.partition(".")[0] for name in files(item)[::2]]
    assert {str(path.relative_to(folder / "files")) for path in files_of(folder)} == set(files(item))


@pytest.mark.parametrize("before", LISTED)
@pytest.mark.parametrize("after", LISTED)
def test_a_narrower_audience_renames_files_and_a_wider_one_does_not(
    ann: User, media_folder: Path, before: Visibility, after: Visibility
) -> None:
    item = posted(ann, sent(ann), sent(ann))
    Item.objects.filter(pk=item.pk).update(visibility=before)
    old = files(item)
    actions.change_visibility(item=item, visibility=after)
    is_narrower = before != after and is_within(after, before)
    assert len(set(old) & set(files(item))) == (0 if is_narrower else 4)
    assert [name for name in old if store().has(name)] == ([] if is_narrower else old)
    consistent(item, media_folder)


def test_all_that_show_the_post_have_the_new_address(ann: User, bob: User) -> None:
    follow(follower=bob, followee=ann)
    item = posted(ann, sent(ann))
    actions.repost(sender=ann, item=item)
    quote = say(ann, quote_of=item)
    old = item.media[0]["name"]
    actions.change_visibility(item=item, visibility=Visibility.FOLLOWERS)
    item.refresh_from_db()
    new = item.media[0]["name"]
    client = logged_in(bob)
    shown = hydrate([quote.pk], bob)[0].quote
    assert shown is not None
    assert shown.item is not None
    assert new in shown.item.media[0].url
    for path in ("/", f"/items/{item.pk}", f"/items/{quote.pk}", "/@ann", "/@ann/media"):
        page = client.get(path).content.decode()
        assert new in page, path
        assert old not in page, path
    home = client_of(bob).get(f"{API}/timeline/home").content.decode()
    assert new in home
    assert old not in home


@pytest.mark.parametrize("path", ["/", "/@ann", "/items/{item}", "/items/{quote}", "/@ann/feed.atom"])
def test_a_page_kept_from_before_is_not_shown_once_the_post_is_public_again(ann: User, path: str) -> None:
    item = posted(ann, sent(ann), text="zebra")
    path = path.format(item=item.pk, quote=say(UserFactory(), quote_of=item).pk)
    old = item.media[0]["name"]
    for _ in range(3):
        assert old in Client().get(path).content.decode()
    actions.change_visibility(item=item, visibility=Visibility.FOLLOWERS)
    actions.change_visibility(item=item, visibility=Visibility.PUBLIC)
    item.refresh_from_db()
    page = Client().get(path).content.decode()
    assert old not in page
    assert item.media[0]["name"] in page


def test_what_the_store_refuses_is_renamed_by_the_sweep(
    ann: User, media_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a kill between commit and rename."""
    item = posted(ann, sent(ann))
    old = files(item)

    def away(name: str, to: str) -> None:
        raise StoreError("away")

    with monkeypatch.context() as patch:
        patch.setattr(store(), "move", away)
        actions.change_visibility(item=item, visibility=Visibility.SELF)
    assert store().has(old[0])
    sweeping.sweep()
    assert not store().has(old[0])
    consistent(item, media_folder)


def test_narrowing_holding_and_editing_at_once(ann: User, media_folder: Path) -> None:
    item = posted(ann, sent(ann), sent(ann), text="words")

    def narrow() -> None:
        for audience in [Visibility.FOLLOWERS, Visibility.PUBLIC] * 4:
            actions.change_visibility(item=item, visibility=audience)

    def hold() -> None:
        for _ in range(4):
            actions.hold(item=item, reasons=["x"])
            actions.approve(item=item)

    def turn() -> None:
        for _ in range(4):
            item.refresh_from_db()
            actions.edit(item=item, content=item.content | {"media": item.content["media"][::-1]})

    assert at_once(narrow, hold, turn, lambda: [sweeping.sweep() for _ in range(9)])[:3] == [None] * 3
    while FileMove.objects.exists():
        assert sweeping.sweep()
    item.refresh_from_db()
    names = {row.name: str(row.pk) for row in MediaFile.objects.all()}
    assert [names[one["name"]] for one in item.media] == item.content["media"]
    assert {str(path.relative_to(media_folder / "files")) for path in files_of(media_folder)} == set(files(item))


# --- PATCH of the API ------------------------------------------------------------------------------------
def test_the_api_changes_the_audience(ann: User) -> None:
    client = client_of(ann)
    item = posted(ann, sent(ann), text="words")
    old = files(item)
    address = f"{API}/items/{item.pk}"
    before = Item.objects.get(pk=item.pk)
    answer = client.patch(address, {"visibility": "followers"})
    assert answer.status_code == 200, answer.content
    assert answer.json()["visibility"] == "followers"
    assert answer.json()["media"][0]["url"].endswith(files(item)[0])
    assert not store().has(old[0])
    assert Item.objects.get(pk=item.pk).modified_at == before.modified_at
    both = client.patch(address, {"visibility": "public", "content": {"text": "other"}}).json()
    assert (both["visibility"], both["content"]["text"]) == ("public", "other")


def test_the_api_shows_new_words_to_the_narrower_audience_alone(ann: User) -> None:
    item = say(ann, "old")
    seen: list[str] = []

    def look(*, item: Item, **fields: Any) -> Item:
        seen.append(Item.objects.get(pk=item.pk).visibility)
        return edit(item=item, **fields)

    edit = actions.edit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(actions, "edit", look)
        for audience in ("self", "public"):
            client_of(ann).patch(f"{API}/items/{item.pk}", {"visibility": audience, "content": {"text": audience}})
    assert seen == ["self", "self"]


def test_what_the_api_refuses(ann: User, bob: User) -> None:
    item, reposted = say(ann), actions.repost(sender=ann, item=say(bob))[0]
    private = say(ann, f"@{bob.username} hello", visibility="mentioned")
    client: APIClient = client_of(ann)
    for one, asked in (
        (item, "mentioned"),
        (item, "all"),
        (item, ""),
        (item, None),
        (reposted, "public"),
        (reposted, "self"),
        (private, "public"),
        (private, "mentioned"),
    ):
        answer = client.patch(f"{API}/items/{one.pk}", {"visibility": asked, "extra_info": {"a": 1}})
        assert answer.status_code == 400, (asked, answer.content)
        fresh = Item.objects.get(pk=one.pk)
        assert (fresh.visibility, fresh.extra_info) == (one.visibility, {})
    assert client_of(bob).patch(f"{API}/items/{item.pk}", {"visibility": "self"}).status_code == 403
    with transaction.atomic():
        actions.change_visibility(item=item, visibility=Visibility.SELF)
    assert client_of(bob).patch(f"{API}/items/{item.pk}", {"visibility": "self"}).status_code == 404
