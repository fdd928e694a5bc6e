"""Messages as a place: who is in a conversation, what waits, and its pages."""

from typing import Any

import pytest

from accounts.models import User
from items import actions as items
from items.conversations.conversations import accept, hide_conversation, mark_read
from items.conversations.messages import conversation_with, messages_page
from items.models import Item, Participant, Visibility
from notifications.feed import notifications_page, unread_counts, waiting
from relations import actions as relations
from relations.models import Follow
from tests.support.api import API, client_of
from tests.support.factories import UserFactory, say
from tests.support.statements import statements

pytestmark = pytest.mark.django_db
NAMES = ("ann", "bob", "cid", "dan", "eve", "fay", "gus", "hal", "ivy", "jon")


@pytest.fixture
def people(settings: Any) -> dict[str, User]:
    """Everybody follows ann and bob, who follow each other. Nobody follows another."""
    settings.RATE_SCALE = 1000.0
    people = {name: UserFactory(username=name) for name in NAMES}
    for name in NAMES:
        for followed in {"ann", "bob"} - {name}:
            Follow.objects.create(follower=people[name], followee=people[followed])
    return people


def write(sender: User, *names: str, text: str = "hello") -> Item:
    return say(sender, text, addressed=names)


def counted(reader: User) -> tuple[int, int, int]:
    """Unread notifications, unread conversations, and requests."""
    found = waiting(reader).unread
    assert unread_counts([reader.pk]) == {reader.pk: found}
    return found.unread, found.conversations, found.requests


def readers(item: Item) -> set[str]:
    return {row.user.username for row in Participant.objects.filter(conversation=item).select_related("user")}


# --- Who is in it ----------------------------------------------------------------------------------------
def test_it_is_for_those_addressed_whomever_its_text_names(people: dict[str, User]) -> None:
    first = write(people["ann"], "BOB", "cid", "bob", text="what does @dan think?")
    assert (first.visibility, readers(first)) == (Visibility.MENTIONED, {"ann", "bob", "cid"})
    assert not Item.objects.visible_to(people["dan"]).exists()
    reply = say(people["bob"], "ask @eve and @dan", reply_to=first, visibility=Visibility.PUBLIC)
    items.edit(item=reply, content={"text": "ask @fay"})
    assert (Item.objects.get(pk=reply.pk).visibility, readers(first)) == (Visibility.MENTIONED, {"ann", "bob", "cid"})
    for name in NAMES[3:]:
        assert not Item.objects.visible_to(people[name]).exists()
        assert counted(people[name]) == (0, 0, 0)
    assert {name: [one.kind for one in notifications_page(people[name]).items] for name in ("ann", "bob", "cid")} == {
        "ann": ["reply"],
        "bob": ["mention"],
        "cid": ["mention", "mention"],
    }


def test_the_api_begins_one(people: dict[str, User]) -> None:
    ann = client_of(people["ann"])
    relations.block(blocker=people["cid"], blocked=people["ann"])
    User.objects.filter(username="dan").update(takes_requests=False)
    Follow.objects.filter(follower=people["dan"]).delete()
    content = {"content": {"text": "hello"}}
    wrong: list[tuple[Any, str, str]] = [
        ([], "usernames", "at least 1"),
        ("bob", "usernames", ""),
        (list(NAMES[1:]), "usernames", "8"),
        (["nobody"], "usernames", "@nobody"),
        (["cid"], "usernames", "@cid"),
        (["bob", "ann"], "usernames", "@ann"),
        (["dan"], "content", "@dan only accepts"),
    ]
    for names, field, words in wrong:
        refused = ann.post(f"{API}/me/conversations", content | {"usernames": names})
        assert (refused.status_code, list(refused.json())) == (400, [field]), names
        assert words in refused.content.decode()
    for fields in ({"usernames": ["bob"]}, content | {"usernames": ["bob"], "visibility": "public"}):
        assert ann.post(f"{API}/me/conversations", fields).status_code == 400
    assert not Item.objects.exists()
    made = [
        ann.post(f"{API}/me/conversations", content | {"usernames": ["bob", "eve"]}, HTTP_IDEMPOTENCY_KEY="one")
        for _ in range(2)
    ]
    assert [one.status_code for one in made] == [201, 201]
    assert made[0].json() == made[1].json()
    assert (made[0].json()["visibility"], made[0].json()["content"]) == ("mentioned", {"text": "hello"})
    other = ann.post(f"{API}/me/conversations", content | {"usernames": ["bob"]}, HTTP_IDEMPOTENCY_KEY="one")
    assert other.status_code == 409
    (listed,) = client_of(people["bob"]).get(f"{API}/me/conversations").json()["items"]
    assert (listed["id"], [user["username"] for user in listed["users"]]) == (made[0].json()["id"], ["ann", "eve"])


