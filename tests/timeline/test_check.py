import io
from collections.abc import Callable
from typing import Any

import pytest
import redis
from django.core.management import CommandError, call_command

from accounts.levels import big_v
from accounts.models import User
from items import actions as items
from items.models import Item
from storage import keys
from tests.support.servers import Valkey, dead
from tests.support.timelines import read, seen
from tests.support.workers import Workers
from timeline.check import differences

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def community(reader: User, follow: Any, say: Callable[..., Item], workers: Workers) -> list[Item]:
    sender = seen()
    follow(reader, sender)
    read(reader)
    workers.work()
    published = [say(sender) for _ in range(5)]
    workers.work()
    return published


def kinds(user: User) -> list[str]:
    return [difference.kind for difference in differences([user.pk])]


def check(*users: str, **options: Any) -> tuple[int, str]:
    out = io.StringIO()
    try:
        call_command("timeline_check", *users, stdout=out, **options)
    except SystemExit as stop:
        return int(stop.code or 0), out.getvalue()
    return 0, out.getvalue()


def test_nothing_is_wrong(reader: User, community: list[Item]) -> None:
    assert kinds(reader) == []
    code, out = check()
    assert (code, "2 users checked, 0 differences." in out) == (0, True)


@pytest.mark.slow
def test_what_waits_for_lazy_deletion_is_no_difference(reader: User, community: list[Item]) -> None:
    items.delete(item=community[2])
    assert kinds(reader) == []


def test_missing(reader: User, community: list[Item], feeds: redis.Redis) -> None:
    item = community[2]
    feeds.zrem(keys.inbox(reader.pk), f"{item.sender_id}:{item.pk}")
    assert kinds(reader) == ["missing"]


def test_pending_is_not_missing(reader: User, community: list[Item], say: Any, workers: Workers) -> None:
    say(community[0].sender)
    assert kinds(reader) == []


def test_a_private_mention_is_not_missing_in_an_outbox(
    reader: User, community: list[Item], say: Any, workers: Workers, feeds: redis.Redis
) -> None:
    sender = community[0].sender
    big_v.make_big_v(user=sender)
    read(reader)
    workers.work()
    say(sender, f"@{reader.username} words", visibility="mentioned")
    post = say(sender)
    workers.work()
    sender.refresh_from_db()
    assert kinds(sender) == []
    feeds.zrem(keys.outbox(sender.pk), f"{sender.pk}:{post.pk}")
    assert kinds(sender) == ["missing"], "there is an outbox"


def test_extra(reader: User, community: list[Item], feeds: redis.Redis) -> None:
    feeds.zadd(keys.inbox(reader.pk), {f"{reader.pk}:{community[0].pk}": community[0].pk})
    feeds.zadd(keys.inbox(reader.pk), {f"{reader.pk}:{community[0].pk + 7}": community[0].pk + 7})
    assert "extra" in kinds(reader)


def test_order(reader: User, community: list[Item], feeds: redis.Redis) -> None:
    item = community[2]
    feeds.zadd(keys.inbox(reader.pk), {f"{item.sender_id}:{item.pk}": item.pk + 9})
    assert kinds(reader) == ["order"]


def test_floor_too_low(reader: User, community: list[Item], feeds: redis.Redis) -> None:
    inbox = keys.inbox(reader.pk)
    feeds.zremrangebyscore(inbox, 1, community[1].pk)  # trimmed, and the floor forgotten
    assert kinds(reader) == ["missing"]


def test_no_floor(reader: User, community: list[Item], feeds: redis.Redis) -> None:
    feeds.zrem(keys.inbox(reader.pk), "floor")
    assert "floor" in kinds(reader)


def test_a_window_of_an_older_epoch_is_nobodys_business(
    reader: User, community: list[Item], follow: Any, feeds: redis.Redis
) -> None:
    feeds.zrem(keys.inbox(reader.pk), f"{community[0].sender_id}:{community[0].pk}")
    follow(reader, seen())
    assert kinds(reader) == []


@pytest.mark.slow
def test_repair(reader: User, community: list[Item], feeds: redis.Redis, workers: Workers) -> None:
    item = community[2]
    feeds.zrem(keys.inbox(reader.pk), f"{item.sender_id}:{item.pk}")
    code, out = check(reader.username)
    assert code == 1
    assert f"inbox:{reader.pk}: missing (1): {item.pk}" in out
    assert check(reader.username, repair=True)[0] == 1
    read(reader)
    workers.work()
    assert check(reader.username)[0] == 0
    assert item.pk in read(reader)


def test_unknown_user() -> None:
    with pytest.raises(CommandError, match="no user nobody"):
        check("nobody")


def test_a_dead_server_is_one_clear_line(reader: User, feeds_server: Valkey) -> None:
    with dead(feeds_server), pytest.raises(CommandError, match="feeds server"):
        check()
