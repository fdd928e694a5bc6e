import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import User
from discover import postgres
from discover.decay import log_decay
from discover.postgres import PostgresRecall
from discover.recall import RecalledItem
from discover.refreshing import refresh_popular, refresh_words
from items.models import Status, Visibility
from relations.models import Follow
from storage import ids
from tests.support.factories import ItemFactory, UserFactory
from tests.support.recommending import NOW, follow, like, post
from tests.support.statements import statements

pytestmark = pytest.mark.django_db


def recall(reader: User, count: int = 500, now: datetime = NOW) -> list[RecalledItem]:
    return PostgresRecall().candidates(reader, count=count, now=now)


def reasons(reader: User, **options: Any) -> dict[int, str]:
    return {candidate.item_id: candidate.reason for candidate in recall(reader, **options)}


def test_empty_site(reader: User) -> None:
    assert recall(reader) == []
    refresh_words(now=NOW)
    refresh_popular(now=NOW)
    assert recall(reader) == []


def test_cold_start_without_anything_prepared_is_newest_first(reader: User) -> None:
    items = [post(age=timedelta(days=days)) for days in (400, 30, 3, 8000, 90)]
    assert [candidate.item_id for candidate in recall(reader)] == sorted((item.pk for item in items), reverse=True)
    assert {candidate.reason for candidate in recall(reader)} == {"fresh"}


def test_cold_start_is_popular_and_fresh(reader: User) -> None:
    popular, *_ = items = [post(age=timedelta(hours=10 - number)) for number in range(5)]
    for _ in range(5):
        like(UserFactory.create(), popular)
    refresh_popular(now=NOW)
    found = recall(reader)
    assert (found[0].item_id, found[0].reason) == (popular.pk, "popular")
    assert {candidate.item_id for candidate in found} == {item.pk for item in items}


def test_people_who_liked_what_the_reader_liked(reader: User) -> None:
    shared, also = post(), post(age=timedelta(days=3))
    other = UserFactory.create()
    like(reader, shared)
    like(other, shared, also)
    post()
    assert recall(reader)[0].item_id == also.pk
    assert reasons(reader)[also.pk] == "liked"


def test_followed_by_those_whom_the_reader_follows(reader: User) -> None:
    friends, sender = UserFactory.create_batch(3), UserFactory.create()
    follow(reader, *friends)
    for friend in friends:
        follow(friend, sender)
    item = post(sender=sender, age=timedelta(days=3))
    post()
    found = recall(reader)[0]
    assert found == RecalledItem(item.pk, sender.pk, found.score, "follows:3")


def test_followed_by_those_who_follow_the_same(reader: User) -> None:
    friend, twin, sender = UserFactory.create(), UserFactory.create(), UserFactory.create()
    follow(reader, friend)
    follow(twin, friend, sender)
    item = post(sender=sender, age=timedelta(days=3))
    post()
    assert (recall(reader)[0].item_id, recall(reader)[0].reason) == (item.pk, "similar")


def test_senders_whose_posts_the_reader_liked_or_answered(reader: User) -> None:
    liked, answered = post(age=timedelta(days=9)), post(age=timedelta(days=9))
    like(reader, liked)
    post("an answer", reader, reply_to=answered)
    items = {post(sender=item.sender, age=timedelta(days=3)).pk for item in (liked, answered)}
    post()
    assert {candidate.item_id for candidate in recall(reader)[:2]} == items
    assert {reasons(reader)[item] for item in items} == {"sender"}


def test_followers_whom_the_reader_does_not_follow(reader: User) -> None:
    sender = UserFactory.create()
    follow(sender, reader)
    item = post(sender=sender, age=timedelta(days=3))
    post()
    assert (recall(reader)[0].item_id, recall(reader)[0].reason) == (item.pk, "follower")


def test_tags_of_what_the_reader_wrote_and_liked(reader: User) -> None:
    post("my #Redis", reader)
    item = post("your #redis", age=timedelta(days=3))
    post()
    assert (recall(reader)[0].item_id, recall(reader)[0].reason) == (item.pk, "tag:redis")


def test_words_of_what_the_reader_liked(reader: User) -> None:
    liked = post("the pipeline of the day")
    like(reader, liked)
    item = post("another pipeline", age=timedelta(days=3))
    other = post("nothing in common")
    refresh_words(now=NOW)
    found = reasons(reader)
    assert found[item.pk] == "words:pipeline"
    assert found[other.pk] == "fresh"


