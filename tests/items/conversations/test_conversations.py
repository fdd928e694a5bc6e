from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.deactivation import deactivate, reactivate
from accounts.models import User
from items import actions as items
from items.conversations.conversations import accept, conversation_of, conversations_page, hide_conversation, mark_read
from items.models import Item, Participant, Visibility
from items.purge import purge
from notifications.feed import unread_count
from notifications.models import Kind
from notifications.ungrouped import ActFilter, acts_page
from relations import actions as relations
from relations.models import Follow
from tests.support.api import API, client_of
from tests.support.clients import Caller
from tests.support.factories import UserFactory, say
from tests.support.pages import PART, composed, logged_in
from tests.support.statements import statements
from web.refusals import MissingError

pytestmark = pytest.mark.django_db


@pytest.fixture
def people(settings: Any) -> dict[str, User]:
    """Ann and bob follow each other. Nobody follows cid and dan."""
    settings.RATE_SCALE = 1000.0
    people = {name: UserFactory(username=name) for name in ("ann", "bob", "cid", "dan")}
    follow(people["ann"], people["bob"])
    follow(people["bob"], people["ann"])
    return people


def follow(follower: User, followee: User) -> None:
    """Notifies nobody."""
    Follow.objects.create(follower=follower, followee=followee)


def tell(sender: User, text: str, **fields: Any) -> Item:
    return say(sender, text, visibility=Visibility.MENTIONED, **fields)


def listed(reader: User, **asked: Any) -> list[tuple[int, int, bool]]:
    page = conversations_page(reader, **asked)
    return [(int(one.id), int(one.last_item.id), one.unread) for one in page.items]


def notified(reader: User) -> list[str]:
    """The kinds of what apps list as notifications."""
    return [act.kind for act in acts_page(reader, ActFilter(list(Kind)), limit=20).shown]


# --- The list --------------------------------------------------------------------------------------------
def test_the_one_with_the_newest_message_stands_first(people: dict[str, User]) -> None:
    ann, bob = people["ann"], people["bob"]
    first, second = tell(ann, "@bob one"), tell(ann, "@bob two")
    assert listed(bob) == [(second.pk, second.pk, True), (first.pk, first.pk, True)]
    reply = say(bob, "about one", reply_to=first)
    assert listed(bob) == [(first.pk, reply.pk, False), (second.pk, second.pk, True)]
    assert listed(ann) == [(first.pk, reply.pk, True), (second.pk, second.pk, False)]
    assert mark_read(reader=ann, item_id=reply.pk)
    assert not mark_read(reader=ann, item_id=first.pk)
    assert listed(ann) == [(first.pk, reply.pk, False), (second.pk, second.pk, False)]
    assert listed(bob)[1] == (second.pk, second.pk, True)
    assert listed(people["cid"]) == []


def test_it_names_the_others(people: dict[str, User]) -> None:
    first = tell(people["ann"], "@bob @cid hello")
    named = {
        name: [card.username for card in conversations_page(people[name]).items[0].users] for name in ("ann", "bob")
    }
    assert named == {"ann": ["bob", "cid"], "bob": ["ann", "cid"]}
    relations.block(blocker=people["cid"], blocked=people["bob"])
    assert [card.username for card in conversations_page(people["bob"]).items[0].users] == ["ann"]
    User.objects.filter(pk=people["ann"].pk).update(is_active=False)
    assert listed(people["bob"]) == []
    with pytest.raises(MissingError):
        conversation_of(people["cid"], first.pk)


def test_deleted_and_hidden_messages_give_place_to_older_ones(people: dict[str, User]) -> None:
    ann, bob, cid = people["ann"], people["bob"], people["cid"]
    first = tell(ann, "@bob @cid hello")
    of_cid = say(cid, "mine", reply_to=first)
    assert listed(bob) == [(first.pk, of_cid.pk, True)]
    relations.mute(muter=bob, muted=cid)
    assert listed(bob) == [(first.pk, first.pk, True)]
    relations.unmute(muter=bob, muted=cid)
    items.delete(item=of_cid)
    assert listed(bob) == [(first.pk, first.pk, True)]
    items.delete(item=first)
    assert listed(bob) == listed(ann) == []


