from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client
from rest_framework.test import APIClient

from accounts.models import User
from items.actions import delete, publish_thread
from items.export import files
from items.models import HiddenReply, Item, Visibility
from items.profiles.profile import find_item, replies_page
from items.purge import purge
from items.threads.chains import chain_below
from items.threads.hiding import PrivateReplyError, hidden_page, hide_reply
from items.threads.threads import thread_page
from tests.support.clients import token_of
from tests.support.factories import UserFactory, say
from web.refusals import NotOwnError

pytestmark = pytest.mark.django_db


def shown_under(item: Item, reader: User | AnonymousUser) -> set[int]:
    body = find_item(item.pk, reader)
    assert body is not None
    listed = {int(one.id) for one in replies_page(body, reader).items}
    if body.reply_to is None:
        assert {int(one.id) for one in thread_page(body, reader).items} == listed
    return listed


def hidden_under(item: Item, reader: User | AnonymousUser) -> list[int]:
    body = find_item(item.pk, reader)
    assert body is not None
    return [int(one.id) for one in hidden_page(body, reader).items]


@pytest.mark.parametrize("is_deep", [False, True])
def test_a_hidden_reply_stands_apart_for_all_but_its_sender(
    api: APIClient, client: Client, ann: User, bob: User, is_deep: bool
) -> None:
    root = say(ann, "what do you think?")
    parent = say(UserFactory(), "fine", reply_to=root) if is_deep else root
    rude = say(bob, "a rude one", reply_to=parent)
    others = {parent.pk} - {root.pk}
    stranger = UserFactory()
    address = f"/api/v1/items/{root.pk}/hidden-replies"
    api.force_authenticate(ann)
    for _ in range(2):
        assert api.post(f"{address}/{rude.pk}").status_code == 204
        for reader in (ann, stranger, AnonymousUser()):
            assert (shown_under(root, reader), hidden_under(root, reader)) == (others, [rude.pk])
        assert (shown_under(root, bob), hidden_under(root, bob)) == ({*others, rude.pk}, [])
    for reader, is_seen in ((None, False), (bob, True)):
        app = APIClient()
        if reader:
            app.credentials(HTTP_AUTHORIZATION=f"Bearer {token_of(reader, app=None)}")
        told = app.get(f"/api/v1/statuses/{root.pk}/context").json()["descendants"]
        assert (str(rude.pk) in {one["id"] for one in told}) == is_seen
    page = client.get(f"/items/{root.pk}").content.decode()
    assert "a rude one" not in page
    assert f"/items/{root.pk}/hidden-replies" in page
    assert "a rude one" in client.get(f"/items/{root.pk}/hidden-replies").content.decode()
    assert [one["id"] for one in api.get(address).json()["items"]] == [str(rude.pk)]
    for _ in range(2):
        assert api.delete(f"{address}/{rude.pk}").status_code == 204
        assert (shown_under(root, stranger), hidden_under(root, stranger)) == ({*others, rude.pk}, [])


def test_what_stands_below_a_hidden_reply_is_listed_with_it(ann: User, bob: User) -> None:
    root = say(ann, "what do you think?")
    other = say(UserFactory(), "fine", reply_to=root)
    rude = say(bob, "a rude one", reply_to=root)
    below = say(UserFactory(), "so rude", reply_to=rude)
    lowest = say(ann, "well", reply_to=below)
    hide_reply(user=ann, root_id=root.pk, reply_id=rude.pk)
    for reader, shown in ((ann, {other}), (AnonymousUser(), {other}), (bob, {other, rude, below, lowest})):
        body = find_item(root.pk, reader)
        assert body is not None
        assert {int(one.id) for one in replies_page(body, reader).items} == {one.pk for one in shown}
    assert shown_under(rude, ann) == {below.pk}


def test_only_the_sender_of_the_thread_hides(api: APIClient, ann: User, bob: User) -> None:
    root = say(ann)
    reply = say(bob, reply_to=root)
    below, elsewhere = say(ann, reply_to=reply), say(bob)
    private = say(bob, "@ann psst", reply_to=root, visibility=Visibility.MENTIONED)
    gone = say(bob, reply_to=root)
    delete(item=gone)
    api.force_authenticate(bob)
    for verb in (api.post, api.delete):
        for found in (reply, below, gone):
            assert verb(f"/api/v1/items/{root.pk}/hidden-replies/{found.pk}").status_code == 403
    api.force_authenticate(ann)
    for verb in (api.post, api.delete):
        for item, missing in ((root, elsewhere), (root, gone), (root, root), (below, reply), (elsewhere, reply)):
            answer = verb(f"/api/v1/items/{item.pk}/hidden-replies/{missing.pk}")
            assert answer.status_code == (403 if item == elsewhere else 404)
    assert api.post(f"/api/v1/items/{root.pk}/hidden-replies/{private.pk}").status_code == 403
    with pytest.raises(PrivateReplyError):
        hide_reply(user=ann, root_id=root.pk, reply_id=private.pk)
    with pytest.raises(NotOwnError):
        hide_reply(user=bob, root_id=root.pk, reply_id=reply.pk)


def test_the_menu_of_a_reply_in_ones_own_thread(client: Client, ann: User, bob: User) -> None:
    root = say(ann)
    reply = say(bob, "hm", reply_to=root)
    client.force_login(bob)
    assert "/hide" not in client.get(f"/items/{reply.pk}/menu").content.decode()
    client.force_login(ann)
    assert f"/items/{reply.pk}/hide" in client.get(f"/items/{reply.pk}/menu").content.decode()
    client.post(f"/items/{reply.pk}/hide")
    assert f"/items/{reply.pk}/unhide" in client.get(f"/items/{reply.pk}/menu").content.decode()
    client.post(f"/items/{reply.pk}/unhide")
    assert shown_under(root, ann) == {reply.pk}


def test_it_is_exported_and_forgotten_with_the_account(ann: User, bob: User) -> None:
    root = say(ann)
    reply = say(bob, "hm", reply_to=root)
    hide_reply(user=ann, root_id=root.pk, reply_id=reply.pk)
    for user, rows in ((ann, [(str(reply.pk), "bob")]), (bob, [])):
        exported = next(file for file in files(user) if file.name == "hidden_replies.jsonl")
        assert [(row.item_id, row.by) for row in exported.rows] == rows
    purge(user_id=ann.pk, limit=10)
    assert not HiddenReply.objects.exists()


def test_a_hidden_reply_ends_a_chain_under_it(ann: User, bob: User) -> None:
    root = say(ann)
    posts: list[dict[str, Any]] = [{"content": {"text": text}} for text in "abc"]
    first, second, third = publish_thread(sender=bob, posts=[posts[0] | {"reply_to": root}, *posts[1:]])
    hide_reply(user=ann, root_id=root.pk, reply_id=second.pk)
    for reader, seen in ((ann, []), (AnonymousUser(), []), (bob, [second.pk, third.pk])):
        body = find_item(first.pk, reader)
        assert body is not None
        assert [int(one.id) for one in chain_below(body, reader)] == seen