def test_words_in_chinese(reader: User) -> None:
    post("周末去登山吧", reader)
    item = post("登山的人很多", age=timedelta(days=3))
    post("别的事情")
    refresh_words(now=NOW)
    assert (recall(reader)[0].item_id, recall(reader)[0].reason) == (item.pk, "words:登山")


def test_words_are_searched_only_if_likes_and_follows_find_little(
    reader: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    friend, twin, sender = UserFactory.create_batch(3)
    follow(reader, friend)
    follow(twin, friend, sender)
    near, _, other = post(sender=sender), post("climbing", reader), post("climbing")
    post("something else")
    refresh_words(now=NOW)
    assert reasons(reader)[near.pk] == "similar"
    assert reasons(reader)[other.pk] == "words:climbing"
    monkeypatch.setattr(postgres, "ENOUGH", 1)
    assert reasons(reader)[other.pk] == "fresh"


def test_followed_senders_come_last(reader: User) -> None:
    friend = UserFactory.create()
    follow(reader, friend)
    item, old = post(sender=friend), post(age=timedelta(days=900))
    assert [candidate.item_id for candidate in recall(reader)] == [old.pk, item.pk]
    assert reasons(reader)[item.pk] == "followed"


def test_items_that_are_never_recalled(reader: User) -> None:
    liker = UserFactory.create()
    shared, root = post("#tag word"), post("root")
    like(reader, shared)
    hidden = [
        post("#tag word", status=Status.DELETED),
        post("#tag word", status=Status.IN_REVIEW),
        post("#tag word", status=Status.REJECTED),
        post("#tag word", visibility=Visibility.FOLLOWERS),
        post("#tag word", visibility=Visibility.MUTUALS),
        post("#tag word", visibility=Visibility.SELF),
        post("#tag word", reply_to=root),
        post("", repost_of=root),
        post("#tag word", reader),
        post("#tag word", age=-timedelta(minutes=1)),
    ]
    for item in [shared, *hidden]:
        like(liker, item)
        follow(UserFactory.create(), item.sender)
        if item.sender != reader:
            follow(item.sender, reader)
    refresh_words(now=NOW)
    refresh_popular(now=NOW)
    assert {candidate.item_id for candidate in recall(reader)} == {shared.pk, root.pk}


class World:
    def __init__(self) -> None:
        self.reader, self.friend, self.other = UserFactory.create_batch(3)
        self.alike, self.stranger, self.twin, self.newcomer = UserFactory.create_batch(4)
        self.senders = UserFactory.create_batch(6)
        self.posts = [post("word #tag", sender, age=timedelta(days=3)) for sender in self.senders]
        self.liked, self.unliked, self.hidden = post("apple"), post("pear"), post("plum")
        like(self.reader, self.liked)
        like(self.alike, self.liked, self.posts[0], self.posts[2])
        like(self.stranger, self.unliked, self.posts[1])
        follow(self.reader, self.friend)
        follow(self.twin, self.friend, self.senders[2])
        follow(self.newcomer, self.senders[3])
        follow(self.other, self.senders[4])


ACTS: dict[str, Any] = {
    "the reader likes": lambda world, at: like(world.reader, world.unliked, at=at),
    "others like the same": lambda world, at: like(world.stranger, world.liked, at=at),
    "those alike like": lambda world, at: like(world.alike, world.posts[1], at=at),
    "the popularity of what they like": lambda world, at: like(world.newcomer, world.posts[0], at=at),
    "the reader follows": lambda world, at: follow(world.reader, world.other, at=at),
    "the reader follows a sender": lambda world, at: follow(world.reader, world.senders[2], at=at),
    "others follow the same": lambda world, at: follow(world.newcomer, world.friend, at=at),
    "those alike follow": lambda world, at: follow(world.twin, world.senders[3], at=at),
    "friends follow": lambda world, at: follow(world.friend, world.senders[5], at=at),
    "friends follow whom those alike follow": lambda world, at: follow(world.friend, world.senders[2], at=at),
    "a sender follows the reader": lambda world, at: follow(world.senders[5], world.reader, at=at),
}
POSTS: dict[str, Any] = {
    "the reader posts": lambda world, at: post("word #tag", world.reader, age=NOW - at),
    "the reader answers": lambda world, at: post("!", world.reader, age=NOW - at, reply_to=world.posts[0]),
    "a friend posts": lambda world, at: post("word #tag", world.friend, age=NOW - at),
    "a sender posts": lambda world, at: post("word", world.senders[2], age=NOW - at),
    "somebody posts": lambda world, at: post("apple", age=NOW - at),
}


@pytest.mark.slow
@pytest.mark.parametrize("act", (ACTS | POSTS).values(), ids=ACTS | POSTS)
def test_every_act_counts(act: Any) -> None:
    world = World()
    before = found_in(world)
    act(world, NOW - timedelta(hours=1))
    assert found_in(world) != before


@pytest.mark.slow
@pytest.mark.parametrize("act", POSTS.values(), ids=POSTS)
def test_posts_to_come_are_not_known(act: Any) -> None:
    world = World()
    before = found_in(world)
    act(world, NOW + timedelta(hours=1))
    assert found_in(world) == before


def found_in(world: World) -> list[RecalledItem]:
    """What recall finds. Plans add scores up in different orders."""
    refresh_words(now=NOW)
    refresh_popular(now=NOW)
    return [one._replace(score=round(one.score, 9)) for one in recall(world.reader)]


@pytest.mark.parametrize("days", [0, 0.5, 1, 1.5, 15, 90, 365, 9000])
def test_decay_is_the_gauss_function(days: float, settings: Any) -> None:
    settings.DISCOVER_SCALE_DAYS, settings.DISCOVER_OFFSET_DAYS, settings.DISCOVER_DECAY = 14, 1, 0.5
    sigma_squared = -(14**2) / (2 * math.log(0.5))
    expected = -(max(0, days - 1) ** 2) / (2 * sigma_squared)
    origin, item = ids.compose(NOW, 7), ids.compose(NOW - timedelta(days=days), 3000)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {log_decay('%(item)s')}",
            {"item": item, "origin": origin, "decay_rate": 1 / (2 * sigma_squared), "decay_offset": 1},
        )
        assert cursor.fetchone()[0] == pytest.approx(expected)
    if days == 15:
        assert math.exp(expected) == pytest.approx(0.5)


