from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from accounts.models import User
from items import actions as items
from notifications import actions, feed
from notifications.models import ReadMark
from relations import actions as relations
from storage import ids
from tests.support.factories import UserFactory, say
from tests.support.statements import statements

pytestmark = pytest.mark.django_db
NOTHING = {"unread": 0, "capped": False, "conversations": 0, "requests": 0}

API = "/api/v1/me/notifications"


@pytest.fixture
def bob() -> User:
    return UserFactory(username="bob", display_name="Bobby", is_big_v=True)


def unread(api: APIClient) -> Any:
    return api.get(f"{API}/unread").json()


def test_an_entry_says_who_did_what(api: APIClient, ann: User, bob: User) -> None:
    post = say(ann)
    fans = UserFactory.create_batch(4)
    for fan in [*fans, bob]:
        items.like(user=fan, item=post)
    relations.follow(follower=bob, followee=ann)
    follow, like = api.get(API).json()["items"]
    assert like.keys() == {
        *("id", "kind", "actors", "count", "capped", "item", "session", "text", "detail", "subject_id", "created_at"),
        "unread",
    }
    card = {"id": str(bob.pk), "username": "bob", "display_name": "Bobby", "is_big_v": True}
    card["avatar_url"] = bob.avatar_url
    assert like["actors"][0] == card
    assert [one["username"] for one in like["actors"][1:]] == [fans[3].username, fans[2].username]
    assert (like["kind"], like["count"], like["capped"], like["unread"]) == ("like", 5, False, True)
    assert like["item"]["id"] == str(post.pk)
    assert like["item"]["counts"]["likes"] == 5
    assert like["created_at"].endswith("Z")
    assert (follow["kind"], follow["actors"], follow["count"], follow["item"]) == ("follow", [card], 1, None)


@pytest.mark.slow
def test_the_list_is_walked_whole(api: APIClient, ann: User, bob: User) -> None:
    texts = [f"@ann {number}" for number in range(7)]
    for text in texts:
        say(bob, text)
    for limit in (1, 3, 6, 7, 8, 100):
        walked: list[str] = []
        query = ""
        while True:
            body = api.get(f"{API}?limit={limit}{query}").json()
            walked += [entry["item"]["content"]["text"] for entry in body["items"]]
            if not body["has_more"]:
                break
            assert len(body["items"]) == limit
            query = f"&last_id={body['last_id']}"
        assert walked == texts[::-1]
    assert api.get(f"{API}?last_id=1").json() == {"items": [], "last_id": None, "has_more": False}
    assert len(api.get(f"{API}?last_id={ids.MAX_ID}").json()["items"]) == 7


@pytest.mark.slow
def test_seen_entries_are_read_and_no_others(api: APIClient, ann: User, bob: User) -> None:
    say(bob, "@ann one")
    say(bob, "@ann two")
    assert unread(api) == NOTHING | {"unread": 2, "capped": False}
    older = api.get(API).json()["items"][1]["id"]
    say(bob, "@ann three")
    assert api.post(f"{API}/read", {"up_to": older}).status_code == 204
    assert [entry["unread"] for entry in api.get(API).json()["items"]] == [True, True, False]
    assert unread(api)["unread"] == 2
    response = api.post(f"{API}/read")
    assert (response.status_code, response.content) == (204, b"")
    assert unread(api)["unread"] == 0
    say(bob, "@ann four")
    for body in ({}, {"up_to": None}, {"up_to": str(ids.MAX_ID)}):
        assert api.post(f"{API}/read", body).status_code == 204
    say(bob, "@ann five")  # a mark in the future does not count
    assert unread(api)["unread"] == 1


def test_likes_within_a_moment_are_read_together(api: APIClient, ann: User, bob: User) -> None:
    """The second like does not move the entry, but the entry's id covers it."""
    post = say(ann)
    for fan in (bob, UserFactory()):
        items.like(user=fan, item=post)
    api.post(f"{API}/read", {"up_to": api.get(API).json()["items"][0]["id"]})
    assert unread(api)["unread"] == 0


