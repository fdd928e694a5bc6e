from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
import redis
from django.conf import settings
from django.utils import timezone

from accounts.models import User
from discover import feed, feedback
from discover.feed import FeedPage, load_more, refresh
from discover.issued_pages import forget_issued_pages, record_issued_pages
from discover.models import IssuedPage
from items import actions as items
from items.models import Item, Status
from relations import actions as relations
from seen import played
from storage import connections, keys
from storage.connections import count_trips
from tests.support import servers
from tests.support.at_once import at_once
from tests.support.patience import SHORT
from tests.support.recommending import NewestFirst, Publish, ids
from tests.support.statements import statements

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("newest_first")]


def shown(page: FeedPage) -> list[int]:
    return ids(page.items)


# --- Scenario 1: refresh ---------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_refresh_returns_a_page_and_caches_the_rest(reader: User, publish: Publish, feeds: redis.Redis) -> None:
    made = publish(50)
    page = refresh(reader, limit=20)
    assert (shown(page), page.has_more, page.sources) == (made[:20], True, ["recall"])
    assert feeds.lrange(f"feed:cache:{reader.pk}", 0, -1) == [str(item_id).encode() for item_id in made[20:]]
    assert 1800 - SHORT <= feeds.ttl(f"feed:cache:{reader.pk}") <= 1800


@pytest.mark.slow
def test_a_refresh_drops_what_was_cached(reader: User, publish: Publish, feeds: redis.Redis) -> None:
    made = publish(30)
    refresh(reader, limit=5)
    newer = publish(2)
    page = refresh(reader, limit=5, now=timezone.now() + timedelta(seconds=1))  # ids tell milliseconds apart
    assert shown(page) == newer + made[5:8]
    assert feeds.lrange(keys.candidates(reader.pk), 0, 0) == [str(made[8]).encode()]


def test_a_refresh_of_everything_has_no_more(reader: User, publish: Publish) -> None:
    made = publish(3)
    page = refresh(reader, limit=20)
    assert (shown(page), page.has_more) == (made, False)
    again = refresh(reader, limit=20)
    assert (again.items, again.has_more) == ([], False)


def test_nothing_to_recommend(reader: User) -> None:
    for call in (refresh, load_more):
        page = call(reader, limit=20)
        assert (page.items, page.has_more) == ([], False)
    assert not IssuedPage.objects.exists()


def test_every_item_has_a_reason_also_when_it_was_cached(reader: User, publish: Publish) -> None:
    publish(4)
    assert all(item.reason for page in (refresh(reader, limit=2), load_more(reader, limit=2)) for item in page.items)


# --- Scenario 2: load more -------------------------------------------------------------------------------
def test_load_more_goes_on_to_the_end(reader: User, publish: Publish) -> None:
    made = publish(50)
    found = shown(refresh(reader, limit=20))
    page = load_more(reader, limit=20)
    assert (page.has_more, page.sources) == (True, ["cache"])
    found += shown(page)
    tail = load_more(reader, limit=20)
    assert (len(tail.items), tail.has_more, tail.sources) == (10, False, ["cache"])
    assert found + shown(tail) == made


def test_a_full_page_that_empties_the_cache_has_no_more(reader: User, publish: Publish) -> None:
    publish(4)
    refresh(reader, limit=2)
    page = load_more(reader, limit=2)
    assert (len(page.items), page.has_more) == (2, False)


def test_a_short_tail_is_not_filled_up(reader: User, publish: Publish, newest_first: NewestFirst) -> None:
    publish(5)
    refresh(reader, limit=2)
    publish(9)
    page = load_more(reader, limit=20)
    assert (len(page.items), page.has_more) == (3, False)
    assert len(newest_first.asked) == 1


def test_an_empty_cache_is_refreshed_silently(reader: User, publish: Publish, feeds: redis.Redis) -> None:
    made = publish(10)
    first = load_more(reader, limit=4)
    assert (shown(first), first.has_more, first.sources) == (made[:4], True, ["recall"])
    feeds.delete(keys.candidates(reader.pk))
    assert shown(load_more(reader, limit=4)) == made[4:8]


def test_load_more_pops_once(reader: User, publish: Publish) -> None:
    publish(50)
    refresh(reader, limit=20)
    with statements() as executed, count_trips() as asked:
        load_more(reader, limit=20)
    assert asked.round_trips == 1
    assert len(executed) == 3, "lock, page, what was issued"