def test_one_sender_does_not_fill_the_candidates(reader: User) -> None:
    busy = UserFactory.create()
    newest = [post(sender=busy, age=timedelta(minutes=number)).pk for number in range(1, 31)]
    others = [post(age=timedelta(days=900)).pk for _ in range(3)]
    found = [candidate.item_id for candidate in recall(reader, count=100)]
    assert found == newest[:20] + sorted(others, reverse=True)


@pytest.mark.slow
def test_at_most_count_and_deeper_calls_begin_alike(reader: User) -> None:
    for days in range(1, 61):
        post(age=timedelta(days=days))
    found = [[candidate.item_id for candidate in recall(reader, count=count)] for count in (1, 10, 8000)]
    assert [len(ones) for ones in found] == [1, 10, 60]
    assert found[2][:10] == found[1]


def test_follows_and_likes_of_any_age(reader: User) -> None:
    friend, twin, sender = UserFactory.create_batch(3)
    follow(reader, friend, at=datetime(1, 1, 1, tzinfo=UTC))
    follow(twin, friend, sender, at=datetime(1, 1, 1, tzinfo=UTC))
    item = post(sender=sender, age=timedelta(days=9000))
    post(age=timedelta(days=9001))
    assert recall(reader)[0].item_id == item.pk


@pytest.mark.long
def test_a_reader_of_two_thousand(reader: User) -> None:
    senders = User.objects.bulk_create(User(username=f"s{number}", password="!") for number in range(2_100))
    Follow.objects.bulk_create(
        Follow(follower=reader, followee=sender, created_at=NOW + timedelta(days=number))
        for number, sender in enumerate(senders[:2_000], -2_001)
    )
    twin = UserFactory.create()
    follow(twin, *senders[1_997:2_000], senders[2_050])
    newest = [post(sender=sender) for sender in (senders[5], senders[1_900], senders[2_050], senders[2_060])]
    found = recall(reader)
    assert [candidate.item_id for candidate in found[:2]] == [newest[2].pk, newest[3].pk]
    assert [candidate.reason for candidate in found] == ["similar", "fresh", "followed", "followed"]


def test_number_of_statements_does_not_depend_on_what_is_found(reader: User) -> None:
    post()
    recall(reader)
    with statements() as few:
        recall(reader)
    friends = UserFactory.create_batch(5)
    follow(reader, *friends)
    for friend in friends:
        follow(friend, *UserFactory.create_batch(2))
        like(reader, post("word #tag", friend))
    refresh_words(now=NOW)
    with statements() as many:
        recall(reader)
    assert len(few) <= len(many) <= 9


def test_a_site_of_the_present(reader: User) -> None:
    item = ItemFactory.create()
    assert [candidate.item_id for candidate in recall(reader, now=timezone.now() + timedelta(seconds=1))] == [item.pk]
