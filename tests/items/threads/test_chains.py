from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client
from rest_framework.test import APIClient

from accounts.models import User
from items.actions import change_visibility, delete, publish_thread, restore
from items.models import IdempotencyKey, Item, Visibility
from items.profiles.profile import find_item
from items.threads.chains import chain_below
from items.threads.threads import thread_page
from relations.actions import block, follow
from tests.support.factories import UserFactory, say
from timeline.home import home_page
from timeline.oracle import home_ids

pytestmark = pytest.mark.django_db
THREADS = "/api/v1/threads"


def posts(*texts: str, **first: Any) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [{"content": {"text": text}} for text in texts]
    made[0] |= first
    return made


def chain(item: Item, reader: User | AnonymousUser) -> list[int]:
    body = find_item(item.pk, reader)
    assert body is not None
    return [int(one.id) for one in chain_below(body, reader)]


def others(item: Item, reader: User) -> set[int]:
    body = find_item(item.pk, reader)
    assert body is not None
    return {int(one.id) for one in thread_page(body, reader, chain=chain_below(body, reader)).items}


# --- The API ---------------------------------------------------------------------------------------------
def test_a_thread_is_published_at_once(api: APIClient, ann: User, bob: User) -> None:
    follow(follower=bob, followee=ann)
    api.force_authenticate(ann)
    body = {"items": posts("one", "two", "three"), "repliable_by": "followers", "visibility": "followers"}
    made = api.post(THREADS, body, format="json")
    assert made.status_code == 201
    first, *rest = made.json()["items"]
    assert [one["content"]["text"] for one in (first, *rest)] == ["one", "two", "three"]
    assert [one["reply_to"] for one in (first, *rest)] == [None, first["id"], rest[0]["id"]]
    assert {(one["visibility"], one["repliable_by"]) for one in (first, *rest)} == {("followers", "followers")}
    root = Item.objects.get(pk=first["id"])
    assert set(Item.objects.exclude(pk=root.pk).values_list("root", flat=True)) == {root.pk}
    # Home has it once, as the oracle says.
    assert [int(one.id) for one in home_page(bob).items] == home_ids(bob.pk) == [root.pk]