def test_a_conversation_whose_last_shown_message_is_ones_own_is_read(people: dict[str, User]) -> None:
    ann, bob = people["ann"], people["bob"]
    first = tell(ann, "@bob one")
    answer = say(bob, "two", reply_to=first)
    assert [one["unread"] for one in Caller(ann).get("v1/conversations")] == [True]
    deactivate(user=bob)
    assert listed(ann) == [(first.pk, first.pk, False)]
    assert conversation_of(ann, first.pk).unread is False
    assert [one["unread"] for one in Caller(ann).get("v1/conversations")] == [False]
    reactivate(user=bob)
    assert listed(ann) == [(first.pk, answer.pk, True)]
    items.delete(item=answer)
    assert listed(ann) == [(first.pk, first.pk, False)]


def test_a_conversation_that_was_put_away_is_back_with_the_next_message(people: dict[str, User]) -> None:
    ann, bob = people["ann"], people["bob"]
    first = tell(ann, "@bob hello")
    hide_conversation(reader=bob, conversation_id=first.pk)
    with pytest.raises(MissingError):
        hide_conversation(reader=people["cid"], conversation_id=first.pk)
    assert listed(bob) == []
    assert listed(ann) == [(first.pk, first.pk, False)]
    more = say(ann, "and more", reply_to=first)
    assert listed(bob) == [(first.pk, more.pk, True)]


def test_pages_walk_the_whole_list_at_one_statement_each(people: dict[str, User]) -> None:
    made = [tell(people["ann"], f"@bob {number}").pk for number in range(7)]
    walked: list[int] = []
    last_id, costs = None, set()
    while True:
        with statements() as seen:
            page = conversations_page(people["bob"], last_id=last_id, limit=2)
        costs.add(len(seen))
        walked += [int(one.id) for one in page.items]
        if not page.has_more:
            break
        last_id = int(page.last_id or 0)
    assert walked == made[::-1]
    assert costs == {1}


def test_strangers_are_listed_apart_without_a_mark(people: dict[str, User]) -> None:
    bob, cid = people["bob"], people["cid"]
    first = tell(cid, "@bob buy this")
    assert listed(bob) == []
    assert listed(bob, requests=True) == [(first.pk, first.pk, True)]
    assert unread_count(bob).unread == 0
    assert notified(bob) == []
    reply = say(bob, "no", reply_to=first)
    assert listed(bob) == [(first.pk, reply.pk, False)]
    assert listed(bob, requests=True) == []
    say(cid, "please", reply_to=reply)
    assert notified(bob) == ["reply"]


def test_an_accepted_request_is_a_conversation(people: dict[str, User]) -> None:
    bob, cid = people["bob"], people["cid"]
    first = tell(cid, "@bob @dan buy this")
    assert not accept(reader=people["ann"], conversation_id=first.pk)
    assert accept(reader=bob, conversation_id=first.pk)
    assert not accept(reader=bob, conversation_id=first.pk)
    assert listed(bob, requests=True) == []
    assert listed(bob) == [(first.pk, first.pk, True)]
    assert notified(bob) == []
    say(cid, "please", reply_to=first)
    assert notified(bob) == ["mention"]
    tell(cid, "@bob another thing")
    assert len(listed(bob)) == 2
    assert len(listed(people["dan"], requests=True)) == 1
    assert listed(people["dan"]) == []


def test_a_removed_request_is_back_with_the_next_message(people: dict[str, User]) -> None:
    bob, cid = people["bob"], people["cid"]
    first = tell(cid, "@bob buy this")
    hide_conversation(reader=bob, conversation_id=first.pk)
    assert listed(bob, requests=True) == listed(bob) == []
    more = say(cid, "please", reply_to=first)
    assert listed(bob, requests=True) == [(first.pk, more.pk, True)]
    assert listed(bob) == []


def test_a_strangers_private_reply_to_ones_post_is_a_request_too(people: dict[str, User]) -> None:
    post = say(people["bob"], "a public post")
    tell(people["cid"], "@bob buy this", reply_to=post)
    assert notified(people["bob"]) == []
    assert listed(people["bob"]) == []


def test_all_people_of_a_conversation_are_told(people: dict[str, User]) -> None:
    follow(people["cid"], people["ann"])
    follow(people["cid"], people["bob"])
    first = tell(people["ann"], "@bob @cid hello")
    say(people["bob"], "hi, and @dan too", reply_to=first)
    kinds = {name: notified(people[name]) for name in people}
    assert kinds == {"ann": ["reply"], "bob": ["mention"], "cid": ["mention", "mention"], "dan": []}


