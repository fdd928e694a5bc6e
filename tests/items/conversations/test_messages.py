"""Messages as a place: who is in a conversation, what waits, and its pages."""

import re
from typing import Any

import pytest

from accounts.models import User
from items import actions as items
from items.conversations.conversations import accept, hide_conversation, mark_read
from items.conversations.messages import conversation_with, messages_page
from items.models import Item, Participant, Visibility
from notifications.feed import new_count, notifications_page, unread_counts, waiting
from notifications.models import Kind
from notifications.ungrouped import ActFilter, acts_page
from relations import actions as relations
from relations.models import Follow
from tests.support.api import API, client_of
from tests.support.factories import UserFactory, say
from tests.support.pages import PART, composed, logged_in
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
    assert counted(bob) == (0, 1, 3)
    api = client_of(bob).get(f"{API}/me/notifications/unread").json()
    assert api == {"unread": 0, "capped": False, "conversations": 1, "requests": 3}
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
    assert counted(bob) == (0, 1, 2)
    hide_conversation(reader=bob, conversation_id=asked[2].pk)
    assert counted(bob) == (0, 1, 1)


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


# --- Pages -----------------------------------------------------------------------------------------------
def ids_in(page: str) -> list[int]:
    return [int(number) for number in re.findall(r'id="item-(\d+)"', page)]


def test_a_conversation_by_pages(people: dict[str, User]) -> None:
    ann, bob = people["ann"], logged_in(people["bob"])
    first = write(ann, "bob", "cid", text="<b>first</b>")
    sent = [first.pk, *(say(ann, f"message {number}", reply_to=first).pk for number in range(23))]
    mark_read(reader=people["bob"], item_id=first.pk)
    sent.append(say(people["cid"], "from cid", reply_to=first).pk)
    page = bob.get(f"/conversations/{first.pk}").content.decode()
    assert ids_in(page) == sent[-20:]
    assert page.index('id="new"') > page.index(f'id="item-{sent[-1]}"')
    assert "3 people" in page
    assert counted(people["bob"]) == (0, 0, 0)
    assert 'id="new"' not in bob.get(f"/conversations/{first.pk}").content.decode()
    older = re.search(r'rel="prev" href="([^"]+)"', page)
    assert older
    address = older[1].replace("&amp;", "&")
    assert ids_in(bob.get(address).content.decode()) == sent[:5]
    part = bob.get(address, **PART).content.decode()
    assert ids_in(part) == sent[:5]
    assert "&lt;b&gt;first" in part
    assert 'rel="prev"' not in part
    after = bob.get(f"/conversations/{first.pk}?after={sent[-3]}", **PART).content.decode()
    assert ids_in(after) == sent[-2:]
    for wrong in ("after=x", "last_id=0", "since=1.5"):
        assert bob.get(f"/conversations/{first.pk}?{wrong}").status_code == 400
    assert logged_in(people["dan"]).get(f"/conversations/{first.pk}").status_code == 404


def test_where_one_left_off_is_marked_on_an_older_page(people: dict[str, User]) -> None:
    first = write(people["ann"], "bob")
    mark_read(reader=people["bob"], item_id=first.pk)
    sent = [say(people["ann"], f"message {number}", reply_to=first).pk for number in range(22)]
    bob = logged_in(people["bob"])
    page = bob.get(f"/conversations/{first.pk}").content.decode()
    assert 'id="new"' not in page
    older = re.search(r'rel="prev" href="([^"]+)"', page)
    assert older
    part = bob.get(older[1].replace("&amp;", "&"), **PART).content.decode()
    assert ids_in(part) == [first.pk, *sent[:2]]
    assert part.index(f'id="item-{sent[0]}"') < part.index('id="new"') < part.index(f'id="item-{sent[1]}"')


def test_a_conversation_costs_the_same_however_long(people: dict[str, User]) -> None:
    first, bob = write(people["ann"], "bob"), logged_in(people["bob"])
    bob.get(f"/conversations/{first.pk}")
    costs = []
    for _ in range(2):
        say(people["ann"], "@cid and @dan", reply_to=first)
        with statements() as seen:
            assert bob.get(f"/conversations/{first.pk}").status_code == 200
        costs.append(len(seen))
        for number in range(30):
            say(people["bob" if number % 2 else "ann"], f"@cid {number}", reply_to=first)
    assert costs[0] == costs[1]


