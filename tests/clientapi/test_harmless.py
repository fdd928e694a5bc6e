"""What apps send by accident, and what is no error for Mastodon."""

from functools import partial
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from items import actions as items
from items.models import ItemType, Poll, Visibility, Vote
from relations import actions as relations
from tests.support.at_once import at_once
from tests.support.clients import Caller, token_of
from tests.support.factories import UserFactory, say
from web.rest import MAX_POSITION

pytestmark = pytest.mark.django_db

EIGHTEEN = "110000000000000000"
"""An id of a Mastodon server of 2023."""


@pytest.fixture
def ann() -> User:
    return UserFactory(username="ann")


@pytest.fixture
def caller(ann: User) -> Caller:
    return Caller(ann)


def test_names_that_nobody_defines_pass(caller: Caller) -> None:
    sent = {"status": "x", "valid_policies": ["public", "nobody"], "extra": {"a": 1}}
    assert caller.post("v1/statuses", sent)["content"] == "<p>x</p>"
    for lost in ("media_id", "mediaIds", "poll_options", "attachments"):
        caller.post("v1/statuses", {"status": "y", lost: ["1"]}, status=422)


@pytest.mark.parametrize(
    "path",
    [
        *("v1/instance/", "v2/instance/", "v1/timelines/home/", "v1/accounts/verify_credentials/", "v1/lists/"),
        *("v1/notifications/", "v2/notifications/", "v2/search/?q=x", "v1/accounts/relationships/?id[]=1"),
    ],
)
def test_a_slash_at_the_end_changes_nothing(path: str, caller: Caller) -> None:
    assert caller.get(path) == caller.get(path.replace("/?", "?").removesuffix("/"))


def test_a_slash_at_the_end_of_what_is_written(caller: Caller) -> None:
    status = caller.post("v1/statuses/", {"status": "x"})
    assert caller.get(f"v1/statuses/{status['id']}/") == caller.get(f"v1/statuses/{status['id']}")
    caller.post(f"v1/statuses/{status['id']}/favourite/")
    caller.delete(f"v1/statuses/{status['id']}/")
    assert Client().get("/api/v1/users/ann/").status_code == 404


@pytest.mark.parametrize("path", ["oauth/token", "oauth/revoke", "nodeinfo/2.0", "api/v1/streaming/health"])
def test_every_address_of_apps_also_ends_in_a_slash(path: str) -> None:
    for method in ("get", "post"):
        with_slash, without = (getattr(Client(), method)(f"/{one}") for one in (f"{path}/", path))
        assert (with_slash.status_code, with_slash.content) == (without.status_code, without.content)


def test_long_ids_are_positions(caller: Caller, ann: User) -> None:
    item = say(ann, "x")
    assert [one["id"] for one in caller.get(f"v1/timelines/home?max_id={EIGHTEEN}")] == [str(item.pk)]
    for name in ("since_id", "min_id"):
        assert caller.get(f"v1/timelines/home?{name}={EIGHTEEN}") == []
        assert caller.get(f"v1/notifications?{name}={EIGHTEEN}") == []
    assert caller.get(f"v1/timelines/home?max_id={MAX_POSITION}")
    for path in (f"v1/statuses/{EIGHTEEN}", f"v1/accounts/{EIGHTEEN}"):
        caller.get(path, status=404)
    caller.post("v1/statuses", {"status": "y", "in_reply_to_id": EIGHTEEN}, status=404)
    caller.get(f"v1/timelines/home?max_id={2**64}", status=400)


def test_one_wrong_id_does_not_spoil_a_list(caller: Caller, ann: User) -> None:
    bob, item = UserFactory(), say(ann, "x")
    wrong = f"id[]=abc&id[]=0&id[]={EIGHTEEN}&id[]="
    assert [one["id"] for one in caller.get(f"v1/accounts/relationships?{wrong}&id[]={bob.pk}")] == [str(bob.pk)]
    assert [one["id"] for one in caller.get(f"v1/accounts?{wrong}&id[]={bob.pk}")] == [str(bob.pk)]
    assert [one["id"] for one in caller.get(f"v1/statuses?{wrong}&id[]={item.pk}")] == [str(item.pk)]
    assert caller.get("v1/accounts/relationships?id[]=abc") == []


def test_a_token_in_the_query_reads_and_does_not_write(ann: User) -> None:
    client, token = Client(), token_of(ann)
    read = client.get(f"/api/v1/accounts/verify_credentials?access_token={token}")
    assert read.json()["username"] == "ann"
    wrong = client.get(f"/api/v1/accounts/verify_credentials?access_token={token}x")
    assert (wrong.status_code, list(wrong.json())) == (401, ["error"])
    written = client.post(f"/api/v1/statuses?access_token={token}", {"status": "x"}, content_type="application/json")
    assert written.status_code == 401
    assert client.get(f"/api/v1/users/me?access_token={token}").status_code == 401


