from collections.abc import Callable

import pytest
import redis
from django.db import connection

from accounts.models import User
from items import actions as items
from items.models import Item
from relations import actions as relations
from storage import keys
from storage.connections import fetch
from storage.events import Listener, Position, Published
from storage.window import INFINITY
from stream import news
from tests.support.statements import statements
from tests.support.timelines import read, seen, sources
from tests.support.workers import Workers
from timeline.home import new_count
from timeline.oracle import home_ids
from timeline.pull import PULL_BODIES

pytestmark = pytest.mark.django_db(transaction=True)
Say = Callable[..., Item]


def repost(sender: User, item: Item) -> int:
    made, _ = items.repost(sender=sender, item=item)
    return made.pk


def leave_out(reader: User, followee: User, *, out: bool = True) -> None:
    relations.follow(follower=reader, followee=followee, reposts=not out)


def exact(reader: User) -> list[int]:
    shown = read(reader, limit=50)
    assert shown == home_ids(reader.pk)
    return shown


@pytest.mark.slow
@pytest.mark.parametrize("from_windows", [True, False])
def test_reposts_go_and_come_back(reader: User, say: Say, workers: Workers, from_windows: bool) -> None:
    friend, stranger = seen(), seen()
    relations.follow(follower=reader, followee=friend)
    said = say(stranger)
    shared, post = repost(friend, said), say(friend).pk
    if from_windows:
        exact(reader)
        workers.work()
        assert sources(reader) == ["inbox"]
    assert exact(reader) == [post, shared]
    leave_out(reader, friend)
    for _ in range(2):  # the window forgets at the first reading
        assert exact(reader) == [post]
        if from_windows:
            workers.work()
    leave_out(reader, friend, out=False)
    assert exact(reader) == [post, shared]
    workers.work()
    assert exact(reader) == [post, shared]


@pytest.mark.slow
def test_only_that_followees_reposts_go(reader: User, say: Say, workers: Workers) -> None:
    loud, friend, stranger = seen(), seen(), seen()
    relations.follow(follower=reader, followee=friend)
    relations.follow(follower=reader, followee=loud, reposts=False)
    first, second = say(stranger), say(stranger)
    shared = repost(friend, first)
    repost(loud, first)  # above the friend's, which is not folded into it
    repost(loud, second)
    own = repost(reader, second)
    for _ in range(2):
        assert exact(reader) == [own, shared]
        workers.work()


def test_new_posts_are_counted_without_them(reader: User, say: Say, workers: Workers) -> None:
    loud, stranger = seen(), seen()
    relations.follow(follower=reader, followee=loud, reposts=False)
    since = say(loud).pk
    repost(loud, say(stranger))
    say(loud)
    for _ in range(2):
        assert new_count(User.objects.get(pk=reader.pk), since_id=since) == (1, False)
        exact(reader)
        workers.work()


def test_the_stream_tells_nothing_of_them(reader: User, say: Say) -> None:
    loud, stranger = seen(), seen()
    relations.follow(follower=reader, followee=loud, reposts=False)
    shared, post = repost(loud, say(stranger)), say(loud).pk
    entries = [(Position(0, number), Published(item)) for number, item in enumerate((shared, post))]
    told = news.news_for([Listener(reader.pk)], entries)
    assert [position.number for _, position, _ in told] == [1]


def test_a_window_with_them_is_not_used_once_they_are_shown_again(
    reader: User, say: Say, workers: Workers, feeds: redis.Redis
) -> None:
    """The change itself advances the epoch."""
    friend = seen()
    relations.follow(follower=reader, followee=friend)
    shared = repost(friend, say(seen()))
    leave_out(reader, friend)
    exact(reader)
    workers.work()  # fan-out ignores it: the window forgets when it is read
    exact(reader)
    assert not any(name.endswith(b":%d" % shared) for name in feeds.zrange(keys.inbox(reader.pk), 0, -1))
    before = User.objects.get(pk=reader.pk).window_epoch
    leave_out(reader, friend)
    assert User.objects.get(pk=reader.pk).window_epoch == before
    leave_out(reader, friend, out=False)
    assert User.objects.get(pk=reader.pk).window_epoch != before
    assert exact(reader) == [shared]
    again = User.objects.get(pk=reader.pk).window_epoch
    leave_out(reader, friend, out=False)
    assert User.objects.get(pk=reader.pk).window_epoch == again


@pytest.mark.long
def test_however_much_is_left_out_a_page_passes_none_of_it(reader: User, say: Say) -> None:
    loud = seen()
    relations.follow(follower=reader, followee=loud, reposts=False)
    post = say(loud).pk
    stranger = seen()
    for _ in range(300):
        repost(loud, say(stranger))
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE items_item")
    assert exact(reader) == [post]
    params = {"reader": reader.pk, "below": INFINITY, "count": 22, "bodies": 21}
    plan = fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) {PULL_BODIES.of_home}", params)[0][0][0]["Plan"]
    assert max(_passed(plan)) == 0
    with statements() as asked:
        read(reader)
    assert len(asked) <= 3  # the reader, the truth, and one pull


def _passed(node: dict[str, object]) -> list[int]:
    here = node.get("Rows Removed by Filter", 0) if node.get("Relation Name") == "items_item" else 0
    plans = node.get("Plans", [])
    assert isinstance(here, int | float)
    assert isinstance(plans, list)
    return [int(here), *(passed for plan in plans for passed in _passed(plan))]