def test_its_items_by_pages(people: dict[str, User]) -> None:
    first = write(people["ann"], "bob", "cid")
    sent = [first, *(say(people[name], name, reply_to=first) for name in ("bob", "ann", "cid", "bob"))]
    items.delete(item=sent[2])
    other = write(people["ann"], "bob", text="another")
    api, walked, last_id = client_of(people["bob"]), [], ""
    for _ in range(3):
        page = api.get(f"{API}/me/conversations/{first.pk}/items?limit=2&last_id={last_id}").json()
        walked += [int(one["id"]) for one in page["items"]]
        last_id = page["last_id"]
        if not page["has_more"]:
            break
    assert walked == [sent[place].pk for place in (4, 3, 1, 0)]
    relations.block(blocker=people["cid"], blocked=people["bob"])
    assert [int(one.id) for one in messages_page(people["bob"], first.pk).items] == [sent[4].pk, sent[1].pk, first.pk]
    public = say(people["ann"], "for all")
    for number in (public.pk, sent[1].pk, 1, 2**53):
        assert api.get(f"{API}/me/conversations/{number}/items").status_code == 404, number
    assert client_of(people["dan"]).get(f"{API}/me/conversations/{first.pk}/items").status_code == 404
    assert api.get(f"{API}/me/conversations/{first.pk}/items?limit=0").status_code == 400
    assert conversation_with(people["bob"], [people["ann"].pk]) == other.pk
    assert conversation_with(people["bob"], [people["cid"].pk, people["ann"].pk]) == first.pk
    assert conversation_with(people["bob"], [people["cid"].pk]) is None


# --- What waits ------------------------------------------------------------------------------------------
def test_unread_conversations_and_requests_are_counted_apart(people: dict[str, User]) -> None:
    ann, bob = people["ann"], people["bob"]
    first = write(ann, "bob")
    asked = [write(people[name], "bob", text="buy this") for name in ("cid", "dan", "eve")]
    assert counted(bob) == (1, 1, 3)
    api = client_of(bob).get(f"{API}/me/notifications/unread").json()
    assert api == {"unread": 1, "capped": False, "conversations": 1, "requests": 3}
    with statements() as seen:
        waiting(bob)
    assert len(seen) == 2
    with statements() as seen:
        waiting(people["jon"])
    assert len(seen) == 1
    mark_read(reader=bob, item_id=first.pk)
    mark_read(reader=bob, item_id=asked[0].pk)  # a request waits until it is decided
    assert counted(bob) == (0, 0, 3)
    accept(reader=bob, conversation_id=asked[1].pk)
    assert counted(bob) == (0, 1, 2)
    say(people["dan"], "thanks", reply_to=asked[1])
    assert counted(bob) == (1, 1, 2)
    hide_conversation(reader=bob, conversation_id=asked[2].pk)
    assert counted(bob) == (1, 1, 1)


@pytest.mark.parametrize("hide", ["block", "blocked", "mute", "inactive", "deleted", "removed"])
def test_the_counts_tell_nothing_of_what_is_hidden(people: dict[str, User], hide: str) -> None:
    bob, cid = people["bob"], people["cid"]
    request = write(cid, "bob")
    accepted = write(people["dan"], "bob")
    accept(reader=bob, conversation_id=accepted.pk)
    for sender, item in ((cid, request), (people["dan"], accepted)):
        match hide:
            case "block":
                relations.block(blocker=bob, blocked=sender)
            case "blocked":
                relations.block(blocker=sender, blocked=bob)
            case "mute":
                relations.mute(muter=bob, muted=sender)
            case "inactive":
                User.objects.filter(pk=sender.pk).update(is_active=False)
            case "deleted":
                items.delete(item=item)
            case "removed":
                hide_conversation(reader=bob, conversation_id=item.pk)
    assert counted(bob) == (0, 0, 0)


def test_follow_requests_are_counted_for_who_approves_them(people: dict[str, User]) -> None:
    ivy = people["ivy"]
    User.objects.filter(pk=ivy.pk).update(is_locked=True)
    ivy.refresh_from_db()
    relations.follow(follower=people["jon"], followee=ivy)
    assert waiting(ivy).follow_requests == 1
    relations.block(blocker=people["jon"], blocked=ivy)
    assert waiting(ivy).follow_requests == 0
