import logging
import os
from collections import Counter
from pathlib import Path

import hypothesis.strategies as st
import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone
from hypothesis import given

from accounts.models import User
from discover.candidates import APART, recall_unseen, spread_senders, spread_tags
from discover.feed import refresh
from discover.impressions import Impression, record
from discover.recall import RecalledItem
from operation.doctor import disks
from runtime import metrics
from seen import played, store
from seen.filter_store import FilterKey, month_of
from seen.filters import MonthFilter, id_numbers
from seen.lmdb_store import LmdbStore
from seen.played import Play
from seen.redis_store import RedisStore
from seen.usage import usage
from tests.support import servers
from tests.support.factories import UserFactory, say
from tests.support.recommending import NewestFirst, Publish

pytestmark = pytest.mark.django_db


def see(reader: User, item_ids: list[int]) -> None:
    record([Impression(reader.pk, timezone.now().date(), item_ids)])


def left(reader: User, wanted: int = 20) -> list[int]:
    return [one.item_id for one in recall_unseen(reader, wanted=wanted, now=timezone.now()).candidates]


def test_what_was_shown_is_left_out(reader: User, publish: Publish, newest_first: NewestFirst) -> None:
    ids = publish(10)
    see(reader, ids[2:5])
    assert left(reader) == ids[:2] + ids[5:]


@pytest.mark.slow
def test_recall_goes_deeper_where_most_was_seen(
    reader: User, publish: Publish, newest_first: NewestFirst, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "RECALL_COUNT", 10)
    monkeypatch.setattr(settings, "RECALL_DEPTH", 100)
    ids = publish(60)
    see(reader, ids[:5])
    assert left(reader, 5) == ids[5:10]
    assert newest_first.asked == [10]
    see(reader, ids[5:38])
    assert left(reader, 5) == ids[38:60]
    assert newest_first.asked == [10, 10, 40, 100]