def test_one_answers_in_the_conversation(people: dict[str, User]) -> None:
    first, bob = write(people["ann"], "bob"), logged_in(people["bob"])
    form = composed("a line", visibility="mentioned", reply_to=first.pk, message="1")
    answer = bob.post("/items/new", form, HTTP_HX_TARGET="message", **PART)
    sent = Item.objects.get(reply_to=first)
    assert 'hx-swap-oob="beforeend:#messages"' in answer.content.decode()
    assert ids_in(answer.content.decode()) == [sent.pk]
    assert "messaged" in answer["HX-Trigger-After-Settle"]
    assert "answered" in answer["HX-Trigger"]  # what decides on a request goes
    back = bob.post("/items/new", form | {"key": "0" * 32, "next": f"/conversations/{first.pk}"})
    assert back["Location"] == f"/conversations/{first.pk}"
    empty = bob.post("/items/new", form | {"text": ""}, HTTP_HX_TARGET="message", **PART)
    assert (empty.status_code, 'id="message"' in empty.content.decode()) == (422, True)
    poll = form | {"key": "1" * 32, "text": "which?", "option_1": "tea", "option_2": "coffee", "poll_lasts": "3600"}
    bob.post("/items/new", poll, HTTP_HX_TARGET="message", **PART)
    page = logged_in(people["ann"]).get(f"/conversations/{first.pk}").content.decode()
    assert "coffee" in page
    assert len(ids_in(page)) == 4


def test_a_new_message(people: dict[str, User]) -> None:
    ann, client = people["ann"], logged_in(people["ann"])
    form = composed("hello", visibility="mentioned", message="1")
    User.objects.filter(username="dan").update(takes_requests=False)
    Follow.objects.filter(follower=people["dan"]).delete()
    relations.block(blocker=people["cid"], blocked=ann)
    for to, words in (
        ("", "Choose who gets it."),
        ("@", "Choose 1 to 8"),
        (" ".join(NAMES[1:]), "Choose 1 to 8"),
        ("b\u00f6b", "a username"),
        ("@bob @cid", "message @cid"),
        ("dan", "@dan only accepts"),
    ):
        refused = client.post("/conversations/new", form | {"people": to})
        assert (refused.status_code, words in refused.content.decode()) == (422, True), to
    assert not Item.objects.exists()
    sent = client.post("/conversations/new", form | {"people": "@bob, Eve"})
    first = Item.objects.get()
    assert (sent["Location"], readers(first)) == (f"/conversations/{first.pk}", {"ann", "bob", "eve"})
    again = client.post("/conversations/new", composed("more", visibility="mentioned", message="1", people="eve @bob"))
    assert again["Location"] == f"/conversations/{first.pk}"
    assert Item.objects.filter(conversation=first).count() == 1
    alone = client.post("/conversations/new", composed("hi", visibility="mentioned", message="1", people="bob"), **PART)
    begun = Item.objects.get(conversation=None, content__text="hi")
    assert alone["HX-Redirect"] == f"/conversations/{begun.pk}"
    assert client.get("/conversations/new?to=BOB")["Location"] == f"/conversations/{begun.pk}"
    assert 'value="@fay"' in client.get("/conversations/new?to=fay").content.decode()
    assert "@dan only accepts messages" in client.get("/conversations/new?to=dan").content.decode()
    for hidden in ("cid", "nobody"):
        assert client.get(f"/conversations/new?to={hidden}").status_code == 404


def test_a_profile_offers_a_message(people: dict[str, User]) -> None:
    client = logged_in(people["ann"])
    assert "/conversations/new?to=bob" in client.get("/@bob").content.decode()
    assert "/conversations/new" not in client.get("/@ann").content.decode().replace('/conversations/new"', "")
    User.objects.filter(username="bob").update(takes_requests=False)
    assert "/conversations/new?to=bob" in client.get("/@bob").content.decode()  # they follow each other
    Follow.objects.filter(follower=people["bob"]).delete()
    page = client.get("/@bob").content.decode()
    assert "/conversations/new?to=bob" not in page
    assert "@bob only accepts messages" in page


