from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from rest_framework.test import APIClient

from accounts.models import User
from items import actions as items
from items.hydrate import hydrate
from items.models import Item, Like, Status, Visibility
from items.profiles.profile import find_item, item_count, profile_page, replies_page
from moderation.models import WordRule
from relations import actions as relations
from storage import connections
from tests.support.answers import whole
from tests.support.api import API, client_of
from tests.support.effort import EVERYTHING
from tests.support.factories import ItemFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return UserFactory(username="ann", display_name="Ann A.")


@pytest.fixture
def anonymous() -> APIClient:
    return APIClient()


# --- Publishing ------------------------------------------------------------------------------------------
def test_an_item(api: APIClient, anonymous: APIClient, ann: User) -> None:
    response = api.post(f"{API}/items", {"content": {"text": "words"}})
    assert response.status_code == 201
    item = Item.objects.get()
    moment = item.created_at.isoformat().replace("+00:00", "Z")
    body = dict(response.json())
    modified_at = body.pop("modified_at")
    assert modified_at.endswith("Z")
    assert body == {
        "id": str(item.pk),
        "type": "text",
        "title": "",
        "content": {"text": "words"},
        "extra_info": {},
        "media": [],
        "visibility": "public",
        "status": "published",
        "sender": {"id": str(ann.pk), "username": "ann", "display_name": "Ann A.", "is_big_v": False}
        | {"avatar_url": ann.avatar_url},
        "created_at": moment,
        "reply_to": None,
        "repost_of": None,
        "quote": None,
        "quotable_by": "everyone",
        "repliable_by": "everyone",
        "can_reply": True,
        "poll": None,
        "link_card": None,
        "counts": {"likes": 0, "replies": 0, "reposts": 0, "quotes": 0},
        "liked": False,
        "reposted": False,
        "filtered": [],
        "bookmarked": False,
        "reason": None,
    }
    assert api.get(f"{API}/items/{item.pk}").json() == response.json()
    read = anonymous.get(f"{API}/items/{item.pk}").json()
    assert "status" not in read
    assert read == {name: value for name, value in response.json().items() if name != "status"} | {"can_reply": False}


def test_every_field_of_an_item(api: APIClient) -> None:
    body = {
        "type": "link",
        "title": "A title",
        "content": {"url": "https://example.org/", "note": [1, None, {"a": 1.5}]},
        "extra_info": {"client": "test"},
        "visibility": "mutuals",
    }
    shown = api.post(f"{API}/items", body).json()
    assert {name: shown[name] for name in body} == body


@pytest.mark.parametrize(
    "fields",
    [
        {"content": {"text": "words #tag @bob https://example.org/", "b": [1, None], "a": 1e3}, "title": "A title"},
        {"content": {"text": "so"}, "visibility": "self", "extra_info": {"z": 1, "client": "test"}},
        {"content": {"text": "so"}, "repliable_by": "nobody", "quotable_by": "followers"},
        {"content": {"text": "so"}, "visibility": "followers"},
        {"content": {"text": "spoilt", "warning": "careful", "sensitive": True}},
        {"content": {"text": "so"}, "quote_of": "bobs"},
        {"content": {"text": "so"}, "reply_to": "bobs"},
        {"type": "poll", "content": {"poll": {"options": ["a", "b"], "multiple": False, "closes_in": 3600}}},
        {"content": {"text": "held"}},
    ],
)
def test_a_new_item_is_answered_as_it_reads_later(api: APIClient, bob: User, fields: dict[str, Any]) -> None:
    """Most are answered without reading them again."""
    bobs = str(ItemFactory(sender=bob).pk)
    assert api.post(f"{API}/me/filters", {"phrase": "spoilt"}).status_code == 201
    WordRule.objects.create(text="held")
    response = api.post(f"{API}/items", fields | {name: bobs for name in fields if fields[name] == "bobs"})
    assert response.status_code == 201, response.content
    assert response.json() == api.get(f"{API}/items/{response.json()['id']}").json()


