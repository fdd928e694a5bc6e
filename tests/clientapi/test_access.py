"""No address of Mastodon's API may show more than items.visibility allows."""

import itertools
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client

from accounts.models import User
from clientapi.accounts.people import post_counts
from items import actions as items
from items.models import Bookmark, Item, Like, Pin, Visibility
from items.text import ContentError
from relations import actions as relations
from relations import lists
from tests.support.clients import Caller
from tests.support.effort import some, tries
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db

PATHS: dict[str, Callable[[User, Item], str]] = {
    "status": lambda sender, item: f"v1/statuses/{item.pk}",
    "statuses": lambda sender, item: f"v1/statuses?id[]={item.pk}",
    "context": lambda sender, item: f"v1/statuses/{item.root_id or item.pk}/context",
    "history": lambda sender, item: f"v1/statuses/{item.pk}/history",
    "of account": lambda sender, item: f"v1/accounts/{sender.pk}/statuses?limit=40",
    "pinned": lambda sender, item: f"v1/accounts/{sender.pk}/statuses?pinned=1",
    "public": lambda sender, item: "v1/timelines/public?limit=40",
    "tag": lambda sender, item: "v1/timelines/tag/zebra?limit=40",
    "tag upward": lambda sender, item: "v1/timelines/tag/zebra?limit=40&min_id=1",
    "tags": lambda sender, item: "v1/timelines/tag/zebra?limit=40&any[]=lion&none[]=tiger",
    "tags upward": lambda sender, item: "v1/timelines/tag/lion?limit=40&any[]=zebra&min_id=1",
    "of account by tag": lambda sender, item: f"v1/accounts/{sender.pk}/statuses?limit=40&tagged=zebra",
    "of account by tag upward": lambda sender, item: f"v1/accounts/{sender.pk}/statuses?tagged=zebra&min_id=1",
    "search": lambda sender, item: "v2/search?q=%23zebra",
    "led to": lambda sender, item: f"v2/search?q=http://localhost:8000/items/{item.pk}&resolve=1",
    "popular": lambda sender, item: "v1/trends/statuses",
}
OWN = {
    "home": "v1/timelines/home?limit=40",
    "home upward": "v1/timelines/home?limit=40&min_id=1",
    "list": "v1/timelines/list/LIST?limit=40",
    "notifications": "v1/notifications?limit=80",
    "groups of notifications": "v2/notifications?limit=80",
    "groups of notifications upward": "v2/notifications?limit=80&min_id=1",
    "bookmarks": "v1/bookmarks?limit=40",
    "bookmarks upward": "v1/bookmarks?limit=40&min_id=1",
    "favourites upward": "v1/favourites?limit=40&min_id=1",
    "favourites": "v1/favourites?limit=40",
    "conversations": "v1/conversations?limit=40",
    "conversations upward": "v1/conversations?limit=40&min_id=1",
}


def words(item: Item) -> str:
    return f"secret{item.pk}"


def world(chance: random.Random) -> tuple[list[User], list[Item]]:
    """Random follows, blocks and mutes, and posts in every visibility and state."""
    people = [UserFactory(username=f"p{number}", is_locked=chance.random() < 0.4) for number in range(4)]
    for one, other in itertools.permutations(people, 2):
        if chance.random() < 0.6:
            relations.follow(follower=one, followee=other)
            if other.is_locked and chance.random() < 0.5:
                relations.accept(followee=other, follower=one)
        if chance.random() < 0.12:
            relations.block(blocker=one, blocked=other)
        if chance.random() < 0.12:
            relations.mute(muter=one, muted=other)
    said = spoken(chance, people)
    for item in chance.sample(said, 5):
        sharer = chance.choice(people)
        shareable = Item.objects.visible_to(sharer).filter(pk=item.pk, status="published")
        if shareable.exclude(visibility=Visibility.MENTIONED).exists():
            said.append(items.repost(sender=sharer, item=item)[0])
    for item in (one for one in said if not one.repost_of_id):
        Pin.objects.get_or_create(item=item, sender_id=item.sender_id)
        for one in people:
            Bookmark.objects.get_or_create(user=one, item=item)
            Like.objects.get_or_create(user=one, item=item)
    return people, said