@pytest.mark.slow
def test_a_refresh_takes_a_constant_number_of_calls(reader: User, publish: Publish, feeds: redis.Redis) -> None:
    def cost(*, is_first: bool = True) -> tuple[int, int]:
        if is_first:
            feeds.delete(keys.kept_recall(reader.pk))
        with statements() as executed, count_trips() as asked:
            refresh(reader, limit=20)
        return asked.round_trips, len(executed)

    publish(50)
    refresh(reader, limit=20)  # what a process learns once
    few = cost()
    publish(300)
    assert cost() == few
    assert cost(is_first=False) == few, "newer posts instead of a recall"


def test_a_further_refresh_asks_for_no_interests(reader: User, publish: Publish, newest_first: NewestFirst) -> None:
    made = publish(30)
    assert shown(refresh(reader, limit=5)) == made[:5]
    newer = publish(2)
    later = timezone.now() + timedelta(seconds=1)  # ids tell milliseconds apart
    assert shown(refresh(reader, limit=5, now=later)) == newer + made[5:8]
    assert len(newest_first.asked) == 1


@pytest.mark.parametrize("change", ["follow", "unfollow", "both"])
def test_a_change_of_follows_recalls_again(
    reader: User, publish: Publish, newest_first: NewestFirst, change: str
) -> None:
    made = publish(30)
    old, new = (Item.objects.get(pk=item_id).sender for item_id in made[5:7])
    relations.follow(follower=reader, followee=old)
    refresh(User.objects.get(pk=reader.pk), limit=5)
    if change != "unfollow":
        relations.follow(follower=reader, followee=new)
    if change != "follow":
        relations.unfollow(follower=reader, followee=old)
    refresh(User.objects.get(pk=reader.pk), limit=5)
    assert len(newest_first.asked) == 2


@pytest.mark.parametrize("change", ["age", "clock"])
def test_a_kept_recall_of_another_time_is_not_used(
    reader: User, publish: Publish, newest_first: NewestFirst, change: str
) -> None:
    publish(30)
    now = timezone.now()
    refresh(reader, limit=5, now=now)
    moved = settings.CANDIDATES_TTL if change == "age" else -timedelta(seconds=1)
    refresh(reader, limit=5, now=now + moved)
    assert len(newest_first.asked) == 2


def test_kept_candidates_that_do_not_fill_a_page_are_recalled_again(
    reader: User, publish: Publish, newest_first: NewestFirst
) -> None:
    made = publish(12)
    refresh(reader, limit=4)
    hidden = Item.objects.filter(pk__in=made[4:10])
    hidden.update(status=Status.DELETED)
    assert shown(refresh(reader, limit=4)) == made[10:]
    assert len(newest_first.asked) == 2


@pytest.mark.parametrize("found", [b"", b"\xff", b"\x93\x01\x92\x00\x00\x91\x01"])
def test_a_broken_kept_recall_is_none(reader: User, publish: Publish, feeds: redis.Redis, found: bytes) -> None:
    made = publish(10)
    feeds.set(keys.kept_recall(reader.pk), found)
    assert shown(refresh(reader, limit=4)) == made[:4]


@pytest.mark.parametrize("hidden_by", ["block", "mute", "deletion", "feedback"])
def test_a_kept_recall_shows_nothing_hidden_since(reader: User, publish: Publish, hidden_by: str) -> None:
    made = publish(30)
    refresh(reader, limit=5)
    item = Item.objects.get(pk=made[5])
    match hidden_by:
        case "block":
            relations.block(blocker=item.sender, blocked=reader)
        case "mute":
            relations.mute(muter=reader, muted=item.sender)
        case "deletion":
            items.delete(item=item)
        case "feedback":
            feedback.not_interested(user=reader, item=item)
    page = refresh(reader, limit=5)
    assert len(page.items) == 5
    assert made[5] not in shown(page)


# --- Exclusions ------------------------------------------------------------------------------------------
def test_what_was_hidden_meanwhile_is_not_shown(reader: User, publish: Publish) -> None:
    made = publish(12)
    refresh(reader, limit=2)
    by_id = Item.objects.in_bulk(made)
    items.delete(item=by_id[made[2]])
    items.change_visibility(item=by_id[made[3]], visibility="self")
    relations.block(blocker=by_id[made[4]].sender, blocked=reader)
    relations.mute(muter=reader, muted=by_id[made[5]].sender)
    by_id[made[6]].sender.is_active = False
    by_id[made[6]].sender.save()
    assert shown(load_more(reader, limit=4)) == made[7:11]
    assert shown(load_more(reader, limit=4)) == made[11:]


