"""Costs, ends around the freeze, and lost snapshots. properties/test_live.py checks that pages are right."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import User
from live import actions, feed, lineup, snapshot
from live.feed import live_page
from live.models import KeptSnapshot, LiveSession, ReplayDelivery, State
from live.snapshot import SnapshotExpiredError, UnknownSnapshotError, WalkSnapshot, delete_expired
from live.walk import LivePage
from relations import actions as relations
from storage import connections, keys
from storage.connections import count_trips
from tests.support.patience import SHORT
from tests.support.servers import Valkey, dead
from tests.support.sessions import seen, session
from tests.support.statements import statements
from tests.support.workers import Workers

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _workers(workers: Workers) -> Workers:
    return workers


@pytest.fixture
def reader(db: None) -> User:
    return seen()


def hosts_of(reader: User, count: int) -> list[User]:
    hosts = [seen() for _ in range(count)]
    for host in hosts:
        relations.follow(follower=reader, followee=host)
    return hosts


def page(reader: User, before: LivePage | None = None, *, write: bool = True, **at: Any) -> LivePage:
    """A page as the site serves it: the next one, or the first."""
    if before is not None:
        at = {"session_id": before.session_id, "last_id": before.last_id} | at
    found = live_page(User.objects.get(pk=reader.pk), **{"now": timezone.now(), "page_size": 2} | at)
    if write:
        found.store()
    return found


def shown(found: LivePage) -> list[tuple[int, str]]:
    return [(int(item.id), item.shown_as) for item in found.items]


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 9])
def test_a_page_costs_the_same_whatever_the_reader_follows(
    count: int, reader: User, workers: Workers, feeds: redis.Redis
) -> None:
    for host in hosts_of(reader, count):
        for state in (State.LIVE, State.UPCOMING, State.REPLAY, State.REPLAY):
            session(host, state)
    workers.work()
    page(reader, page_size=50)
    workers.work()
    user = User.objects.get(pk=reader.pk)
    spent: list[tuple[list[str], int, int]] = []

    def cost(**at: Any) -> LivePage:
        with statements() as queries, count_trips() as asked:
            found = live_page(user, **{"page_size": 3, "now": timezone.now()} | at)
        spent.append((found.sources, len(queries), asked.round_trips))
        found.store()
        return found

    first = cost(page_size=1)
    cost(session_id=first.session_id, page_size=1)
    seam = cost(session_id=first.session_id, last_id=first.last_id, page_size=2 * count)
    cost(session_id=seam.session_id, last_id=seam.last_id)
    cost(last_id=seam.last_id)
    assert spent == [
        (["lineup"], 2, 1),
        (["snapshot"], 2, 1),
        (["inbox", "snapshot"], 2, 2),
        (["inbox"], 2, 1),
        (["inbox"], 2, 1),
    ]
    feeds.flushall()
    spent.clear()
    lost = cost()
    cost(session_id=lost.session_id, last_id=lost.last_id, page_size=2 * count)
    assert spent == [(["sql"], 3, 1), (["snapshot", "sql"], 3, 1)]
    assert "sql" not in cost(page_size=1).sources, "the page has written what it missed"


@pytest.mark.slow
def test_an_end_under_way_at_the_freeze_comes_once(reader: User, workers: Workers) -> None:
    """It has its position. Another ends, and the walk begins before it commits."""
    (host, other) = hosts_of(reader, 2)
    early, late = session(host, State.LIVE), session(other, State.LIVE)
    workers.work()
    is_drawn, may_commit = threading.Event(), threading.Event()

    def end() -> None:
        try:
            with transaction.atomic():
                actions.end(session=early, now=timezone.now())
                is_drawn.set()
                assert may_commit.wait(60)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(end)
        assert is_drawn.wait(60)
        actions.end(session=late, now=timezone.now())
        first = page(reader, page_size=1)
        may_commit.set()
        ending.result(60)
    early.refresh_from_db()
    late.refresh_from_db()
    assert early.position is not None
    assert late.position is not None
    assert early.position < late.position, "the seam is not what is tested"
    assert shown(first) == [(early.pk, State.LIVE)]
    second = page(reader, first, page_size=9)
    assert shown(second) == [(late.pk, State.REPLAY)]
    assert not second.has_more


def test_what_ends_between_the_two_queries_has_its_place_in_the_walk(
    reader: User, feeds: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lineup is lost, so PostgreSQL is read just after the freeze."""
    (host,) = hosts_of(reader, 1)
    live = session(host, State.LIVE)
    feeds.flushall()
    from_sql = feed._from_sql

    def ends(*args: Any) -> Any:
        actions.end(session=live, now=timezone.now())
        return from_sql(*args)

    monkeypatch.setattr(feed, "_from_sql", ends)
    first = page(reader)
    assert shown(first) == [(live.pk, State.LIVE)]
    assert first.items[0].state == State.REPLAY
    assert not first.has_more
    lineup.apply(host.pk)
    assert shown(page(reader)) == [(live.pk, State.REPLAY)]


