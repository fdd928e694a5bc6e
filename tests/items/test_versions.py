from typing import Any

import pytest
from django.http import QueryDict
from django.test import Client

from accounts.models import User
from items import actions, purge, versions
from items.export import files
from items.models import Item, ItemVersion, Status
from items.pages.forms import EditForm
from items.pages.views import _edit
from relations.actions import follow
from tests.support.at_once import at_once
from tests.support.factories import UserFactory, say

pytestmark = pytest.mark.django_db


@pytest.fixture
def bob(ann: Any) -> Any:
    bob = UserFactory.create(username="bob")
    follow(follower=bob, followee=ann)
    return bob


def edit(item: Item, text: str) -> Item:
    return actions.edit(item=item, content={"text": text})


def seen_by(item: Item, reader: User) -> list[str]:
    return [version.text for version in versions.versions_of(item.pk, reader)]


def page(client: Client, item: Item) -> str:
    return client.get(f"/items/{item.pk}/edits").content.decode()


def test_an_edit_keeps_what_was_said_before(ann: Any, bob: Any, client: Client) -> None:
    item = say(ann, "first words")
    written = item.modified_at
    edit(item, "second words")
    edit(item, "second words")
    actions.edit(item=item, extra_info={"a": 1})
    edit(item, "third words")
    assert seen_by(item, bob) == ["second words", "first words"]
    assert versions.versions_of(item.pk, bob)[-1].written_at == written
    client.force_login(bob)
    shown = page(client, item)
    assert shown.index("third words") < shown.index("second words") < shown.index("first words")


@pytest.mark.slow
def test_the_newest_are_kept(ann: Any) -> None:
    item, other = say(ann, "text 0"), say(ann, "other 0")
    edit(other, "other 1")
    for number in range(1, versions.KEPT + 4):
        edit(item, f"text {number}")
    last = versions.KEPT + 3
    assert seen_by(item, ann) == [f"text {number}" for number in range(last - 1, last - 1 - versions.KEPT, -1)]
    assert seen_by(other, ann) == ["other 0"]


@pytest.mark.django_db(transaction=True)
def test_a_version_stands_under_the_warning_it_had(ann: Any, client: Client) -> None:
    item = actions.publish(sender=ann, content={"text": "the end of the film", "warning": "spoilers"})
    edit(item, "no end at all")
    shown = page(client, item)
    folded = shown[shown.index("spoilers") :]
    assert folded.index("the end of the film") < folded.index("</details>")
    assert shown.index("no end at all") < shown.index("spoilers")


@pytest.mark.slow
def test_edits_at_once_keep_no_more(ann: Any) -> None:
    item = say(ann)
    for number in range(versions.KEPT):
        edit(item, f"text {number}")
    at_once(*(lambda number=number: edit(item, f"at once {number}") for number in range(4)))
    assert len(seen_by(item, ann)) == versions.KEPT


def test_a_wider_audience_sees_no_version_of_before(ann: Any, bob: Any) -> None:
    item = say(ann, "for myself", visibility="self")
    edit(item, "for friends")
    actions.change_visibility(item=item, visibility="followers")
    assert seen_by(item, bob) == []
    assert seen_by(item, ann) == ["for myself"]
    edit(item, "for friends, again")
    assert seen_by(item, bob) == ["for friends"]
    actions.change_visibility(item=item, visibility="self")
    actions.change_visibility(item=item, visibility="public")
    assert seen_by(item, bob) == []


def sent(item: Item, **fields: str) -> EditForm:
    data = QueryDict(mutable=True)
    data.update(fields)
    form = EditForm(item, data)
    assert form.is_valid(), form.errors
    return form


def test_words_and_audience_changed_at_once(ann: Any, bob: Any) -> None:
    item = say(ann, "for myself", visibility="self")
    _edit(item, sent(item, text="for all", visibility="public"))
    assert seen_by(item, bob) == []
    _edit(item, sent(item, text="for few", visibility="followers"))
    assert seen_by(item, bob) == ["for all"]


@pytest.mark.parametrize("verb", ["hold", "reject", "hide"])
def test_moderators_hide_versions(verb: str, ann: Any, bob: Any) -> None:
    item = say(ann, "first")
    edit(item, "second")
    acts: dict[str, Any] = {
        "hold": lambda: actions.hold(item=item, reasons=["words"]),
        "reject": lambda: actions.reject(item=item),
        "hide": lambda: versions.hide_versions(item.pk),
    }
    acts[verb]()
    edit(item, "third")  # held or rejected words never become a public version
    actions.approve(item=item)
    assert seen_by(item, bob) == (["second"] if verb == "hide" else [])
    assert seen_by(item, ann) == ["second", "first"]


@pytest.mark.slow
def test_the_page_is_there_for_those_who_see_the_item(ann: Any, bob: Any, client: Client) -> None:
    item = say(ann, "first words", visibility="followers")
    edit(item, "second words")
    assert client.get(f"/items/{item.pk}/edits").status_code == 404
    client.force_login(bob)
    assert "first words" in page(client, item)
    actions.hold(item=item, reasons=["words"])
    assert client.get(f"/items/{item.pk}/edits").status_code == 404
    client.force_login(ann)
    assert "only you can see this version" in page(client, item)
    actions.delete(item=item)
    assert client.get(f"/items/{item.pk}/edits").status_code == 404


def test_versions_of_a_repost_are_those_of_its_original(ann: Any, bob: Any, client: Client) -> None:
    item = say(ann, "first words")
    repost, _ = actions.repost(sender=bob, item=item)
    edit(item, "second words")
    assert "first words" in page(client, repost)


def test_versions_are_exported_and_purged(ann: Any, bob: Any) -> None:
    item, others = say(ann, "first"), say(bob)
    edit(item, "second")
    edit(others, "third")
    versions.hide_versions(item.pk)
    (exported,) = [file for file in files(ann) if file.name == "edits.jsonl"]
    assert [(row.item_id, bytes(row.content)) for row in exported.rows] == [(str(item.pk), b'{"text": "first"}')]
    assert purge.purge(user_id=ann.pk, limit=5)
    assert Item.objects.get(pk=item.pk).status == Status.DELETED
    assert [version.item_id for version in ItemVersion.objects.all()] == [others.pk]