def test_what_the_reader_does_not_want_meanwhile_is_not_shown(reader: User, publish: Publish) -> None:
    made = publish(6)
    assert shown(refresh(reader, limit=2, request_id="first")) == made[:2]
    for item_id in (made[0], made[3]):
        feedback.not_interested(user=reader, item=Item.objects.get(pk=item_id))
    assert shown(load_more(reader, limit=2)) == [made[2], made[4]]
    assert shown(refresh(reader, limit=2, request_id="first")) == [made[1]]
    feedback.interested_again(user=reader, item=Item.objects.get(pk=made[0]))
    assert shown(refresh(reader, limit=2, request_id="first")) == made[:2]


def test_where_all_that_was_cached_is_hidden_it_is_refreshed(reader: User, publish: Publish) -> None:
    made = publish(6)
    refresh(reader, limit=2)
    for item in Item.objects.filter(pk__in=made[2:]):
        items.delete(item=item)
    newer = publish(2)
    assert shown(load_more(reader, limit=3)) == newer


def test_a_page_has_at_most_two_of_a_sender(reader: User, publish: Publish) -> None:
    made = publish(40, senders=5)
    found: list[int] = []
    for _ in range(60):
        page = load_more(reader, limit=7)
        if not page.items:
            break
        assert max(Counter(item.sender.id for item in page.items).values()) <= 2
        found += shown(page)
    assert sorted(found, reverse=True) == made


def test_a_list_that_redis_brings_back_is_not_shown_again(reader: User, publish: Publish, feeds: redis.Redis) -> None:
    made = publish(20)
    refresh(reader, limit=5)
    old = feeds.dump(keys.candidates(reader.pk))
    load_more(reader, limit=5)
    feeds.restore(keys.candidates(reader.pk), 0, old, replace=True)
    assert shown(load_more(reader, limit=5)) == made[10:15]


def test_nothing_comes_twice_when_redis_is_emptied(reader: User, publish: Publish, feeds: redis.Redis) -> None:
    made = publish(20)
    found = shown(refresh(reader, limit=5)) + shown(load_more(reader, limit=5))
    feeds.flushall()
    assert found + shown(load_more(reader, limit=5)) + shown(refresh(reader, limit=5)) == made


# --- Repeated and concurrent calls -----------------------------------------------------------------------
@pytest.mark.parametrize("call", [refresh, load_more])
def test_a_repeated_call_gets_the_same_page(reader: User, publish: Publish, feeds: redis.Redis, call: Any) -> None:
    publish(30)
    refresh(reader, limit=5)
    first = call(reader, limit=5, request_id="a")
    second = call(reader, limit=5, request_id="b")
    feeds.flushall()
    again = call(reader, limit=5, request_id="a")
    assert shown(again) == shown(first)
    assert [item.reason for item in again.items] == [item.reason for item in first.items]
    assert again.has_more == first.has_more
    assert again.sources == ["issued"]
    assert not {*shown(first)} & {*shown(second)}


def test_a_repeated_empty_call_stays_empty(reader: User, publish: Publish) -> None:
    assert refresh(reader, limit=5, request_id="a").items == []
    publish(3)
    assert refresh(reader, limit=5, request_id="a").items == []
    assert len(refresh(reader, limit=5, request_id="b").items) == 3


@pytest.mark.slow
def test_request_ids_are_each_readers_own(reader: User, publish: Publish) -> None:
    publish(30)
    other = User.objects.exclude(pk=reader.pk).first()
    assert other
    refresh(other, limit=5, request_id="a")
    assert refresh(reader, limit=5, request_id="a").sources == ["recall"]


def test_a_repeated_call_leaves_out_what_was_hidden_since(reader: User, publish: Publish) -> None:
    made = publish(5)
    refresh(reader, limit=5, request_id="a")
    items.delete(item=Item.objects.get(pk=made[1]))
    assert shown(refresh(reader, limit=5, request_id="a")) == [made[0], *made[2:]]


@pytest.mark.slow
def test_concurrent_load_mores_share_nothing(reader: User, publish: Publish) -> None:
    made = publish(100)
    refresh(reader, limit=4)
    pages = at_once(*[lambda: load_more(reader, limit=4)] * 12)
    found = [item_id for page in pages for item_id in shown(page)]
    assert sorted(found, reverse=True) == made[4:52]