@pytest.mark.slow
def test_a_page_is_filled_up_whatever_is_gone(reader: User, workers: Workers) -> None:
    gone, there = hosts_of(reader, 2)
    for _ in range(40):
        session(gone, State.UPCOMING, minutes=30)
    wanted = [session(there, State.UPCOMING, minutes=60 + number).pk for number in range(4)]
    workers.work()
    first = page(reader)
    relations.unfollow(follower=reader, followee=gone)
    second = page(reader, first, page_size=3)
    assert [int(item.id) for item in second.items] == wanted[:3]
    assert second.has_more
    last = page(reader, second, page_size=3)
    assert [int(item.id) for item in last.items] == wanted[3:]
    assert not last.has_more


@pytest.mark.slow
def test_more_replays_than_an_inbox_holds(reader: User, workers: Workers, settings: Any) -> None:
    settings.LIVE_REPLAYS_CAP, settings.WINDOW_SLACK = 3, 0
    (host,) = hosts_of(reader, 1)
    ids = [session(host, State.REPLAY).pk for _ in range(8)][::-1]
    page(reader)
    workers.work()
    gone = LiveSession.objects.get(pk=ids.pop(1))
    actions.hide(session=gone, now=timezone.now())
    over_the_floor = page(reader, page_size=3)
    assert [int(item.id) for item in over_the_floor.items] == ids[:3]
    assert over_the_floor.sources == ["inbox", "lineup", "sql"]
    walked: list[int] = []
    sources: list[list[str]] = []
    found = page(reader)
    while True:
        walked += [int(item.id) for item in found.items]
        sources.append(found.sources)
        if not found.has_more:
            break
        found = page(reader, found)
    assert walked == ids
    assert sources[-1] == ["snapshot", "sql"] or sources[-1] == ["sql"]


def test_a_replay_is_there_as_soon_as_the_session_has_ended(reader: User, workers: Workers, feeds: redis.Redis) -> None:
    """All workers are dead."""
    (host,) = hosts_of(reader, 1)
    live = session(host, State.LIVE)
    page(reader)
    workers.work()
    ended = actions.end(session=live, now=timezone.now())
    workers.queue.clear()
    found = page(reader)
    assert shown(found) == [(ended.pk, State.REPLAY)]
    assert found.sources == ["inbox", "lineup", "pending"]
    assert ReplayDelivery.objects.exists()


@pytest.mark.slow
def test_an_inbox_of_before_a_follow_is_not_read(reader: User, workers: Workers) -> None:
    (host,) = hosts_of(reader, 1)
    ids = [session(host, State.REPLAY).pk]
    page(reader)
    workers.work()
    assert page(reader).sources == ["inbox", "lineup"]
    other = seen()
    ids.append(session(other, State.REPLAY).pk)
    workers.work()
    relations.follow(follower=reader, followee=other)
    assert [int(item.id) for item in page(reader).items] == ids[::-1]


