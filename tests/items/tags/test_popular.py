from typing import Any

import pytest
import redis
from django.contrib.auth.models import AnonymousUser
from django.test import Client

from accounts.deactivation import deactivate
from accounts.models import User
from items.actions import delete
from items.models import Item, Visibility
from items.tags import popular
from items.tags.popular import popular_tags
from relations.actions import block
from tests.support.factories import UserFactory, say
from tests.support.servers import Valkey, dead, frozen, full
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

STRANGER = AnonymousUser()


def use(tag: str, users: int, **fields: Any) -> list[Item]:
    return [say(UserFactory(), f"words #{tag}", **fields) for _ in range(users)]


def test_the_most_used_come_first(reader: User) -> None:
    for tag, users in (("two", 2), ("four", 4), ("Three", 3), ("one", 1)):
        use(tag, users)
    alone = UserFactory()
    for _ in range(9):
        say(alone, "#mine")
    assert popular_tags(reader) == popular_tags(STRANGER) == ["four", "three", "two"]


@pytest.mark.parametrize("visibility", [Visibility.FOLLOWERS, Visibility.MUTUALS, Visibility.SELF])
def test_posts_that_are_not_public_count_for_nothing(reader: User, visibility: Visibility) -> None:
    use("secret", 5, visibility=visibility)
    assert popular_tags(reader) == []


@pytest.mark.parametrize("visibility", [Visibility.FOLLOWERS, Visibility.SELF])
def test_posts_that_are_not_public_take_the_place_of_none(
    reader: User, visibility: Visibility, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Private posts with many hashtags must not push out visible ones."""
    use("here", 2)
    assert " 5000" in popular.POPULAR
    monkeypatch.setattr(popular, "POPULAR", popular.POPULAR.replace(" 5000", " 3"))
    alone = UserFactory()
    for _ in range(4):
        say(alone, "#a #b #c", visibility=visibility)
    assert popular_tags(reader) == ["here"]


def test_they_cost_one_statement_until_they_are_counted_again(reader: User, feeds: redis.Redis) -> None:
    use("here", 2)
    popular_tags(reader)
    use("new", 3)
    with statements() as asked:
        assert popular_tags(STRANGER) == ["here"]
    assert len(asked) == 1
    (key,) = feeds.scan_iter("cache:*:tags:popular")
    assert 290 < feeds.ttl(key) <= 300
    feeds.delete(key)
    assert popular_tags(reader) == ["new", "here"]


def test_a_hashtag_whose_items_are_gone_is_gone_at_once(reader: User) -> None:
    items = use("here", 2)
    assert popular_tags(reader) == ["here"]
    delete(item=items[0])
    assert popular_tags(reader) == ["here"]
    deactivate(user=items[1].sender)
    assert popular_tags(reader) == []


def test_a_reader_whom_all_its_senders_block_does_not_meet_it(reader: User) -> None:
    for item in use("here", 2):
        block(blocker=item.sender, blocked=reader)
    assert popular_tags(reader) == []
    assert popular_tags(STRANGER) == ["here"]


@pytest.mark.parametrize(
    "rubbish",
    [
        b"", b"7", b"{}", b"[7]", b'["here"]', b'[["here"]]', b'[["here",[-1]]]', b'[["here",["1"]]]', b"\x80\x04N.",
        b'[["here",[99999999999999999999]]]', b'[["\\u0000",[1]]]', b'[["Here",[1]]]',
        b'[["here",[true]]]', b'[["here",[true,2]]]',
    ],
)  # fmt: skip
def test_rubbish_in_the_cache_is_counted_anew(reader: User, feeds: redis.Redis, rubbish: bytes) -> None:
    use("here", 2)
    popular_tags(reader)
    (key,) = feeds.scan_iter("cache:*:tags:popular")
    feeds.set(key, rubbish)
    assert popular_tags(reader) == ["here"]


def test_what_the_cache_says_of_items_is_not_believed(reader: User, feeds: redis.Redis) -> None:
    secret = say(UserFactory(), "#secret", visibility=Visibility.SELF)
    other = say(UserFactory(), "#other")
    use("here", 2)
    popular_tags(reader)
    (key,) = feeds.scan_iter("cache:*:tags:popular")
    feeds.set(key, f'[["secret",[{secret.pk}]],["swear",[{other.pk}]]]')
    assert popular_tags(reader) == []


@pytest.mark.slow
@pytest.mark.parametrize("fault", [frozen, dead, full])
def test_without_the_cache(reader: User, feeds_server: Valkey, fault: Any) -> None:
    use("here", 2)
    with fault(feeds_server):
        for _ in range(3):
            assert popular_tags(reader) == ["here"]


def test_the_page_of_the_search_shows_them(client: Client) -> None:
    use("旅行", 2)
    page = client.get("/search")
    assert "Popular hashtags" in page.content.decode()
    assert '<a href="/tags/%E6%97%85%E8%A1%8C"><bdi>#旅行</bdi></a>' in page.content.decode()
    assert "Popular hashtags" not in client.get("/search?q=words").content.decode()