def test_what_goes_with_an_account_and_what_stays(people: dict[str, User]) -> None:
    ann, bob = people["ann"], people["bob"]
    first = tell(ann, "@bob hello")
    reply = say(bob, "hi", reply_to=first)
    assert purge(user_id=ann.pk, limit=10) > 0
    while purge(user_id=ann.pk, limit=1):
        pass
    assert not Participant.objects.filter(user=ann).exists()
    assert Item.objects.get(pk=first.pk).content == {}
    assert listed(bob) == [(first.pk, reply.pk, False)]
    assert Item.objects.visible_to(bob).get(pk=reply.pk).text == "hi"


# --- Over HTTP -------------------------------------------------------------------------------------------
def test_the_api(people: dict[str, User]) -> None:
    ann, bob = client_of(people["ann"]), client_of(people["bob"])
    wrong = {"content": {"text": "nobody"}, "visibility": "mentioned"}
    refused = ann.post(f"{API}/items", wrong)
    assert (refused.status_code, list(refused.json())) == (400, ["visibility"])
    made = ann.post(f"{API}/items", {"content": {"text": "@bob hello"}, "visibility": "mentioned"}).json()
    assert made["visibility"] == "mentioned"
    (one,) = bob.get(f"{API}/me/conversations").json()["items"]
    assert (one["id"], one["unread"], one["last_item"]["id"]) == (made["id"], True, made["id"])
    assert [user["username"] for user in one["users"]] == ["ann"]
    assert bob.post(f"{API}/me/conversations/{made['id']}/read").status_code == 204
    assert not bob.get(f"{API}/me/conversations").json()["items"][0]["unread"]
    assert bob.post(f"{API}/items/{made['id']}/repost").status_code == 403
    assert bob.put(f"{API}/items/{made['id']}/like").status_code == 204
    reply = bob.post(f"{API}/items", {"content": {"text": "hi"}, "reply_to": made["id"]}).json()
    assert reply["visibility"] == "mentioned"
    for client in (client_of(people["dan"]), APIClient()):
        assert client.post(f"{API}/me/conversations/{made['id']}/read").status_code in (401, 404)
        assert client.get(f"{API}/items/{reply['id']}").status_code == 404
    apart = client_of(people["cid"]).post(f"{API}/items", {"content": {"text": "@bob hey"}, "visibility": "mentioned"})
    assert [one["id"] for one in bob.get(f"{API}/me/conversations/requests").json()["items"]] == [apart.json()["id"]]


def test_the_api_accepts_and_removes(people: dict[str, User]) -> None:
    bob, dan = client_of(people["bob"]), client_of(people["dan"])
    first, second = tell(people["cid"], "@bob hey"), tell(people["cid"], "@bob hello")
    for number in (first.pk, 1, "x"):
        assert dan.post(f"{API}/me/conversations/{number}/accept").status_code == 404
        assert dan.delete(f"{API}/me/conversations/{number}").status_code == 404
    for _ in range(2):
        assert bob.post(f"{API}/me/conversations/{first.pk}/accept").status_code == 204
        assert bob.delete(f"{API}/me/conversations/{second.pk}").status_code == 204
    assert bob.get(f"{API}/me/conversations/requests").json()["items"] == []
    assert [one["id"] for one in bob.get(f"{API}/me/conversations").json()["items"]] == [str(first.pk)]
    relations.block(blocker=people["bob"], blocked=people["cid"])
    assert bob.post(f"{API}/me/conversations/{first.pk}/accept").status_code == 404


def test_too_many_strangers_are_refused_by_the_rate(people: dict[str, User], settings: Any) -> None:
    settings.RATE_SCALE = 1.0
    settings.RATES = settings.RATES | {"strangers": "1/day"}
    fields = {"content": {"text": "@dan hey"}, "visibility": "mentioned"}
    client = client_of(people["cid"])
    assert client.post(f"{API}/items", fields).status_code == 201
    refused = client.post(f"{API}/items", fields)
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) > 80_000
    status = {"status": "@dan hey", "visibility": "direct"}
    Caller(people["cid"]).post("v1/statuses", status, status=429)
    shown = logged_in(people["cid"]).post("/items/new", composed("@dan hey", visibility="mentioned"))
    assert "You messaged many new people" in shown.content.decode()