def test_what_waits_is_counted_in_the_navigation(people: dict[str, User]) -> None:
    bob = logged_in(people["bob"])
    User.objects.filter(username="bob").update(is_locked=True)
    write(people["ann"], "bob")
    write(people["cid"], "bob")
    relations.follow(follower=people["ann"], followee=people["bob"])
    Follow.objects.filter(follower=people["jon"], followee=people["bob"]).delete()
    relations.follow(follower=people["jon"], followee=User.objects.get(username="bob"))
    for path in ("/", "/notifications/unread"):
        page = bob.get(path).content.decode()
        for words in ("unread notification", "1 unread conversation", "1 message request", "1 follow request"):
            assert words in page, (path, words)


def test_a_message_is_counted_and_shown_once(people: dict[str, User]) -> None:
    ann, bob = people["ann"], people["bob"]
    first = write(ann, "bob")
    write_back = say(bob, "hi", reply_to=first)
    say(ann, "more", reply_to=write_back)
    items.like(user=ann, item=write_back)
    public = say(ann, "@bob in public")
    for page in (notifications_page(bob), notifications_page(bob, group="conversations")):
        assert [int(one.item.id) for one in page.items if one.item and one.kind == "mention"] == [public.pk]
        assert "reply" not in [one.kind for one in page.items]
    assert counted(bob) == (2, 1, 0)
    assert new_count(bob, since_id=0) == (2, False)
    of_apps = acts_page(bob, ActFilter([Kind.MENTION, Kind.REPLY]), limit=20).shown
    assert [act.kind for act in of_apps] == ["mention", "reply", "mention"]
    logged_in(bob).get(f"/conversations/{first.pk}")
    assert counted(bob) == (2, 0, 0)


def test_enter_sends_unless_its_member_says_no(people: dict[str, User]) -> None:
    first, bob = write(people["ann"], "bob"), logged_in(people["bob"])
    assert " data-enter" in bob.get(f"/conversations/{first.pk}").content.decode()
    bob.post("/settings/preferences", {"theme": "", "language": "", "time_zone": ""})
    assert " data-enter" not in bob.get(f"/conversations/{first.pk}").content.decode()


def test_a_group_of_ten_rings_for_whom_it_may(people: dict[str, User]) -> None:
    """Ann is a stranger to all but bob. Cid follows dan."""
    others = NAMES[2:9]
    Follow.objects.filter(follower__username__in=others).delete()
    Follow.objects.create(follower=people["cid"], followee=people["dan"])
    first = write(people["ann"], "bob", *others)
    assert {name: counted(people[name]) for name in NAMES[1:]} == {
        "bob": (0, 1, 0),
        **dict.fromkeys(others, (0, 0, 1)),
        "jon": (0, 0, 0),
    }
    accept(reader=people["eve"], conversation_id=first.pk)
    assert counted(people["eve"]) == (0, 1, 0)
    say(people["ann"], "anybody?", reply_to=first)
    assert counted(people["eve"]) == (0, 1, 0)
    assert counted(people["cid"]) == (0, 0, 1)
    say(people["dan"], "me, and @jon", reply_to=first)
    assert counted(people["cid"]) == (0, 1, 0)  # dan is no stranger
    assert counted(people["dan"]) == (0, 0, 0)
    assert counted(people["fay"]) == (0, 0, 1)
    assert counted(people["jon"]) == (0, 0, 0)
    relations.mute(muter=people["eve"], muted=people["ann"])
    relations.block(blocker=people["cid"], blocked=people["dan"])
    assert counted(people["eve"]) == (0, 1, 0)  # dan's
    assert counted(people["cid"]) == (0, 1, 0)  # ann's, which dan brought in
    relations.mute(muter=people["eve"], muted=people["dan"])
    assert counted(people["eve"]) == (0, 0, 0)
    assert len(readers(first)) == 9
    relations.block(blocker=people["gus"], blocked=people["ann"])
    relations.block(blocker=people["gus"], blocked=people["dan"])
    assert counted(people["gus"]) == (0, 0, 0)
    assert client_of(people["gus"]).get(f"{API}/me/conversations/{first.pk}/items").status_code == 404
    assert logged_in(people["gus"]).get(f"/conversations/{first.pk}").status_code == 404