def spoken(chance: random.Random, people: list[User]) -> list[Item]:
    """In every visibility, some held or deleted."""
    said: list[Item] = []
    for number in range(14):
        sender = chance.choice(people)
        answered = chance.choice(said) if said and chance.random() < 0.4 else None
        if answered and not Item.objects.visible_to(sender).filter(pk=answered.pk).exists():
            answered = None
        fields: dict[str, Any] = {"content": {"text": f"#zebra {number} @p0 @p1"}, "reply_to": answered}
        try:
            made = items.publish(sender=sender, visibility=chance.choice(Visibility.values), **fields)
        except ContentError:  # a private mention of blocked people
            made = items.publish(sender=sender, **fields)
        Item.objects.filter(pk=made.pk).update(content={"text": f"{words(made)} #zebra @p0 @p1"})
        made.refresh_from_db()
        said.append(made)
    for item in chance.sample(said, 4):
        if chance.random() < 0.5:
            items.delete(item=item)
        else:
            items.hold(item=item, reasons=["x"])
    return said


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(tries(1, 60)))
def test_no_answer_holds_what_the_rule_hides(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 (a made-up world)
    people, said = world(chance)
    post_counts.forget()
    for reader in [*some(2, people), None]:
        caller = Caller(reader)
        seen = set(Item.objects.visible_to(reader).values_list("pk", flat=True)) if reader else _of_strangers()
        hidden = [item for item in said if item.pk not in seen and not item.repost_of_id]
        paths = [(name, path(item.sender, item)) for item in said for name, path in PATHS.items()]
        if reader:
            made = lists.create(owner=reader, title="all")
            for other in people:
                if reader.follows.filter(followee=other).exists():
                    lists.add(owner=reader, list_id=made.pk, member=other)
            paths += [(name, path.replace("LIST", str(made.pk))) for name, path in OWN.items()]
        for name, path in dict.fromkeys(paths):
            response = caller.client.get(f"/api/{path}", **caller.headers)
            assert response.status_code in (200, 404), (name, path, response.content)
            text = response.content.decode()
            for item in hidden:
                assert words(item) not in text, (name, path, reader and reader.username)
                assert response.status_code == 404 or f'"{item.pk}"' not in _but_answered(text), (name, path)


def _of_strangers() -> set[int]:
    return set(Item.objects.visible_to(AnonymousUser()).values_list("pk", flat=True))


def _but_answered(text: str) -> str:
    """The answer without two kinds of ids that the site's own API shows too.

    They are `in_reply_to_id`, and the id of a conversation, which is that of its first message.
    """

    def without(value: object) -> object:
        if isinstance(value, dict):
            names = {"in_reply_to_id", "id"} if "last_status" in value else {"in_reply_to_id"}
            return {name: without(one) for name, one in value.items() if name not in names}
        return [without(one) for one in value] if isinstance(value, list) else value

    return json.dumps(without(json.loads(text)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(tries(1, 20)))
def test_a_status_that_is_hidden_answers_as_one_that_never_was(seed: int) -> None:
    people, said = world(random.Random(100 + seed))  # noqa: S311 (as above)
    reader = people[0]
    caller, seen = Caller(reader), set(Item.objects.visible_to(reader).values_list("pk", flat=True))
    for item in said:
        if item.pk in seen:
            continue
        never = caller.client.get("/api/v1/statuses/4503599627370496", **caller.headers)
        for path in ("", "/context", "/history", "/reblogged_by", "/favourited_by"):
            response = caller.client.get(f"/api/v1/statuses/{item.pk}{path}", **caller.headers)
            assert (response.status_code, response.content) == (404, never.content), path
        for act in ("favourite", "reblog", "bookmark", "pin", "mute"):
            assert caller.client.post(f"/api/v1/statuses/{item.pk}/{act}", **caller.headers).status_code == 404
        fields = {"status": "x", "in_reply_to_id": str(item.pk)}
        assert Client().post("/api/v1/statuses", fields, **caller.headers).status_code == 404