def test_it_filters_twice_as_many_while_a_page_is_not_full(
    reader: User, publish: Publish, newest_first: NewestFirst, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discover.candidates.PART", 4)
    ids = publish(20)
    assert left(reader, 1) == ids[:4]
    see(reader, ids[:5])
    assert left(reader, 1) == ids[5:12]
    assert newest_first.asked == [settings.RECALL_COUNT] * 2


def test_it_does_not_go_deeper_than_there_is_anything(
    reader: User, publish: Publish, newest_first: NewestFirst
) -> None:
    publish(3)
    assert len(left(reader)) == 3
    assert newest_first.asked == [settings.RECALL_COUNT]


def test_without_redis_everything_is_left_and_it_says_so(
    reader: User, publish: Publish, newest_first: NewestFirst, feeds_server: servers.Valkey
) -> None:
    ids = publish(3)
    see(reader, ids)
    with servers.dead(feeds_server):
        found = recall_unseen(reader, wanted=3, now=timezone.now())
    assert [one.item_id for one in found.candidates] == ids
    assert not found.is_deduplicated


@pytest.mark.parametrize(
    ("what", "left_out"), [("impressions", {"impression"}), ("plays", {"play"}), ("both", {"impression", "play"})]
)
def test_what_counts_as_seen_is_a_setting(
    reader: User,
    publish: Publish,
    newest_first: NewestFirst,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    what: str,
    left_out: set[str],
) -> None:
    monkeypatch.setattr(settings, "DISCOVER_SEEN", what)
    monkeypatch.setattr(store, "_store", LmdbStore(tmp_path))
    ids = dict(zip(("impression", "play", "neither"), publish(3), strict=True))
    see(reader, [ids["impression"]])
    played.record([Play(reader.pk, ids["play"], timezone.now())], now=timezone.now())
    assert set(left(reader)) == {item_id for name, item_id in ids.items() if name not in left_out}


# --- By default, where there is a history ----------------------------------------------------------------
@pytest.fixture
def empty_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LmdbStore:
    monkeypatch.setattr(settings, "DISCOVER_SEEN", "auto")
    monkeypatch.setattr(store, "_store", LmdbStore(tmp_path / "played"))
    return store._store


def asked_of_plays() -> int:
    return sum(stats["calls"] for name, stats in played.client().info("commandstats").items() if name != "cmdstat_info")


def test_plays_count_by_default_where_there_are_any(
    reader: User, publish: Publish, newest_first: NewestFirst, empty_store: LmdbStore
) -> None:
    shown, seen, neither = publish(3)
    see(reader, [shown])
    assert set(left(reader)) == {seen, neither}
    played.record([Play(reader.pk, seen, timezone.now())], now=timezone.now())
    usage.forget()  # a minute later
    assert left(reader) == [neither]


@pytest.mark.parametrize("months", [0, 3])
def test_plays_count_by_default_where_filters_have_them_alone(
    reader: User, publish: Publish, newest_first: NewestFirst, empty_store: LmdbStore, months: int
) -> None:
    seen, other = publish(2)
    month = month_of(timezone.now()) - months
    found = MonthFilter.empty(reader.pk, expected=10, error=0.001)
    found.add(id_numbers([seen]))
    empty_store.update([FilterKey(reader.pk, month)], lambda key, data: found.to_bytes())
    assert left(reader) == [other]


def test_a_cut_file_of_filters_is_no_reason_to_show_nothing(
    reader: User, publish: Publish, newest_first: NewestFirst, empty_store: LmdbStore, client: Client
) -> None:
    """Discover goes on without it, the service says 503, and doctor says why."""
    items = publish(2)
    empty_store.update([FilterKey(reader.pk, month_of(timezone.now()))], lambda key, data: b"x" * 50_000)
    os.truncate(empty_store.folder / "data.mdb", 9_000)
    assert set(left(reader)) == set(items)
    client.force_login(reader)
    answer = client.post("/api/v1/seen/filter", {"ids": ["1"]}, content_type="application/json")
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    (finding,) = disks.played_store()
    assert (finding.state, "it has 9,000 of " in finding.text) == ("error", True), finding.text


def test_a_site_without_plays_asks_once_a_minute_and_makes_no_file(
    reader: User, publish: Publish, newest_first: NewestFirst, empty_store: LmdbStore, plays_server: servers.Valkey
) -> None:
    publish(2)
    before = asked_of_plays()
    for _ in range(5):
        recall_unseen(reader, wanted=2, now=timezone.now())
    assert asked_of_plays() == before + 1
    assert not empty_store.folder.exists()
    with servers.dead(plays_server):
        assert recall_unseen(reader, wanted=2, now=timezone.now()).is_deduplicated
        last_asked(0.0)
        assert recall_unseen(reader, wanted=2, now=timezone.now()).is_deduplicated


def last_asked(moment: float) -> None:
    usage._until = moment


def test_where_it_was_never_known_it_says_so(
    reader: User, publish: Publish, newest_first: NewestFirst, empty_store: LmdbStore, plays_server: servers.Valkey
) -> None:
    publish(2)
    with servers.dead(plays_server):
        found = recall_unseen(reader, wanted=2, now=timezone.now())
    assert len(found.candidates) == 2
    assert not found.is_deduplicated


def test_with_a_history_and_its_store_down_it_says_so(
    reader: User,
    publish: Publish,
    newest_first: NewestFirst,
    empty_store: LmdbStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publish(2)
    played.record([Play(reader.pk, 7, timezone.now())], now=timezone.now())
    assert recall_unseen(reader, wanted=2, now=timezone.now()).is_deduplicated
    monkeypatch.setattr(store, "_store", RedisStore("redis://127.0.0.1:1/0"))
    for _ in range(2):
        found = recall_unseen(reader, wanted=2, now=timezone.now())
        assert (len(found.candidates), found.is_deduplicated) == (2, False)
        last_asked(0.0)


def test_a_server_of_filters_is_asked_whether_it_has_any() -> None:
    there = RedisStore(settings.REDIS_URL)
    assert not there.holds_any()
    there.update([FilterKey(7, month_of(timezone.now()))], lambda key, data: b"1")
    assert there.holds_any()


@pytest.mark.parametrize(("what", "is_known"), [("impressions", True), ("plays", False), ("both", False)])
def test_without_the_plays_it_says_so(
    reader: User,
    publish: Publish,
    newest_first: NewestFirst,
    monkeypatch: pytest.MonkeyPatch,
    plays_server: servers.Valkey,
    what: str,
    is_known: bool,
) -> None:
    monkeypatch.setattr(settings, "DISCOVER_SEEN", what)
    publish(2)
    with servers.dead(plays_server):
        found = recall_unseen(reader, wanted=2, now=timezone.now())
    assert len(found.candidates) == 2
    assert found.is_deduplicated == is_known


def test_it_says_how_many_were_left_out_and_why(
    reader: User, publish: Publish, newest_first: NewestFirst, caplog: pytest.LogCaptureFixture
) -> None:
    see(reader, publish(5)[:2])
    counter = metrics.discover_excluded.labels("impression")
    before = counter._value.get()
    with caplog.at_level(logging.INFO, "discover.candidates"):
        left(reader)
    assert counter._value.get() == before + 2
    assert caplog.messages == [f"Recall for user {reader.pk}: recalled=5 left=3 excluded: impression=2"]


# --- Mixing ----------------------------------------------------------------------------------------------
senders_in_order = st.lists(st.integers(1, 6), max_size=60)


@pytest.mark.slow
@given(senders_in_order, st.integers(1, 8))
def test_a_page_has_at_most_two_of_a_sender(senders: list[int], size: int) -> None:
    candidates = [RecalledItem(number, sender, -number, "") for number, sender in enumerate(senders)]
    order = spread_senders(candidates, size)
    assert sorted(one.item_id for one in order) == list(range(len(senders)))
    full = True
    for first in range(0, len(order), size):
        page = order[first : first + size]
        full = full and max(Counter(one.sender_id for one in page).values()) <= settings.SENDER_CAP
        if not full:
            # Allowed only if the rest cannot fill a page within the cap.
            rest = Counter(one.sender_id for one in order[first:])
            assert sum(min(count, settings.SENDER_CAP) for count in rest.values()) < size
            break


@pytest.mark.slow
@given(senders_in_order, st.integers(1, 8))
def test_the_first_page_is_the_best_that_there_is(senders: list[int], size: int) -> None:
    candidates = [RecalledItem(number, sender, -number, "") for number, sender in enumerate(senders)]
    best: list[RecalledItem] = []
    for candidate in candidates:
        if len(best) < size and sum(one.sender_id == candidate.sender_id for one in best) < settings.SENDER_CAP:
            best.append(candidate)
    assert spread_senders(candidates, size)[: len(best)] == best


REASONS = ("tag:boats", "tag:tea", "fresh")


@given(st.lists(st.sampled_from(REASONS), max_size=60))
def test_a_hashtag_brings_one_of_three_in_a_row_while_there_are_others(given: list[str]) -> None:
    candidates = [RecalledItem(number, number, -number, reason) for number, reason in enumerate(given)]
    spread = spread_tags(candidates)
    assert sorted(spread, key=lambda one: one.item_id) == candidates
    found = [one.reason for one in spread]
    for reason in REASONS:
        assert [one for one in spread if one.reason == reason] == [one for one in candidates if one.reason == reason]
    for place, reason in enumerate(found):
        if reason != "fresh" and reason in found[max(0, place - APART + 1) : place]:
            assert "fresh" not in found[place:], "the rest came by hashtags"


def test_a_hashtag_does_not_fill_the_first_page(reader: User) -> None:
    say(reader, "#boats")
    for text in ["words"] * 12 + ["#boats"] * 12:
        say(UserFactory.create(), text)
    page = refresh(reader, limit=12)
    by_tag = [item.reason == "Because of #boats" for item in page.items]
    assert (by_tag[0], by_tag[:3].count(True), by_tag.count(True)) == (True, 1, 4)
