import json
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from accounts.actions import issue_token
from accounts.models import User
from clientapi.streaming import streaming
from clientapi.streaming.streams import ClientHearer, Stream
from items import actions as items
from items.models import Item, MutedThread, Visibility
from items.purge import purge
from items.threads.muting import mute_thread, unmute_thread
from notifications import actions
from notifications.feed import notifications_page, unread_count, unread_counts
from storage.events import Notified, Position, Published
from tests.support.clients import Caller
from tests.support.factories import say

pytestmark = pytest.mark.django_db(transaction=True)


def kinds(reader: User) -> list[str]:
    entries = [entry.kind for entry in notifications_page(reader).items]
    assert unread_count(reader).unread == unread_counts([reader.pk])[reader.pk].unread == len(entries)
    apps = Caller(reader).get("v1/notifications")
    assert [one["type"].replace("favourite", "like").replace("reblog", "repost") for one in apps] == [
        "mention" if kind == "reply" else kind for kind in entries
    ]
    return entries


def test_a_muted_thread_tells_nothing_and_all_is_back_afterwards(ann: User, bob: User) -> None:
    post = say(ann)
    reply = say(bob, "hm", reply_to=post)
    answer = say(ann, "well", reply_to=reply)
    items.like(user=bob, item=answer)
    items.repost(sender=bob, item=post)
    say(bob, "again @ann", reply_to=answer)
    other = say(bob, "elsewhere @ann")
    before = kinds(ann)
    assert before == ["mention", "reply", "repost", "like", "reply"]
    assert mute_thread(user=ann, item=reply)
    assert not mute_thread(user=ann, item=answer), "the whole thread is muted"
    assert kinds(ann) == ["mention"]
    say(bob, "and again @ann", reply_to=reply)
    assert kinds(ann) == ["mention"]
    assert kinds(bob) == ["reply"], "others are told as ever"
    assert unmute_thread(user=ann, item=post)
    assert kinds(ann) == ["reply", *before]
    assert MutedThread.objects.count() == 0
    assert other.root_id is None


def test_what_the_site_tells_stays(ann: User) -> None:
    post = say(ann)
    mute_thread(user=ann, item=post)
    actions.notify_of_pictures(item=post, decision_id=1, text="no")
    actions.notify_of_scheduled(user=ann, item=post)
    assert [entry.kind for entry in notifications_page(ann).items] == ["scheduled", "picture"]


def test_a_repost_stands_for_its_original(ann: User, bob: User) -> None:
    post = say(ann)
    shared, _ = items.repost(sender=bob, item=post)
    mute_thread(user=ann, item=Item.objects.get(pk=shared.pk))
    assert MutedThread.objects.get().root_id == post.pk


def test_the_menu(ann: User, bob: User, client: Client) -> None:
    post, foreign = say(ann), say(bob)
    client.force_login(ann)
    assert "Mute thread" in client.get(f"/items/{post.pk}/menu").content.decode()
    assert "Mute thread" not in client.get(f"/items/{foreign.pk}/menu").content.decode()
    assert client.post(f"/items/{post.pk}/mute")["Location"] == f"/items/{post.pk}"
    assert MutedThread.objects.get().root_id == post.pk
    assert "Unmute thread" in client.get(f"/items/{post.pk}/menu").content.decode()
    client.post(f"/items/{post.pk}/unmute")
    assert not MutedThread.objects.exists()
    assert client.get(f"/items/{post.pk}/mute").status_code == 405


def test_the_apis_and_who_may(ann: User, bob: User) -> None:
    post, hidden = say(ann), say(ann, visibility=Visibility.SELF)
    api, caller = APIClient(), Caller(bob)
    api.credentials(HTTP_AUTHORIZATION=f"Token {issue_token(user=bob)}")
    for method in ("put", "delete"):
        assert getattr(api, method)(f"/api/v1/items/{hidden.pk}/mute").status_code == 404
        for _time in range(2):
            assert getattr(api, method)(f"/api/v1/items/{post.pk}/mute").status_code == 204
    caller.post(f"v1/statuses/{hidden.pk}/mute", status=404)
    assert caller.post(f"v1/statuses/{post.pk}/mute")["muted"] is True
    reply = say(ann, "more", reply_to=post)
    assert caller.get(f"v1/statuses/{reply.pk}")["muted"] is True
    assert Caller(ann).get(f"v1/statuses/{post.pk}")["muted"] is False
    assert caller.post(f"v1/statuses/{reply.pk}/unmute")["muted"] is False

    caller.post(f"v1/statuses/{post.pk}/mute")
    items.change_visibility(item=post, visibility=Visibility.SELF)
    assert api.delete(f"/api/v1/items/{post.pk}/mute").status_code == 204, "though it is hidden now"
    assert not MutedThread.objects.exists()


def told(reader: User, event: Any, **stream: bool) -> list[Any]:
    hearer = ClientHearer(reader.pk, (Stream(("user",), **stream),), is_socket=True)
    messages = streaming.messages_for([hearer], [(Position(2**41, 1), event)])
    return [json.loads(json.loads(data)["payload"]) for _, _, data in messages]


def test_streams(ann: User, bob: User) -> None:
    post = say(ann)
    mute_thread(user=ann, item=post)
    reply = say(bob, "hm", reply_to=post)
    assert told(ann, Notified(ann.pk, {}), has_notifications=True) == []
    shown = told(ann, Published(post.pk), has_home=True)
    assert [one["muted"] for one in shown] == [True]
    unmute_thread(user=ann, item=reply)
    assert [one["muted"] for one in told(ann, Published(post.pk), has_home=True)] == [False]


def test_an_account_that_goes_takes_them_along(ann: User, bob: User) -> None:
    for _ in range(3):
        mute_thread(user=ann, item=say(bob))
    assert purge(user_id=ann.pk, limit=2) == 3
    assert not MutedThread.objects.exists()
