import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from relations.actions import block, follow, mute
from relations.models import Block, Follow, Mute
from relations.suggestions import suggestions
from tests.support import servers
from tests.support.answers import lasting
from tests.support.factories import UserFactory
from tests.support.pages import PART
from tests.support.statements import statements

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader(client: Client) -> Any:
    reader = UserFactory.create(username="reader")
    client.force_login(reader)
    return reader


ACTS: dict[str, Callable[[User, User], bool]] = {
    "unmute": lambda reader, other: mute(muter=reader, muted=other),
    "unblock": lambda reader, other: block(blocker=reader, blocked=other),
}


@pytest.mark.parametrize("verb", ACTS)
def test_undoing_in_a_list_says_so(client: Client, reader: User, other: User, verb: str) -> None:
    """A button in its place would undo the undo at the second press."""
    ACTS[verb](reader, other)
    part = client.post(f"/@other/{verb}", {"listed": "1"}, **PART).content.decode()
    assert "ed @other." in part
    assert "<button" not in part
    ACTS[verb](reader, other)
    assert "<button" in client.post(f"/@other/{verb}", **PART).content.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("begin", "end", "model"), [("follow", "unfollow", Follow), ("block", "unblock", Block), ("mute", "unmute", Mute)]
)
def test_relations_begin_and_end_by_post(
    client: Client, reader: Any, other: Any, begin: str, end: str, model: Any
) -> None:
    assert client.get(f"/@other/{begin}").status_code == (200 if begin == "block" else 405)
    assert not model.objects.exists()
    for verb, count in ((begin, 1), (begin, 1), (end, 0), (end, 0)):
        response = client.post(f"/@OTHER/{verb}")
        assert response["Location"] == "/@other"
        assert model.objects.count() == count


def test_the_button_takes_its_own_place(client: Client, reader: Any, other: Any) -> None:
    profile = client.post("/@other/follow", **PART, HTTP_HX_TARGET="standing").content.decode()
    assert "/@other/unfollow" in profile
    assert "/@other/mute" in profile
    assert '<span id="follower-count" hx-swap-oob="true"><b>1</b> follower</span>' in profile
    row = client.post("/@other/unfollow", **PART, HTTP_HX_TARGET="standing-other").content.decode()
    assert 'id="standing-other"' in row
    assert "/@other/mute" not in row


def test_impossible_acts_are_explained(client: Client, reader: Any, other: Any, settings: Settings) -> None:
    settings.FOLLOW_CAP = 0
    assert "the limit of follows" in client.post("/@other/follow", follow=True).content.decode()
    response = client.post("/@other/follow", **PART)
    assert response.status_code == 422
    assert "the limit of follows" in response["HX-Trigger"]
    assert "do this to yourself." in client.post("/@reader/follow", follow=True).content.decode()


def test_users_who_block_the_reader_do_not_exist(client: Client, reader: Any, other: Any) -> None:
    block(blocker=other, blocked=reader)
    nobody = lasting(client.get("/@nobody"))
    for address in ("/@other", "/@other/followers", "/@other/following"):
        response = client.get(address)
        assert (response.status_code, lasting(response)) == (404, nobody)
    assert client.post("/@other/follow").status_code == 404


@pytest.mark.slow
def test_lists_show_people_newest_first_and_whom_the_reader_follows(client: Client, reader: Any, other: Any) -> None:
    followers = UserFactory.create_batch(25)
    for one in followers:
        follow(follower=one, followee=other)
    follow(follower=reader, followee=followers[-1])
    gone, blocker = followers[3], followers[4]
    gone.is_active = False
    gone.save()
    block(blocker=blocker, blocked=reader)
    first = client.get("/@other/followers")
    cards = first.context["people"]
    assert [card["following"] for card in cards] == [True, *[False] * 19]
    rest = client.get("/@other/followers", {"last_id": first.context["last_id"]}, **PART)
    names = [card["person"] for card in cards + rest.context["people"]]
    assert names == [one for one in reversed(followers) if one not in (gone, blocker)]
    assert rest.context["last_id"] is None
    assert 'hx-swap-oob="beforeend:#people"' in rest.content.decode()


@pytest.mark.slow
def test_lists_cost_the_same_for_one_and_many(client: Client, reader: Any, other: Any) -> None:
    client.get("/@other/following")  # caches the session
    for count in (1, 15):
        for one in UserFactory.create_batch(count):
            follow(follower=other, followee=one)
        with statements() as seen:
            client.get("/@other/following")
        assert len(seen) == 5, seen  # user, list's owner, list, which of them the reader follows, unread