def test_a_reply(api: APIClient, bob: User) -> None:
    first = ItemFactory(sender=bob)
    shown = api.post(f"{API}/items", {"content": {"text": "so"}, "reply_to": str(first.pk)}).json()
    assert shown["reply_to"] == str(first.pk)
    assert api.get(f"{API}/items/{first.pk}").json()["counts"]["replies"] == 1


def test_what_cannot_be_seen_cannot_be_replied_to(api: APIClient, ann: User, bob: User) -> None:
    private = ItemFactory(sender=bob, visibility=Visibility.SELF)
    deleted = ItemFactory(sender=bob, status=Status.DELETED)
    own = ItemFactory(sender=ann, status=Status.DELETED)
    answers = [
        api.post(f"{API}/items", {"content": {"text": "so"}, "reply_to": str(pk)})
        for pk in [private.pk, deleted.pk, own.pk, 12345]
    ]
    assert [one.status_code for one in answers] == [400] * 4
    assert len({one.content for one in answers}) == 1


def test_a_repeated_call_publishes_once(api: APIClient, bob: User) -> None:
    body, key = {"content": {"text": "words"}}, {"Idempotency-Key": "a-key"}
    first = api.post(f"{API}/items", body, headers=key)
    again = api.post(f"{API}/items", body, headers=key)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert Item.objects.count() == 1
    assert api.post(f"{API}/items", {"content": {"text": "other"}}, headers=key).status_code == 409
    assert client_of(bob).post(f"{API}/items", body, headers=key).status_code == 201
    assert api.post(f"{API}/items", body, headers={"Idempotency-Key": "b"}).json()["id"] != first.json()["id"]
    for _ in range(2):
        assert api.post(f"{API}/items", body, headers={"Idempotency-Key": ""}).status_code == 201
    assert Item.objects.count() == 5


@pytest.mark.parametrize("key", ["a" * 256, "a b", "ü", "a\x00", "a\x7f"])
def test_keys_that_are_refused(api: APIClient, key: str) -> None:
    response = api.post(f"{API}/items", {"content": {"text": "words"}}, headers={"Idempotency-Key": key})
    assert response.status_code == 400
    assert not Item.objects.exists()


# --- Reading, editing, deleting --------------------------------------------------------------------------
def test_editing(api: APIClient, ann: User) -> None:
    item = ItemFactory(sender=ann, title="old", extra_info={"a": 1})
    before = api.get(f"{API}/items/{item.pk}").json()
    after = api.patch(f"{API}/items/{item.pk}", {"content": {"text": "new"}}).json()
    assert after.pop("modified_at") >= before.pop("modified_at")
    assert after == before | {"content": {"text": "new"}}
    assert api.patch(f"{API}/items/{item.pk}", {"title": "", "extra_info": {}}).json()["title"] == ""
    untouched = api.get(f"{API}/items/{item.pk}").json()
    assert api.patch(f"{API}/items/{item.pk}", {}).json() == untouched


def test_an_edit_keeps_to_the_type(api: APIClient, ann: User) -> None:
    item = ItemFactory(sender=ann)
    for content in [{}, {"text": ""}, {"url": "https://example.org/"}]:
        response = api.patch(f"{API}/items/{item.pk}", {"content": content})
        assert response.status_code == 400
        assert list(response.json()) == ["content"]


def test_deleting(api: APIClient, ann: User) -> None:
    item = ItemFactory(sender=ann)
    assert api.delete(f"{API}/items/{item.pk}").status_code == 204
    assert Item.objects.get().status == Status.DELETED
    never = api.get(f"{API}/items/12345")
    for method in [api.get, api.delete, api.patch, APIClient().get]:
        response = method(f"{API}/items/{item.pk}")
        assert response.status_code == 404
        assert response.content == never.content
    assert api.get(f"{API}/items/{item.pk}/replies").content == never.content