def test_the_pages(people: dict[str, User]) -> None:
    ann, bob = logged_in(people["ann"]), logged_in(people["bob"])
    shown = ann.post("/items/new", composed("nobody", visibility="mentioned"))
    assert "Mention someone by @name" in shown.content.decode()
    assert ann.post("/items/new", composed("@bob <hello>", visibility="mentioned")).status_code == 302
    first = Item.objects.get()
    page = bob.get("/conversations").content.decode()
    assert "@bob &lt;hello&gt;" in page
    assert 'class="talk unread"' in page
    assert "/conversations" in bob.get("/notifications").content.decode()
    thread = bob.get(f"/items/{first.pk}").content.decode()
    assert "Only you and <bdi>@ann</bdi> can see this conversation." in thread
    assert f'href="/conversations/{first.pk}"' in thread
    assert "The same people" in thread
    assert 'name="visibility" value="public"' not in thread
    assert 'class="talk unread"' not in bob.get("/conversations").content.decode()
    reply = bob.post("/items/new", composed("hi", reply_to=first.pk, visibility="public"))
    assert reply.status_code == 302
    assert Item.objects.get(reply_to=first).visibility == Visibility.MENTIONED
    assert "1 unread conversation<" in ann.get("/notifications").content.decode()
    items.delete(item=first)
    (answer,) = Item.objects.filter(reply_to=first)
    assert f'id="item-{answer.pk}"' in ann.get(f"/conversations/{first.pk}").content.decode()
    assert logged_in(people["cid"]).get(f"/conversations/{first.pk}").status_code == 404
    assert "No requests." in ann.get("/conversations/requests").content.decode()


def test_the_pages_accept_and_remove(people: dict[str, User]) -> None:
    bob, dan = logged_in(people["bob"]), logged_in(people["dan"])
    first, second = tell(people["cid"], "@bob hey"), tell(people["cid"], "@bob hello")
    page = bob.get("/conversations/requests").content.decode()
    for item in (first, second):
        for verb in ("accept", "remove"):
            assert f'action="/conversations/{item.pk}/{verb}"' in page
            assert f'action="/conversations/{item.pk}/{verb}"' in bob.get(f"/items/{item.pk}").content.decode()
            assert dan.post(f"/conversations/{item.pk}/{verb}").status_code == 404
            assert bob.get(f"/conversations/{item.pk}/{verb}").status_code == 405
    accepted = bob.post(f"/conversations/{first.pk}/accept")
    assert (accepted.status_code, accepted["Location"]) == (302, f"/conversations/{first.pk}")
    removed = bob.post(f"/conversations/{second.pk}/remove", {"next": "/conversations/requests"}, follow=True)
    assert removed.redirect_chain == [("/conversations/requests", 302)]
    assert "Removed" in removed.content.decode()
    assert "No requests." in removed.content.decode()
    for shown in ("/conversations", f"/conversations/{first.pk}"):
        assert "/accept" not in bob.get(shown).content.decode()
    assert f'action="/conversations/{first.pk}/remove"' in bob.get(f"/conversations/{first.pk}").content.decode()
    assert "/accept" not in bob.get(f"/items/{first.pk}").content.decode()
    assert "/accept" not in logged_in(people["cid"]).get(f"/items/{second.pk}").content.decode()
    assert bob.post(f"/conversations/{first.pk}/remove")["Location"] == "/conversations"


def test_at_home_the_composer_says_where_it_went(people: dict[str, User]) -> None:
    client = logged_in(people["ann"])
    sent = client.post("/items/new", composed("@bob hello", visibility="mentioned"), **PART)
    assert "Find it under Messages." in sent["HX-Trigger-After-Settle"]
    assert "@bob hello" not in sent.content.decode()