def test_the_source_of_a_post_that_one_may_read(caller: Caller, ann: User) -> None:
    bob = UserFactory()
    open_, hidden = say(bob, "a *b*"), items.publish(sender=bob, content={"text": "c"}, visibility=Visibility.FOLLOWERS)
    assert caller.get(f"v1/statuses/{open_.pk}/source")["text"] == "a *b*"
    caller.get(f"v1/statuses/{hidden.pk}/source", status=404)
    relations.block(blocker=bob, blocked=ann)
    caller.get(f"v1/statuses/{open_.pk}/source", status=404)


@pytest.mark.parametrize(
    "path",
    [
        *("oembed?url=x", "v1/annual_reports", "v1/annual_reports/2025", "v1_alpha/collections", "v3/x", "v1/nowhere"),
        *("v2/nowhere", "v1/tags/x/feature", "v1/collections/1", "v1/async_refreshes/1", "pleroma/emoji", "nowhere/"),
    ],
)
def test_missing_addresses_have_one_shape(path: str, caller: Caller) -> None:
    for one in (caller, Caller(None)):
        for method in ("get", "post", "delete"):
            assert list(one.ask(method, path, status=404)) == ["error"], (method, path)


def test_the_sites_own_missing_addresses_keep_theirs(caller: Caller) -> None:
    for path in ("v1/users/ann/nowhere", "v1/items/1/nowhere", "v1/me/nowhere"):
        assert list(caller.get(path, status=404)) == ["detail"]


def poll_of(sender: User, *, multiple: bool = True) -> Any:
    poll = {"options": ["a", "b", "c"], "multiple": multiple, "closes_in": 600}
    return items.publish(sender=sender, type=ItemType.POLL, content={"text": "?", "poll": poll})


def test_a_further_answer_of_a_poll_of_several(caller: Caller) -> None:
    item = poll_of(UserFactory())
    address = f"v1/polls/{item.pk}/votes"
    caller.post(address, {"choices": [1]})
    after = caller.post(address, {"choices": ["0"]})
    assert (after["own_votes"], after["voters_count"], after["votes_count"]) == ([0, 1], 1, 2)
    caller.post(address, {"choices": [2, 0]}, status=422)
    assert [one["votes_count"] for one in caller.get(f"v1/polls/{item.pk}")["options"]] == [1, 1, 0]
    single = poll_of(UserFactory(), multiple=False)
    caller.post(f"v1/polls/{single.pk}/votes", {"choices": [1]})
    caller.post(f"v1/polls/{single.pk}/votes", {"choices": [0]}, status=422)


@pytest.mark.django_db(transaction=True)
def test_further_answers_at_once_are_each_counted_once(ann: User) -> None:
    item = poll_of(UserFactory())
    at_once(*(partial(Caller(ann).post, f"v1/polls/{item.pk}/votes", {"choices": [place]}) for place in (0, 1, 1, 2)))
    tally, vote = Poll.objects.get(pk=item.pk), Vote.objects.get(item=item)
    assert (sorted(vote.choices), tally.votes, tally.voters) == ([0, 1, 2], [1, 1, 1], 1)


def test_libraries_find_out_how_to_speak_to_the_site() -> None:
    body = Client().get("/nodeinfo/2.0").json()
    assert (body["software"]["name"], body["metadata"]["upstream"]["name"]) == ("feedsite", "mastodon")


@pytest.mark.parametrize(
    ("site", "port", "stream"),
    [
        ("https://a.example", 0, "wss://a.example"),
        ("http://a.example:8000", 8001, "ws://a.example:8001"),
        ("https://[::1]:8443", 0, "wss://[::1]:8443"),
        ("http://[::1]:8000", 8001, "ws://[::1]:8001"),
    ],
)
def test_the_stream_has_a_sockets_address(site: str, port: int, stream: str, settings: Any, caller: Caller) -> None:
    settings.SITE_URL, settings.STREAM_PORT = site, port
    assert caller.get("v1/instance")["urls"]["streaming_api"] == stream
    assert caller.get("v2/instance")["configuration"]["urls"]["streaming"] == stream


def test_a_foreign_address_finds_the_posts_that_have_it(caller: Caller) -> None:
    found = say(UserFactory(), "read https://far.example/a/page?x=1 now")
    say(UserFactory(), "read https://far.example/another")
    result = caller.get("v2/search", {"q": "https://far.example/a/page?x=1", "resolve": "true"})
    assert [one["id"] for one in result["statuses"]] == [str(found.pk)]
    assert (result["accounts"], result["hashtags"]) == ([], [])
    assert caller.get("v2/search", {"q": "https://far.example/a/page?x=1", "type": "accounts"})["statuses"] == []
    assert caller.get("v2/search", {"q": "https://mastodon.example/@bob/1"})["statuses"] == []