def test_anothers_item(api: APIClient, bob: User) -> None:
    item = ItemFactory(sender=bob, title="old")
    assert api.patch(f"{API}/items/{item.pk}", {"title": "new"}).status_code == 403
    assert api.patch(f"{API}/items/{item.pk}", {"sender": "1"}).status_code == 403
    assert api.delete(f"{API}/items/{item.pk}").status_code == 403
    item.refresh_from_db()
    assert (item.title, item.status) == ("old", Status.PUBLISHED)


@pytest.mark.slow
def test_readers_of_an_item(api: APIClient, anonymous: APIClient, ann: User, bob: User) -> None:
    """Hidden objects answer every method with the same bytes as missing ones."""

    def sees(client: APIClient, item: Item) -> bool:
        response = client.get(f"{API}/items/{item.pk}")
        if response.status_code == 404:
            never = client.get(f"{API}/items/12345")
            assert whole(response) == whole(never)
            if client is api:
                assert client.patch(f"{API}/items/{item.pk}", {}).status_code == 404
                assert client.delete(f"{API}/items/{item.pk}").status_code == 404
        return bool(response.status_code == 200)

    made = {visibility: ItemFactory(sender=bob, visibility=visibility) for visibility in Visibility.values}

    def seen(client: APIClient) -> list[str]:
        return [visibility for visibility, item in made.items() if sees(client, item)]

    assert seen(api) == seen(anonymous) == ["public"]
    relations.follow(follower=ann, followee=bob)
    assert seen(api) == ["public", "followers"]
    relations.follow(follower=bob, followee=ann)
    assert seen(api) == ["public", "followers", "mutuals"]
    assert seen(client_of(bob)) == Visibility.values
    relations.mute(muter=ann, muted=bob)
    assert seen(api) == ["public", "followers", "mutuals"]
    for one, other in [(ann, bob), (bob, ann)]:
        relations.block(blocker=one, blocked=other)
        assert seen(api) == []
        relations.unblock(blocker=one, blocked=other)
    Item.objects.update(status=Status.IN_REVIEW)
    assert seen(api) == seen(anonymous) == []
    assert seen(client_of(bob)) == Visibility.values
    Item.objects.update(status=Status.PUBLISHED)
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert seen(api) == seen(anonymous) == []


# --- Lists -----------------------------------------------------------------------------------------------
def walk(client: APIClient, path: str, limit: int) -> list[int]:
    """Only the last page may be short."""
    found: list[int] = []
    query = ""
    while True:
        body = client.get(f"{API}{path}?limit={limit}{query}").json()
        found += [int(item["id"]) for item in body["items"]]
        assert body["last_id"] == (body["items"][-1]["id"] if body["items"] else None)
        if not body["has_more"]:
            return found
        assert len(body["items"]) == limit
        query = f"&last_id={body['last_id']}"


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 2, 4, 5, 100])
def test_a_profile_is_walked_whole(api: APIClient, anonymous: APIClient, ann: User, bob: User, limit: int) -> None:
    public = ItemFactory.create_batch(3, sender=bob)
    inner = ItemFactory.create_batch(2, sender=bob, visibility=Visibility.FOLLOWERS)
    hidden = ItemFactory(sender=bob, visibility=Visibility.SELF)
    ItemFactory(sender=bob, status=Status.DELETED)
    ItemFactory(sender=bob, reply_to=public[0])
    ItemFactory(sender=ann)
    assert walk(anonymous, "/users/bob/items", limit) == walk(api, "/users/BOB/items", limit)
    assert walk(api, "/users/bob/items", limit) == [item.pk for item in reversed(public)]
    relations.follow(follower=ann, followee=bob)
    assert walk(api, "/users/bob/items", limit) == [item.pk for item in reversed(public + inner)]
    own = [item.pk for item in reversed([*public, *inner, hidden])]
    assert walk(client_of(bob), "/users/bob/items", limit) == own


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_replies_are_walked_whole_oldest_first(api: APIClient, ann: User, bob: User, limit: int) -> None:
    item = ItemFactory(sender=ann)
    eve = UserFactory()
    replies = [ItemFactory(sender=sender, reply_to=item) for sender in [bob, ann, bob, eve]]
    ItemFactory(sender=bob, reply_to=item, status=Status.DELETED)
    nested = ItemFactory(sender=bob, reply_to=replies[0])
    relations.block(blocker=eve, blocked=ann)
    assert walk(api, f"/items/{item.pk}/replies", limit) == [reply.pk for reply in [*replies[:3], nested]]
    assert walk(api, f"/items/{replies[0].pk}/replies", limit) == [nested.pk]
    # Who may not see the root sees nothing of its thread except their own replies.
    for reply in replies[:3]:
        assert client_of(eve).get(f"{API}/items/{reply.pk}/replies").status_code == 404
    assert client_of(eve).get(f"{API}/items/{replies[3].pk}").status_code == 200