REFUSED: dict[str, tuple[Any, dict[str, Any]]] = {
    "one": (posts("a"), {}),
    "too many": (posts(*"abcdefghijklmnopqrstuvwxyz"), {}),
    "not posts": (["a", "b"], {}),
    "empty": (posts("a", "b", "c", ""), {"3": ["content"]}),
    "long": (posts("a", "b" * 5_001), {"1": ["content"]}),
    "another reply": ([*posts("a"), {"content": {"text": "b"}, "reply_to": "1"}], {"1": ["reply_to"]}),
    "a missing parent": (posts("a", "b", reply_to="1"), {"0": ["reply_to"]}),
    "two audiences": ([*posts("a", visibility="self"), *posts("b", visibility="public")], {"1": ["visibility"]}),
    "two choices": (
        [*posts("a", repliable_by="nobody"), *posts("b", repliable_by="everyone")],
        {"1": ["repliable_by"]},
    ),
    "unknown": ([*posts("a"), {"content": {"text": "b"}, "status": "published"}], {"1": ["status"]}),
    "a medium that is not there": (
        [*posts("a"), {"type": "image", "content": {"media": ["1"]}}],
        {"1": ["content.media"]},
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_all_or_none(api: APIClient, ann: User, case: str) -> None:
    items, places = REFUSED[case]
    api.force_authenticate(ann)
    refused = api.post(THREADS, {"items": items}, format="json", HTTP_IDEMPOTENCY_KEY="k")
    assert refused.status_code == 400
    found = refused.json()["items"]
    if places:
        assert {place: list(errors) for place, errors in found.items()} == places
    assert not Item.objects.exists()
    assert not IdempotencyKey.objects.exists()


def test_a_refused_quote_or_reply_names_its_place(api: APIClient, ann: User, bob: User) -> None:
    closed, alone = say(bob, repliable_by="nobody"), say(bob, quotable_by="nobody")
    api.force_authenticate(ann)
    for items, place, code in (
        (posts("a", "b", reply_to=str(closed.pk)), "0", "not_repliable"),
        ([*posts("a"), *posts("b", quote_of=str(alone.pk))], "1", "not_quotable"),
    ):
        refused = api.post(THREADS, {"items": items}, format="json")
        assert (refused.status_code, refused.json()["code"]) == (403, code)
        assert refused.json()["items"][place]["code"] == code
    assert Item.objects.filter(sender=ann).count() == 0


def test_a_key_is_for_one_thread(api: APIClient, ann: User) -> None:
    api.force_authenticate(ann)
    first, again = (
        api.post(THREADS, {"items": posts("one", "two")}, format="json", HTTP_IDEMPOTENCY_KEY="k") for _ in range(2)
    )
    assert (first.status_code, again.status_code) == (201, 201)
    assert [one["id"] for one in first.json()["items"]] == [one["id"] for one in again.json()["items"]]
    for address, body in ((THREADS, {"items": posts("one", "2")}), ("/api/v1/items", posts("one")[0])):
        assert api.post(address, body, format="json", HTTP_IDEMPOTENCY_KEY="k").status_code == 409
    delete(item=Item.objects.get(pk=first.json()["items"][1]["id"]))
    gone = api.post(THREADS, {"items": posts("one", "two")}, format="json", HTTP_IDEMPOTENCY_KEY="k")
    assert gone.status_code == 404
    assert Item.objects.count() == 2


def test_it_counts_as_its_number_of_posts(api: APIClient, ann: User, settings: Any) -> None:
    settings.RATES = settings.RATES | {"publish": "30/minute"}
    api.force_authenticate(ann)
    body = {"items": posts(*map(str, range(25)))}
    assert [api.post(THREADS, body, format="json").status_code for _ in range(2)] == [201, 429]
    assert api.post("/api/v1/items", posts("one")[0], format="json").status_code == 201


# --- The page --------------------------------------------------------------------------------------------
def test_a_page_shows_the_chain_and_the_replies_of_others(client: Client, ann: User, bob: User) -> None:
    root, *rest = publish_thread(sender=ann, posts=posts(*map(str, range(25))))
    reply, below = say(bob, "hm", reply_to=root), say(bob, "oh", reply_to=rest[3])
    for reader in (ann, bob, AnonymousUser()):
        assert chain(root, reader) == [item.pk for item in rest]
        assert chain(rest[3], reader) == [item.pk for item in rest[4:]]
    assert others(root, bob) == {reply.pk, below.pk}
    assert others(rest[3], bob) == {below.pk}
    page = client.get(f"/items/{root.pk}").content.decode()
    places = [page.index(f'id="item-{item.pk}"') for item in (root, *rest, reply, below)]
    assert places == sorted(places)
    assert page.count("<article") == 27
    assert "Show thread" not in page
    assert "Show thread" in client.get("/@ann").content.decode()
    assert "Show thread" not in client.get("/@bob/replies").content.decode()
    client.force_login(bob)
    for gone in (*rest, reply):
        delete(item=gone)
    assert "Show thread" in client.get("/@ann").content.decode(), "below is still one"
    delete(item=below)
    assert "Show thread" not in client.get("/@ann").content.decode()


def test_what_is_deleted_or_hidden_is_passed(ann: User, bob: User) -> None:
    root, *rest = publish_thread(sender=ann, posts=posts(*"abcd"))
    delete(item=rest[0])
    assert chain(root, bob) == [item.pk for item in rest[1:]]
    restore(item=rest[0])
    assert chain(root, bob) == [item.pk for item in rest]
    delete(item=rest[1])
    assert chain(root, bob) == [rest[0].pk, rest[2].pk]
    assert others(root, bob) == set()
    block(blocker=ann, blocked=bob)
    assert find_item(root.pk, bob) is None


def test_only_what_is_published_at_once_is_a_chain(ann: User, bob: User) -> None:
    root, last = publish_thread(sender=ann, posts=posts("a", "b"))
    later = say(ann, "c", reply_to=last)
    assert (chain(root, bob), chain(last, bob)) == ([last.pk], [])
    assert others(last, bob) == {later.pk}
    alone = say(ann)
    own = say(ann, "more", reply_to=alone)
    assert (chain(alone, bob), others(alone, bob)) == ([], {own.pk})


def test_a_narrowed_post_leaves_the_chain(ann: User, bob: User) -> None:
    root, middle, last = publish_thread(sender=ann, posts=posts(*"abc"))
    change_visibility(item=middle, visibility=Visibility.FOLLOWERS)
    assert (chain(root, bob), others(root, bob)) == ([last.pk], set())
    follow(follower=bob, followee=ann)
    assert chain(root, bob) == [middle.pk, last.pk]


def test_a_private_thread_stays_with_its_people(ann: User, bob: User) -> None:
    first, more = publish_thread(sender=ann, posts=posts("@bob psst", "more"), visibility=Visibility.MENTIONED)
    assert (more.visibility, more.conversation_id) == (Visibility.MENTIONED, first.pk)
    assert chain(first, bob) == [more.pk]
    assert find_item(more.pk, UserFactory()) is None