# --- Snapshots -------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_next_page_waits_for_a_snapshot_on_its_way(
    reader: User, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [session(host, State.LIVE).pk for host in hosts_of(reader, 3)]
    workers.work()
    now = timezone.now()
    first = page(reader, write=False, now=now)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            first.store()

    monkeypatch.setattr(feed, "WAIT_SECONDS", SHORT)
    monkeypatch.setattr(feed, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pause))
    assert [int(item.id) for item in page(reader, first, now=now).items] == ids[:1]
    assert len(pauses) == 3


@pytest.mark.slow
def test_a_lost_snapshot_is_said_to_be_lost(reader: User, workers: Workers, feeds: redis.Redis) -> None:
    for host in hosts_of(reader, 3):
        session(host, State.LIVE)
    workers.work()
    first = page(reader)
    feeds.flushall()
    later = timezone.now() + timedelta(seconds=9)
    with pytest.raises(SnapshotExpiredError):
        page(reader, first, now=later)
    again = page(reader)
    assert shown(again) == shown(first)
    assert len(page(reader, again).items) == 1


def test_reading_keeps_a_snapshot_alive(reader: User, workers: Workers, feeds: redis.Redis, settings: Any) -> None:
    for host in hosts_of(reader, 3):
        session(host, State.LIVE)
    first = page(reader)
    key = snapshot_of(reader, first).key
    life = settings.LIVE_SNAPSHOT_TTL.total_seconds()
    assert 0 < feeds.ttl(key) <= life
    feeds.expire(key, 100)
    page(reader, first)
    assert 100 < feeds.ttl(key) <= life


@pytest.mark.slow
def test_walks_need_no_redis(reader: User, workers: Workers, feeds_server: Valkey) -> None:
    hosts = hosts_of(reader, 4)
    live = [session(host, State.LIVE).pk for host in hosts][::-1]
    ended = session(hosts[0], State.REPLAY).pk
    began = page(reader)
    with dead(feeds_server):
        later = timezone.now() + timedelta(seconds=9)
        with pytest.raises(SnapshotExpiredError):
            page(reader, began, now=later)
        found = first = page(reader)
        walked = [int(item.id) for item in found.items]
        while found.has_more:
            found = page(reader, found)
            walked += [int(item.id) for item in found.items]
        assert walked == [*live, ended]
    connections.feeds_breaker.reset()
    assert len(page(reader, first).items) == 2, "Redis is back, and the walk goes on"
    kept = KeptSnapshot.objects.get()
    assert delete_expired(now=kept.expires_at - timedelta(seconds=1)) == 0
    assert delete_expired(now=kept.expires_at) == 1


def test_a_kept_snapshot_expires_and_is_kept_by_reading(reader: User) -> None:
    now = timezone.now()
    snapshot = WalkSnapshot.take(reader.pk, 7, [3, -4], 1, now)
    snapshot.store_in_postgresql([3, -4], 1, now)
    late = now + timedelta(minutes=29)
    found = snapshot.read_from_postgresql(3, late)
    assert found is not None
    assert (found.is_entry, found.entries, found.lives) == (True, [-4], [3])
    assert snapshot.read_from_postgresql(None, late + timedelta(minutes=29)) is not None
    assert snapshot.read_from_postgresql(None, late + timedelta(minutes=90)) is None


# --- Snapshot cap ----------------------------------------------------------------------------------------
def snapshot_of(reader: User, page: LivePage) -> WalkSnapshot:
    found = WalkSnapshot.named(page.session_id or "", reader.pk)
    assert found is not None
    return found


@pytest.fixture
def orders(reader: User, workers: Workers, settings: Any) -> Iterator[LivePage]:
    """First pages of unseen snapshots. The cap is four a reader."""
    settings.LIVE_SNAPSHOTS_CAP = 4
    (host,) = hosts_of(reader, 1)
    for _ in range(3):
        session(host, State.LIVE)

    def frozen() -> Iterator[LivePage]:
        while True:
            session(host, State.LIVE)
            workers.work()
            yield page(reader)

    return frozen()