def test_reposts_hold_their_originals(api: APIClient, ann: User, bob: User) -> None:
    original = ItemFactory(sender=bob)
    repost = ItemFactory(sender=ann, repost_of=original)
    assert api.get(f"{API}/items/{repost.pk}").json()["repost_of"]["id"] == str(original.pk)
    assert api.get(f"{API}/users/ann/items").json()["items"][0]["repost_of"]["id"] == str(original.pk)
    items.delete(item=original)
    assert api.get(f"{API}/items/{repost.pk}").content == api.get(f"{API}/items/{original.pk}").content
    assert api.get(f"{API}/users/ann/items").json()["items"] == []


def test_a_profile(api: APIClient, anonymous: APIClient, ann: User, bob: User) -> None:
    relations.follow(follower=ann, followee=bob)
    relations.follow(follower=UserFactory(), followee=bob)
    relations.fold_follower_counts()
    relations.follow(follower=UserFactory(), followee=bob)
    relations.follow(follower=bob, followee=ann)
    relations.mute(muter=ann, muted=bob)
    ItemFactory.create_batch(2, sender=bob)
    ItemFactory(sender=bob, visibility=Visibility.SELF)
    body = api.get(f"{API}/users/BOB").json()
    assert body == {
        "id": str(bob.pk),
        "username": "bob",
        "display_name": "",
        "bio": "",
        "fields": [],
        "is_big_v": False,
        "is_locked": False,
        "avatar_url": bob.avatar_url,
        "banner_url": bob.banner_url,
        "created_at": body["created_at"],
        "counts": {"followers": 3, "following": 1, "items": 2},
        "following": True,
        "followed_by": True,
        "blocking": False,
        "muting": True,
        "pinned": [],
        "hiding_reposts": False,
        "bell": False,
        "requested": False,
        "requested_by": False,
        "muted_until": None,
        "muting_notifications": True,
    }
    nobodys = {"following": False, "followed_by": False, "muting": False, "muting_notifications": False}
    assert anonymous.get(f"{API}/users/bob").json() == body | nobodys
    assert client_of(bob).get(f"{API}/users/bob").json() == body | nobodys | {"counts": body["counts"] | {"items": 3}}


def test_a_block_seen_from_both_sides(api: APIClient, ann: User, bob: User) -> None:
    ItemFactory(sender=bob)
    relations.block(blocker=ann, blocked=bob)
    body = api.get(f"{API}/users/bob").json()
    assert body["blocking"]
    assert body["counts"]["items"] == 0
    assert api.get(f"{API}/users/bob/items").json() == {"items": [], "last_id": None, "has_more": False}
    blocked = client_of(bob)
    for path in ["", "/items", "/followers", "/following"]:
        response = blocked.get(f"{API}/users/ann{path}")
        never = blocked.get(f"{API}/users/nobody{path}")
        assert response.status_code == 404
        assert whole(response) == whole(never)