def test_a_crafted_form_is_answered(people: dict[str, User]) -> None:
    first, bob = write(people["ann"], "bob"), logged_in(people["bob"])
    form = composed("later", visibility="mentioned", reply_to=first.pk, message="1")
    for fields in (
        {"publish_at": "2027-01-01T10:00"},
        {"publish_at": "x"},
        {"title": "a title"},
        {"reply_to": "1"},
        {"reply_to": "x"},
        {"reply_to": ""},
        {"message": "x" * 300},
        {"visibility": "public"},
    ):
        for headers in ({}, PART | {"HTTP_HX_TARGET": "message"}):
            answer = bob.post("/items/new", form | {"key": ""} | fields, **headers)
            assert answer.status_code < 500, fields
    for query in ("?to=" + "x" * 300, "?to=b%00b", "?to=bob&to=ann", "?to="):
        assert bob.get(f"/conversations/new{query}").status_code < 500, query


# --- Requests, for who writes ----------------------------------------------------------------------------
def begun(sender: User, *names: str) -> tuple[str, str]:
    """A conversation's page after its first message, and the same again."""
    fields = composed(text="hello", people=" ".join(names), message="on", visibility=Visibility.MENTIONED)
    browser = logged_in(sender)
    answer = browser.post("/conversations/new", fields)
    assert answer.status_code == 302, answer.content.decode()
    return browser.get(answer["Location"]).content.decode(), browser.get(answer["Location"]).content.decode()


WAITS = "will see this under message requests."


@pytest.mark.parametrize(
    ("relate", "is_said"),
    [
        (lambda cid, ann: None, True),
        (lambda cid, ann: relations.mute(muter=cid, muted=ann), True),
        (lambda cid, ann: relations.follow(follower=cid, followee=ann), False),
        (lambda cid, ann: relations.follow(follower=cid, followee=ann) and relations.mute(muter=cid, muted=ann), False),
    ],
)
def test_who_writes_learns_once_that_it_is_a_request(people: dict[str, User], relate: Any, is_said: bool) -> None:
    """A mute says no more and no less."""
    cid, dan = people["cid"], people["dan"]
    relate(cid, dan)
    first, again = begun(dan, "@cid")
    assert (f"@cid {WAITS}" in first) is is_said
    assert WAITS not in again


def test_a_later_block_looks_as_a_request_that_nobody_has_read(people: dict[str, User]) -> None:
    cid, eve, dan = people["cid"], people["eve"], people["dan"]
    pages = []
    for other in (cid, eve):
        assert f"@{other.username} {WAITS}" in begun(dan, f"@{other.username}")[0]
        if other is eve:
            relations.block(blocker=eve, blocked=dan)
        again = logged_in(dan).post(
            "/conversations/new",
            composed(text="are you there?", people=f"@{other.username}", message="on", visibility=Visibility.MENTIONED),
        )
        pages.append((again.status_code, WAITS in again.content.decode()))
    assert not any(said for _status, said in pages)


def test_a_private_mention_from_the_composer_says_it_too(people: dict[str, User]) -> None:
    browser = logged_in(people["dan"])
    fields = composed(text="hello @cid", visibility=Visibility.MENTIONED)
    page = browser.post("/items/new", fields, follow=True).content.decode()
    assert f"Sent. Find it under Messages. @cid {WAITS}" in page
    reply = fields | composed(text="more", reply_to=str(Item.objects.latest("pk").pk), visibility=Visibility.MENTIONED)
    assert WAITS not in browser.post("/items/new", reply, follow=True).content.decode()


def test_accepting_a_request_is_not_told(people: dict[str, User]) -> None:
    dan, cid = people["dan"], people["cid"]
    first = write(dan, "cid")
    page = logged_in(dan).get(f"/conversations/{first.pk}").content.decode()
    accept(reader=cid, conversation_id=first.pk)
    assert WAITS not in page + logged_in(dan).get(f"/conversations/{first.pk}").content.decode()