@pytest.mark.slow
def test_walks_that_begin_in_the_same_order_share_a_snapshot(
    reader: User, orders: Iterator[LivePage], feeds: redis.Redis
) -> None:
    one = next(orders)
    feeds.expire(snapshot_of(reader, one).key, 100)
    others = [page(reader) for _ in range(20)]
    assert feeds.keys("live:snapshot:*") == [snapshot_of(reader, one).key.encode()]
    assert feeds.ttl(snapshot_of(reader, one).key) > 100
    assert [shown(page(reader, other)) for other in others] == [shown(page(reader, one))] * 20


@pytest.mark.slow
def test_a_reader_has_so_many_snapshots_and_the_longest_unused_gives_way(
    reader: User, orders: Iterator[LivePage], feeds: redis.Redis
) -> None:
    later = timezone.now() + timedelta(seconds=9)
    first, second = next(orders), next(orders)
    for _ in range(8):
        next(orders)
        assert page(reader, first, now=later).items, "what is read stays"
    assert len(feeds.keys("live:snapshot:*")) == feeds.zcard(keys.snapshots(reader.pk)) == 4
    with pytest.raises(SnapshotExpiredError):
        page(reader, second, now=later)
    other = seen()
    relations.follow(follower=other, followee=LiveSession.objects.first().host)  # type: ignore[union-attr]
    assert page(other).session_id
    assert page(reader, first, now=later).items, "others have their own"


@pytest.mark.slow
def test_an_index_that_is_lost_is_made_anew(reader: User, orders: Iterator[LivePage], feeds: redis.Redis) -> None:
    first = next(orders)
    feeds.delete(keys.snapshots(reader.pk))
    assert page(reader, first).items
    for _ in range(8):
        next(orders)
    assert feeds.zcard(keys.snapshots(reader.pk)) == 4
    assert all(0 < feeds.ttl(key) <= 1800 for key in feeds.keys("live:snapshot*"))


@pytest.mark.slow
def test_rows_of_a_reader_are_as_few_without_redis(
    reader: User, orders: Iterator[LivePage], feeds_server: Valkey
) -> None:
    with dead(feeds_server):
        walks = [next(orders) for _ in range(7)]
        later = timezone.now() + timedelta(seconds=9)
        again = [page(reader) for _ in range(3)]
        assert KeptSnapshot.objects.count() == 4
        assert [bool(page(reader, each, now=later).items) for each in (*walks[-4:], *again)] == [True] * 7
        with pytest.raises(SnapshotExpiredError):
            page(reader, walks[0], now=later)


def test_rows_of_ended_walks_go_however_many(reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    now = timezone.now()
    monkeypatch.setattr(snapshot, "FORGET_LENGTH", 10)
    for number in range(45):
        KeptSnapshot.objects.create(
            reader=reader, digest=str(number), lives=0, entries=[], expires_at=now + timedelta(seconds=number)
        )
    assert delete_expired(now=now + timedelta(seconds=39)) == 40
    assert KeptSnapshot.objects.count() == 5


def test_a_name_is_the_readers_own_and_no_other_spelling_of_it_is(reader: User, settings: Any) -> None:
    now = datetime(2026, 5, 1, 12, 0, 0, 123_000, tzinfo=timezone.get_current_timezone())
    text = WalkSnapshot.take(reader.pk, 2**52, [3, -4], 1, now).session_id
    named = WalkSnapshot.named(text, reader.pk)
    assert named is not None
    assert (named.frozen, named.age(now)) == (2**52, timedelta(0))
    assert WalkSnapshot.named(text, reader.pk + 1) is None
    last = next(letter for letter in "ABCDEFGHIJKLMNOP" if letter != text[-1])
    wrong = [
        "",
        "x",
        text[:-1],
        text + "A",
        text + "=",
        text[:-1] + last,
        text.swapcase(),
        "é" * 20,
        "a\x00b",
        " " + text,
    ]
    wrong += [text + "\n", text[:9] + "+" + text[10:], "A" * len(text), "-" * 100_000]
    for each in wrong:
        assert WalkSnapshot.named(each, reader.pk) is None, each
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another"
    assert WalkSnapshot.named(text, reader.pk) is not None
    with pytest.raises(UnknownSnapshotError):
        page(reader, session_id="x", last_id=LiveSession.objects.count() + 1)