def test_the_editor_keeps_the_people(people: dict[str, User]) -> None:
    client, first = logged_in(people["ann"]), tell(people["ann"], "@bob hello")
    form = client.get(f"/items/{first.pk}/edit").content.decode()
    assert "The same people" in form
    wider = client.post(f"/items/{first.pk}/edit", {"text": "@cid hello", "visibility": "public", "warning": ""})
    assert wider.status_code == 422
    saved = client.post(f"/items/{first.pk}/edit", {"text": "@cid hello", "visibility": "mentioned", "warning": ""})
    assert saved.status_code == 302
    first.refresh_from_db()
    assert (first.text, first.visibility) == ("@cid hello", Visibility.MENTIONED)
    assert not Item.objects.visible_to(people["cid"]).exists()
    other = say(people["ann"], "@bob open")
    to_private = client.post(f"/items/{other.pk}/edit", {"text": "@bob", "visibility": "mentioned", "warning": ""})
    assert to_private.status_code == 422


def test_requests_are_refused_by_a_preference(people: dict[str, User]) -> None:
    bob = logged_in(people["bob"])
    assert "follow message me" in bob.get("/settings/preferences").content.decode()
    bob.post("/settings/preferences", {"theme": "", "language": "", "time_zone": "", "is_indexable": "on"})
    assert not User.objects.get(username="bob").takes_requests
    refused = client_of(people["cid"]).post(
        f"{API}/items", {"content": {"text": "@bob hey"}, "visibility": "mentioned"}
    )
    assert "@bob only accepts private mentions" in refused.content.decode()
    api = client_of(people["bob"])
    assert api.patch(f"{API}/users/me", {"takes_requests": True}).json()["takes_requests"] is True


# --- Apps ------------------------------------------------------------------------------------------------
def test_conversations_of_apps(people: dict[str, User]) -> None:
    ann, bob = Caller(people["ann"]), Caller(people["bob"])
    ann.post("v1/statuses", {"status": "nobody", "visibility": "direct"}, status=422)
    first = ann.post("v1/statuses", {"status": "@bob @cid hello", "visibility": "direct"})
    assert (first["visibility"], [one["acct"] for one in first["mentions"]]) == ("direct", ["bob", "cid"])
    (talk,) = bob.get("v1/conversations")
    assert (talk["id"], talk["unread"], talk["last_status"]["id"]) == (first["id"], True, first["id"])
    assert [account["acct"] for account in talk["accounts"]] == ["ann", "cid"]
    answer = {"in_reply_to_id": first["id"], "visibility": "direct"}
    bob.post("v1/statuses", answer | {"status": "@ann only for you"}, status=422)
    bob.post("v1/statuses", answer | {"status": "@ann @cid @dan hi"}, status=422)
    reply = bob.post("v1/statuses", answer | {"status": "@ann @cid hi @nobody"})
    assert {one["acct"] for one in ann.get(f"v1/statuses/{reply['id']}")["mentions"]} == {"ann", "cid"}
    assert [one["id"] for one in ann.get(f"v1/statuses/{first['id']}/context")["descendants"]] == [reply["id"]]
    ann.post(f"v1/statuses/{reply['id']}/reblog", status=403)
    assert ann.get("v1/conversations")[0]["unread"] is True
    assert ann.post(f"v1/conversations/{first['id']}/read")["unread"] is False
    second = ann.post("v1/statuses", {"status": "@bob again", "visibility": "direct"})
    assert [one["id"] for one in ann.get("v1/conversations?limit=1")] == [second["id"]]
    assert f"max_id={second['id']}" in ann.response["Link"]
    assert [one["id"] for one in ann.get(f"v1/conversations?max_id={second['id']}")] == [first["id"]]
    assert [one["id"] for one in ann.get("v1/conversations?min_id=1&limit=1")] == [first["id"]]
    ann.delete(f"v1/conversations/{first['id']}")
    assert [one["id"] for one in ann.get("v1/conversations")] == [second["id"]]
    ann.delete(f"v1/conversations/{reply['id']}", status=404)
    Caller(people["dan"]).post(f"v1/conversations/{first['id']}/read", status=404)
    ann.put(f"v1/statuses/{second['id']}", {"status": "@dan again"})
    Caller(people["dan"]).get(f"v1/statuses/{second['id']}", status=404)


def test_what_one_keeps_for_oneself_is_no_conversation(people: dict[str, User]) -> None:
    own = say(people["ann"], "a note", visibility=Visibility.SELF)
    ann = Caller(people["ann"])
    assert ann.get(f"v1/statuses/{own.pk}")["visibility"] == "private"
    assert ann.get("v1/conversations") == []