@pytest.mark.slow
def test_concurrent_calls_of_both_kinds_share_nothing(reader: User, publish: Publish) -> None:
    publish(100)
    calls = [lambda: refresh(reader, limit=4), lambda: load_more(reader, limit=4)] * 6
    found = Counter(item_id for page in at_once(*calls) for item_id in shown(page))
    assert len(found) == 48
    assert set(found.values()) == {1}


@pytest.mark.long
def test_concurrent_repeats_get_one_page(reader: User, publish: Publish) -> None:
    publish(100)
    pages = at_once(*[lambda: load_more(reader, limit=5, request_id="a")] * 8)
    assert len({tuple(shown(page)) for page in pages}) == 1
    assert IssuedPage.objects.count() == 1


def test_a_call_that_fails_issues_nothing(reader: User, publish: Publish) -> None:
    made = publish(10)
    with patch.object(feed, "_record_page", side_effect=RuntimeError), pytest.raises(RuntimeError):
        refresh(reader, limit=5)
    assert shown(refresh(reader, limit=5)) == made[:5]


# --- Without Redis ---------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("fault", [servers.dead, servers.frozen])
def test_without_redis_pages_come_from_recall(
    reader: User, publish: Publish, feeds_server: servers.Valkey, fault: Any
) -> None:
    made = publish(20)
    refresh(reader, limit=5)
    with fault(feeds_server):
        pages = [refresh(reader, limit=5), load_more(reader, limit=5)]
    for page in pages:
        assert (page.sources, page.has_more) == (["recall", "no-dedup"], True)
    assert [item_id for page in pages for item_id in shown(page)] == made[5:15]


# --- Impressions -----------------------------------------------------------------------------------------
def test_impressions_are_recorded_off_the_path(reader: User, publish: Publish, feeds: redis.Redis) -> None:
    made = publish(20)
    refresh(reader, limit=5)
    load_more(reader, limit=5)
    assert not list(feeds.scan_iter("bf:global:*"))
    assert record_issued_pages() == 2
    assert record_issued_pages() == 0
    IssuedPage.objects.all().delete()
    assert shown(refresh(reader, limit=20)) == made[10:]


def test_what_was_issued_is_told_to_the_plays_where_they_count(
    reader: User, publish: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "DISCOVER_SEEN", "both")
    made = publish(4)
    refresh(reader, limit=3)
    assert record_issued_pages() == 1
    assert sorted(played.recent_ids(reader.pk).issued, reverse=True) == made[:3]


def test_they_belong_to_the_day_on_which_they_were_issued(reader: User, publish: Publish) -> None:
    made = publish(10)
    now = timezone.now()
    refresh(reader, limit=5, now=now)
    record_issued_pages()
    forget_issued_pages(now=now + timedelta(days=2))
    assert not IssuedPage.objects.exists()
    for days, expected in ((6, made[5:]), (7, made)):
        later = now + timedelta(days=days)
        assert shown(refresh(reader, limit=20, now=later)) == expected
        IssuedPage.objects.all().delete()


def test_pages_wait_until_redis_is_back(reader: User, publish: Publish, feeds_server: servers.Valkey) -> None:
    publish(5)
    refresh(reader, limit=5)
    with servers.dead(feeds_server):
        assert record_issued_pages() == 0
        assert forget_issued_pages(now=timezone.now() + timedelta(days=2)) == 0
    connections.feeds_breaker.reset()
    assert record_issued_pages() == 1


@pytest.mark.slow
def test_recorders_at_once_record_each_page_once(reader: User, publish: Publish) -> None:
    publish(60)
    for _ in range(10):
        load_more(reader, limit=5)
    assert sum(at_once(*[record_issued_pages] * 4)) == 10


def test_pages_are_kept_for_a_day(reader: User, publish: Publish) -> None:
    publish(5)
    refresh(reader, limit=5, request_id="a")
    record_issued_pages()
    assert forget_issued_pages(now=timezone.now() + timedelta(hours=23)) == 0
    assert forget_issued_pages(now=timezone.now() + timedelta(hours=25)) == 1


def test_the_cap_of_a_sender_is_a_setting(reader: User, publish: Publish, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "SENDER_CAP", 3)
    publish(10, senders=1)
    page = refresh(reader, limit=5)
    assert (len(page.items), page.has_more) == (3, True)
    assert _senders(page.items) == 1


def _senders(found: Sequence[Any]) -> int:
    return len({item.sender.id for item in found})