def test_an_inactive_user_is_gone(api: APIClient, anonymous: APIClient, bob: User) -> None:
    User.objects.filter(pk=bob.pk).update(is_active=False)
    for client in [api, anonymous]:
        assert client.get(f"{API}/users/bob").content == client.get(f"{API}/users/nobody").content


@pytest.mark.parametrize("path", ["/users/bob/items", "/items/{item}/replies", "/items/{item}", "/users/bob"])
def test_reading_costs_the_same_however_much(
    api: APIClient, bob: User, path: str, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Callable[..., Any]
) -> None:
    """Also counts the queries that `fetch` prepares, which Django does not count."""
    fetched: list[str] = []

    def fetch(query: str, *args: Any, **options: Any) -> Any:
        fetched.append(query)
        return connections.fetch(query, *args, **options)

    for module in ["items.hydrate", "items.profiles.profile", "accounts.signing_in.tokens", "relations.visibility"]:
        monkeypatch.setattr(f"{module}.fetch", fetch)
    item = ItemFactory(sender=bob)
    path = f"{API}{path.format(item=item.pk)}"

    def cost() -> tuple[int, int]:
        fetched.clear()
        with django_assert_num_queries(4, exact=False) as captured:
            assert api.get(path).status_code == 200
        return len(captured), len(fetched)

    ItemFactory(sender=bob, reply_to=item)
    few = cost()
    for sender in UserFactory.create_batch(10):
        ItemFactory(sender=sender, reply_to=item)
        ItemFactory(sender=bob)
    assert cost() == few
    assert sum(few) <= 4


@pytest.mark.slow
@pytest.mark.parametrize("visibility", Visibility.values)
@pytest.mark.parametrize("status", Status.values)
def test_prepared_reads_see_what_the_queryset_sees(visibility: str, status: str) -> None:
    """The rule exists twice. Checked for every relation between reader and sender."""
    item = ItemFactory(visibility=visibility, status=status)
    reply = ItemFactory(sender=item.sender, visibility=visibility, status=status, reply_to=item)
    sender = item.sender
    readers: list[User | AnonymousUser] = [AnonymousUser(), sender]
    for relation in range(16) if status == Status.PUBLISHED or EVERYTHING else (0, 11):
        reader = UserFactory()
        if relation & 1:
            relations.follow(follower=reader, followee=sender)
        if relation & 2:
            relations.follow(follower=sender, followee=reader)
        if relation & 4:
            relations.block(blocker=reader, blocked=sender)
        if relation & 8:
            relations.block(blocker=sender, blocked=reader)
        readers.append(reader)
    for active in [True, False]:
        User.objects.filter(pk=sender.pk).update(is_active=active)
        for reader in readers:
            visible = Item.objects.visible_to(reader)
            seen = visible.filter(pk=item.pk).exists()
            assert (find_item(item.pk, reader) is not None) == seen
            listed = seen and visibility != Visibility.MENTIONED
            assert len(profile_page(sender, reader).items) == listed
            assert item_count(sender, reader) == (listed and status == Status.PUBLISHED)
            thread = replies_page(hydrate([item.pk], reader)[0], reader)
            assert len(thread.items) == visible.filter(pk=reply.pk).exists() == seen


# --- Likes and reposts -----------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_like_over_http(api: APIClient, anonymous: APIClient, ann: User, bob: User) -> None:
    item = ItemFactory(sender=bob)
    for method, liked in [("put", True), ("put", True), ("delete", False), ("delete", False)]:
        response = getattr(api, method)(f"{API}/items/{item.pk}/like")
        assert (response.status_code, response.content) == (204, b"")
        body = api.get(f"{API}/items/{item.pk}").json()
        assert (body["liked"], body["counts"]["likes"]) == (liked, int(liked))
        body = anonymous.get(f"{API}/items/{item.pk}").json()
        assert (body["liked"], body["counts"]["likes"]) == (False, int(liked))