@pytest.mark.slow
def test_counts_are_capped(api: APIClient, ann: User, bob: User) -> None:
    for number in range(100):
        say(bob, f"@ann {number}")
        if number == 98:
            assert unread(api) == NOTHING | {"unread": 99, "capped": False}
    assert unread(api) == NOTHING | {"unread": 99, "capped": True}
    post = say(ann)
    for number, fan in enumerate(UserFactory.create_batch(101)):
        items.like(user=fan, item=post)
        if number == 99:
            first = api.get(f"{API}?limit=1").json()["items"][0]
            assert (first["count"], first["capped"]) == (100, False)
    first = api.get(f"{API}?limit=1").json()["items"][0]
    assert (first["count"], first["capped"]) == (100, True)


@pytest.mark.slow
@pytest.mark.parametrize("hide", ["block", "is blocked", "mute", "leaves"])
def test_hidden_actors_are_neither_shown_nor_counted(api: APIClient, ann: User, bob: User, hide: str) -> None:
    post = say(ann)
    for fan in (UserFactory(), bob):
        items.like(user=fan, item=post)
    items.repost(sender=bob, item=post)
    say(bob, "@ann", reply_to=post)
    relations.follow(follower=bob, followee=ann)
    before = api.get(API).json()
    assert unread(api)["unread"] == 4
    match hide:
        case "block":
            relations.block(blocker=ann, blocked=bob)
        case "is blocked":
            relations.block(blocker=bob, blocked=ann)
        case "mute":
            relations.mute(muter=ann, muted=bob)
        case "leaves":
            User.objects.filter(pk=bob.pk).update(is_active=False)
    (entry,) = api.get(API).json()["items"]
    assert (entry["kind"], entry["count"], len(entry["actors"])) == ("like", 1, 1)
    assert "bob" not in str(entry)
    assert unread(api)["unread"] == 1
    relations.unblock(blocker=ann, blocked=bob)
    relations.unblock(blocker=bob, blocked=ann)
    relations.unmute(muter=ann, muted=bob)
    User.objects.filter(pk=bob.pk).update(is_active=True)
    assert api.get(API).json() == before


@pytest.mark.slow
def test_what_may_not_be_seen_any_more_is_gone(api: APIClient, ann: User, bob: User) -> None:
    item = say(bob, "@ann, a secret")
    for change in (
        lambda: items.change_visibility(item=item, visibility="followers"),
        lambda: items.hold(item=item, reasons=["a word"]),
        lambda: items.delete(item=item),
    ):
        assert len(api.get(API).json()["items"]) == 1
        change()
        assert api.get(API).json() == {"items": [], "last_id": None, "has_more": False}
        assert unread(api)["unread"] == 0
        items.restore(item=item)
        items.change_visibility(item=item, visibility="public")


@pytest.mark.slow
def test_the_list_costs_the_same_for_few_and_many(api: APIClient, ann: User, bob: User) -> None:
    costs = []
    for count in (1, 15):
        for _ in range(count):
            post = say(ann)
            for fan in UserFactory.create_batch(3):
                items.like(user=fan, item=post)
            items.repost(sender=bob, item=post)
            say(bob, "@ann")
        with statements() as seen:
            api.get(API)
        costs.append(len(seen))
    assert costs[0] == costs[1] <= 4  # token and user, list, bodies


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=-1", "limit=abc", "limit=1_0", "limit=1&limit=2", "limit=" + "9" * 5000]
)
@pytest.mark.parametrize("name", ["limit", "last_id"])
def test_bad_positions_and_limits(api: APIClient, query: str, name: str) -> None:
    response = api.get(f"{API}?{query.replace('limit', name)}")
    assert response.status_code == 400
    assert response["Content-Type"] == "application/json"


def test_empty_parameters_are_as_if_absent(api: APIClient, ann: User, bob: User) -> None:
    say(bob, "@ann")
    assert api.get(f"{API}?limit=&last_id=").json() == api.get(API).json()