def test_suggestions_are_the_most_followed_whom_one_has_not_turned_away(reader: Any) -> None:
    users = [UserFactory.create(follower_count=count) for count in range(10)]
    follow(follower=reader, followee=users[9])
    block(blocker=reader, blocked=users[8])
    mute(muter=reader, muted=users[7])
    block(blocker=users[6], blocked=reader)
    users[5].is_active = False
    users[5].save()
    assert suggestions(reader, count=3) == [users[4], users[3], users[2]]
    assert reader not in suggestions(reader, count=20)


def turn_away(reader: Any, user: Any) -> None:
    block(blocker=user, blocked=reader)


def hide(reader: Any, user: Any) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


@pytest.mark.parametrize(
    "change",
    [
        lambda reader, user: follow(follower=reader, followee=user),
        lambda reader, user: block(blocker=reader, blocked=user),
        lambda reader, user: mute(muter=reader, muted=user),
        turn_away,
        hide,
    ],
)
def test_a_suggestion_that_may_not_be_made_any_more_gives_way(reader: Any, change: Any) -> None:
    users = [UserFactory.create(follower_count=count) for count in range(5)]
    assert suggestions(reader, count=2) == [users[4], users[3]]
    change(reader, users[4])
    assert suggestions(reader, count=2) == [users[3], users[2]]


def test_suggestions_are_kept_for_a_while(reader: Any, feeds: redis.Redis) -> None:
    users = [UserFactory.create(follower_count=count) for count in range(5)]
    suggestions(reader, count=2)
    rising = UserFactory.create(follower_count=9)
    with statements() as asked:
        assert suggestions(reader, count=2) == [users[4], users[3]]
    assert len(asked) == 1
    (key,) = feeds.scan_iter("cache:*:suggestions:*")
    assert 590 < feeds.ttl(key) <= 600
    feeds.delete(key)
    assert suggestions(reader, count=2) == [rising, users[4]]


@pytest.mark.parametrize(
    "rubbish",
    [b"", b"7", b"null", b'["a"]', b"[-1]", b"[true]", b"[99999999999999999999999]", b"[1.5]", b"{}", b"\x80\x04N."],
)
def test_rubbish_in_the_cache_is_no_suggestion(reader: Any, feeds: redis.Redis, rubbish: bytes) -> None:
    users = [UserFactory.create(follower_count=count) for count in range(5)]
    suggestions(reader, count=2)
    (key,) = feeds.scan_iter("cache:*:suggestions:*")
    feeds.set(key, rubbish)
    assert suggestions(reader, count=2) == [users[4], users[3]]


@pytest.mark.slow
@pytest.mark.parametrize("fault", [servers.frozen, servers.dead, servers.full])
def test_suggestions_without_the_cache(reader: Any, feeds_server: servers.Valkey, fault: Any) -> None:
    users = [UserFactory.create(follower_count=count) for count in range(5)]
    with fault(feeds_server):
        for _ in range(3):
            assert suggestions(reader, count=2) == [users[4], users[3]]


@pytest.mark.parametrize(("verb", "model"), [("mute", Mute), ("block", Block)])
def test_a_card_s_menu_tells_the_page_whose_cards_leave(
    client: Client, reader: User, other: User, verb: str, model: Any
) -> None:
    answer = client.post(f"/@other/{verb}", {"card": "1"}, **PART)
    told = json.loads(answer["HX-Trigger"])["turned-away"]
    assert (told["username"], told["blocked"], told["profile"]) == ("other", verb == "block", "/@other")
    assert "@other" in told["said"]
    assert model.objects.count() == 1


def test_a_card_s_menu_without_scripts_leads_to_the_profile(client: Client, reader: User, other: User) -> None:
    answer = client.post("/@other/mute", {"card": "1"}, follow=True)
    assert answer.redirect_chain == [("/@other", 302)]
    assert "@other" in answer.content.decode()


def test_muting_for_a_time(client: Client, reader: User, other: User) -> None:
    assert client.get("/@other/mute-for").status_code == 200
    assert client.post("/@other/mute-for", {"lasts": "24"})["Location"] == "/@other"
    made = Mute.objects.get()
    assert made.expires_at is not None
    assert timedelta(hours=23) < made.expires_at - timezone.now() <= timedelta(hours=24)
    assert not made.notifications


@pytest.mark.parametrize(("name", "fields"), [("other", {"lasts": "7"}), ("reader", {"lasts": ""})])
def test_a_mute_that_cannot_be_says_why(
    client: Client, reader: User, other: User, name: str, fields: dict[str, str]
) -> None:
    assert client.post(f"/@{name}/mute-for", fields).status_code == 422
    assert not Mute.objects.exists()