def test_a_repost_over_http(api: APIClient, ann: User, bob: User) -> None:
    item = ItemFactory(sender=bob, content={"text": "the original"})
    first = api.post(f"{API}/items/{item.pk}/repost")
    again = api.post(f"{API}/items/{item.pk}/repost", {})
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    body = first.json()
    assert (body["type"], body["content"], body["sender"]["username"]) == ("repost", {}, "ann")
    assert body["repost_of"]["content"] == {"text": "the original"}
    assert body["reposted"]
    assert body["counts"]["reposts"] == body["repost_of"]["counts"]["reposts"] == 1
    assert [one["id"] for one in api.get(f"{API}/users/ann/items").json()["items"]] == [body["id"]]
    assert api.patch(f"{API}/items/{body['id']}", {"content": {"text": "mine"}}).status_code == 400
    assert api.delete(f"{API}/items/{body['id']}").status_code == 204
    body = api.get(f"{API}/items/{item.pk}").json()
    assert (body["reposted"], body["counts"]["reposts"]) == (False, 0)


@pytest.mark.parametrize(("method", "act"), [("put", "like"), ("delete", "like"), ("post", "repost")])
def test_hidden_items_cannot_be_acted_on(
    api: APIClient, anonymous: APIClient, ann: User, bob: User, method: str, act: str
) -> None:
    never = getattr(api, method)(f"{API}/items/12345/{act}")
    assert never.status_code == 404
    for fields in ({"visibility": Visibility.FOLLOWERS}, {"status": Status.DELETED}, {"status": Status.IN_REVIEW}):
        item = ItemFactory(sender=bob, **fields)
        assert getattr(api, method)(f"{API}/items/{item.pk}/{act}").content == never.content
    item = ItemFactory(sender=bob)
    assert getattr(anonymous, method)(f"{API}/items/{item.pk}/{act}").status_code == 401
    relations.block(blocker=bob, blocked=ann)
    assert getattr(api, method)(f"{API}/items/{item.pk}/{act}").content == never.content
    assert not Like.objects.exists()
    assert not Item.objects.exclude(repost_of=None).exists()


def test_a_repost_takes_no_fields(api: APIClient, bob: User) -> None:
    item = ItemFactory(sender=bob)
    assert api.post(f"{API}/items/{item.pk}/repost", {"visibility": "self"}).status_code == 400
    assert api.post(f"{API}/items", {"type": "repost", "content": {"text": "a"}}).status_code == 400
    assert api.get(f"{API}/items/{item.pk}/repost").status_code == 405
    assert api.post(f"{API}/items/{item.pk}/like").status_code == 405


@pytest.mark.slow
@pytest.mark.parametrize("hidden", ["followers", "blocked", "deleted"])
def test_a_repost_of_a_reply_opens_no_hidden_thread(api: APIClient, ann: User, bob: User, hidden: str) -> None:
    """Who may not see a thread's root can neither read a reply through a repost nor act on it."""
    writer = UserFactory()
    relations.follow(follower=bob, followee=writer)
    relations.follow(follower=ann, followee=bob)
    root = ItemFactory(sender=writer, visibility="followers" if hidden == "followers" else "public")
    reply = items.publish(sender=bob, content={"text": "a reply"}, reply_to=root)
    repost, _ = items.repost(sender=bob, item=reply)
    if hidden == "blocked":
        relations.block(blocker=writer, blocked=ann)
    elif hidden == "deleted":
        items.delete(item=root)
    for item in (root, reply, repost):
        assert api.get(f"{API}/items/{item.pk}").status_code == 404
        assert api.put(f"{API}/items/{item.pk}/like").status_code == 404
        assert api.post(f"{API}/items/{item.pk}/repost").status_code == 404
        assert api.get(f"{API}/items/{item.pk}/replies").status_code == 404
        said = api.post(f"{API}/items", {"content": {"text": "let me in"}, "reply_to": str(item.pk)})
        assert said.status_code == 400
    assert api.get(f"{API}/users/bob/items").json()["items"] == []
    assert api.get(f"{API}/timeline/home").json()["items"] == []