@pytest.mark.parametrize(
    "body", [{"up_to": 5}, {"up_to": "0"}, {"up_to": "abc"}, {"up_to": "\x00"}, {"up_to": str(2**60)}, {"user": 1}, []]
)
def test_bad_marks(api: APIClient, body: Any) -> None:
    assert api.post(f"{API}/read", body).status_code == 400
    assert not ReadMark.objects.exists()


def test_malformed_json_is_refused(api: APIClient) -> None:
    assert api.generic("POST", f"{API}/read", b"a=b", "application/x-www-form-urlencoded").status_code == 415
    assert api.generic("POST", f"{API}/read", b"{", "application/json").status_code == 400
    assert api.post(f"{API}/read", {"up_to": "1" * 70_000}).status_code == 413


def test_only_for_who_is_signed_in(ann: User) -> None:
    for method, path in [("get", ""), ("get", "/unread"), ("post", "/read")]:
        response = getattr(APIClient(), method)(f"{API}{path}")
        assert response.status_code == 401
        assert "WWW-Authenticate" in response


def test_with_a_session(ann: User, bob: User) -> None:
    say(bob, "@ann")
    client = Client(enforce_csrf_checks=True)
    client.force_login(ann)
    assert len(client.get(API).json()["items"]) == 1
    assert client.post(f"{API}/read", "{}", "application/json").status_code == 403


def test_wrong_methods(api: APIClient) -> None:
    for method, path in [("post", ""), ("delete", "/unread"), ("get", "/read")]:
        assert getattr(api, method)(f"{API}{path}").status_code == 405


def test_rates(api: APIClient, settings: Any) -> None:
    settings.RATES = {**settings.RATES, "write": "2/minute", "read": "2/minute"}
    for method, path in [("get", ""), ("post", "/read")]:
        statuses = [getattr(api, method)(f"{API}{path}").status_code for _ in range(3)]
        assert statuses[:2] != [429, 429]
        assert statuses[2] == 429


def test_callers_do_not_mark_for_others(api: APIClient, ann: User, bob: User) -> None:
    items.like(user=ann, item=say(bob))
    actions.mark_read(user=ann)
    assert list(ReadMark.objects.values_list("user", flat=True)) == [ann.pk]


def test_a_list_of_what_the_banned_did_ends_short_at_its_bound_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "SCAN", 2)
    reader, friend, bot = UserFactory(username="reader"), UserFactory(), UserFactory()
    items.publish(sender=friend, content={"text": "@reader, the first"})
    for _ in range(15):
        items.publish(sender=bot, content={"text": "@reader, spam"})
    User.objects.filter(pk=bot.pk).update(is_active=False)
    last_id, texts, pages = None, [], 0
    for _ in range(20):
        page = feed.notifications_page(reader, last_id=last_id, limit=2)
        texts += [entry.item.text for entry in page.items if entry.item]
        pages += 1
        if not page.has_more:
            break
        last_id = int(page.last_id or 0)
    assert texts == ["@reader, the first"]
    assert 2 < pages < 8


@pytest.mark.slow
def test_acts_of_many_who_were_banned_are_not_looked_through() -> None:
    """Only the newest acts of an entry are read."""
    reader = UserFactory()
    post = items.publish(sender=reader, content={"text": "words"})
    likers = UserFactory.create_batch(feed.ACTS_SCAN + 1)
    for liker in likers:
        items.like(user=liker, item=post)
    User.objects.filter(pk__in=[liker.pk for liker in likers[1:]]).update(is_active=False)
    assert feed.notifications_page(reader).items == []
    assert feed.unread_count(reader).unread == 0
    User.objects.filter(pk=likers[-1].pk).update(is_active=True)
    (entry,) = feed.notifications_page(reader).items
    assert (entry.count, entry.capped) == (1, True), "the first like is beyond the bound"


def test_an_entry_whose_acts_were_all_looked_at_is_not_capped() -> None:
    reader = UserFactory()
    post = items.publish(sender=reader, content={"text": "words"})
    for liker in UserFactory.create_batch(2):
        items.like(user=liker, item=post)
    (entry,) = feed.notifications_page(reader).items
    assert (entry.count, entry.capped) == (2, False)
