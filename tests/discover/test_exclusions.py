import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.utils import timezone

from accounts.models import User
from discover import recent
from discover.exclusions import FLOOR, REASONS, REMEMBERED, RemainingCandidates, exclude, view_weight
from discover.models import IssuedPage, NotInterested
from discover.recall import RecalledItem
from items import actions as items
from items.models import Item
from relations import actions as relations
from tests.support.factories import ItemFactory, UserFactory
from tests.support.servers import Valkey, dead, frozen
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

NOW = timezone.now()
DAY = timedelta(days=1)


def candidate(item: Item, worth: float = 1.0) -> RecalledItem:
    return RecalledItem(item.pk, item.sender_id, math.log(worth), "popular")


def kept(reader: User, *those: Item, **options: Any) -> RemainingCandidates:
    return exclude(reader, [candidate(item) for item in those], **{"now": NOW} | options)


def scores(result: RemainingCandidates) -> dict[int, float]:
    return {candidate.item_id: round(math.exp(candidate.score), 3) for candidate in result.candidates}


def tagged(text: str, **fields: Any) -> Item:
    return items.publish(sender=fields.pop("sender", None) or UserFactory(), content={"text": text}, **fields)


# --- Left out --------------------------------------------------------------------------------------------
def own(reader: User) -> Item:
    return ItemFactory(sender=reader)


def liked(reader: User) -> Item:
    item: Item = ItemFactory()
    items.like(user=reader, item=item)
    return item


def answered(reader: User) -> Item:
    item: Item = ItemFactory()
    between = ItemFactory(reply_to=item)
    ItemFactory(reply_to=between, sender=reader)
    return item


def reposted(reader: User) -> Item:
    item: Item = ItemFactory()
    items.repost(sender=reader, item=item)
    return item


def viewed(reader: User) -> Item:
    item: Item = ItemFactory()
    recent.record(reader.pk, items=[item.pk], now=NOW)
    return item


def viewed_in_part(reader: User) -> Item:
    item: Item = ItemFactory()
    reply = ItemFactory(reply_to=ItemFactory(reply_to=item))
    recent.record(reader.pk, replies=[reply.pk], now=NOW)
    return item


def unwanted(reader: User, **fields: Any) -> Item:
    item: Item = ItemFactory(**fields)
    NotInterested.objects.create(user=reader, item=item)
    return item


def blocked(reader: User) -> Item:
    item: Item = ItemFactory()
    relations.block(blocker=reader, blocked=item.sender)
    return item


def blocking(reader: User) -> Item:
    item: Item = ItemFactory()
    relations.block(blocker=item.sender, blocked=reader)
    return item


def muted(reader: User) -> Item:
    item: Item = ItemFactory()
    relations.mute(muter=reader, muted=item.sender)
    return item


def issued(reader: User, ago: timedelta = timedelta(hours=23)) -> Item:
    item: Item = ItemFactory()
    IssuedPage.objects.create(user=reader, item_ids=[1, item.pk], reasons=["", ""], has_more=False, issued_at=NOW - ago)
    return item


CASES = {
    own: "own",
    liked: "interacted",
    answered: "interacted",
    reposted: "interacted",
    viewed: "viewed",
    viewed_in_part: "reply_viewed",
    unwanted: "not_interested",
    blocked: "blocked",
    blocking: "blocked",
    muted: "muted",
    issued: "issued",
}


@pytest.mark.parametrize("make", CASES)
def test_each_reason_leaves_out_for_its_reader_only(reader: User, make: Callable[[User], Item]) -> None:
    item, other = make(reader), ItemFactory()
    result = kept(reader, item, other)
    assert scores(result) == {other.pk: 1.0}
    assert result.excluded == {CASES[make]: 1}
    assert result.views_known
    assert scores(kept(UserFactory(), item, other)) == {item.pk: 1.0, other.pk: 1.0}


def test_all_are_kept_or_counted_once(reader: User) -> None:
    those = [make(reader) for make in CASES for _ in range(2)]
    items.like(user=reader, item=those[0])  # the reader's own item, liked
    result = kept(reader, *those)
    assert result.excluded == {reason: 2 * list(CASES.values()).count(reason) for reason in REASONS}
    assert result.candidates == []


def test_what_was_taken_back_counts_no_more(reader: User) -> None:
    like, repost, reply = liked(reader), reposted(reader), answered(reader)
    items.unlike(user=reader, item=like)
    items.undo_repost(sender=reader, item=repost)
    items.delete(item=Item.objects.get(root=reply, sender=reader))
    block, mute = blocked(reader), muted(reader)
    relations.unblock(blocker=reader, blocked=block.sender)
    relations.unmute(muter=reader, muted=mute.sender)
    no_more = unwanted(reader)
    NotInterested.objects.all().delete()
    assert len(kept(reader, like, repost, reply, block, mute, no_more).candidates) == 6


def test_a_page_of_more_than_a_day_ago_is_no_reason(reader: User) -> None:
    assert len(kept(reader, issued(reader, ago=timedelta(hours=25))).candidates) == 1


# --- Views -----------------------------------------------------------------------------------------------
def test_a_view_counts_fully_for_a_day_and_less_and_less_then() -> None:
    assert [round(view_weight(days * DAY), 3) for days in (-1, 0, 1, 3, 5, 6, 7)] == [1, 1, 1, 0.841, 0.5, 0.339, 0.21]


@pytest.mark.parametrize(("days", "score"), [(0, None), (1, None), (4.9, None), (5.1, 0.517), (6, 0.661), (7, 1.0)])
@pytest.mark.parametrize("kind", ["items", "replies"])
def test_what_was_viewed_days_ago_may_return(reader: User, kind: str, days: float, score: float | None) -> None:
    item: Item = ItemFactory()
    seen = item if kind == "items" else ItemFactory(reply_to=item)
    recent.record(reader.pk, **{kind: [seen.pk]}, now=NOW - days * DAY)  # type: ignore[arg-type]
    result = kept(reader, item)
    assert scores(result) == ({} if score is None else {item.pk: score})
    assert bool(result.excluded) == (score is None)


def test_viewed_again_today_it_stays_out(reader: User) -> None:
    item: Item = ItemFactory()
    first, second = ItemFactory(reply_to=item), ItemFactory(reply_to=item)
    for ago, reply in ((6, first), (0, second)):
        recent.record(reader.pk, replies=[reply.pk], now=NOW - ago * DAY)
    assert kept(reader, item).excluded == {"reply_viewed": 1}


def test_a_recommended_item_that_comes_again_ranks_behind(reader: User) -> None:
    item, other = ItemFactory(), ItemFactory()
    recent.record(reader.pk, items=[item.pk], now=NOW - 6 * DAY)
    assert [one.item_id for one in kept(reader, item, other).candidates] == [other.pk, item.pk]


# --- Weakened --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("times", "score"), [(1, 0.5), (3, 0.125), (9, FLOOR)])
def test_senders_of_unwanted_items_are_weakened(reader: User, times: int, score: float) -> None:
    item, other = ItemFactory(), ItemFactory()
    for _ in range(times):
        unwanted(reader, sender=item.sender)
    assert scores(kept(reader, item, other)) == {item.pk: score, other.pk: 1.0}


def test_hashtags_of_unwanted_items_are_weakened(reader: User) -> None:
    for text in ("#cats #dogs", "#cats", "none"):
        NotInterested.objects.create(user=reader, item=tagged(text))
    NotInterested.objects.create(user=UserFactory(), item=tagged("#birds"))
    cats, both, birds, none = tagged("more #Cats"), tagged("#dogs #cats"), tagged("#birds"), tagged("cats")
    assert scores(kept(reader, cats, both, birds, none)) == {
        cats.pk: round(0.7**2, 3),
        both.pk: round(0.7**3, 3),
        birds.pk: 1.0,
        none.pk: 1.0,
    }


def test_everything_that_weakens_is_multiplied(reader: User) -> None:
    item = tagged("#cats")
    NotInterested.objects.create(user=reader, item=tagged("#cats", sender=item.sender))
    recent.record(reader.pk, items=[item.pk], now=NOW - 6 * DAY)
    assert scores(kept(reader, item)) == {item.pk: pytest.approx(0.5 * 0.7 * 0.6615, abs=1e-3)}


@pytest.mark.slow
def test_the_newest_unwanted_items_weaken_and_all_of_them_stay_out(reader: User) -> None:
    item = ItemFactory()
    first = unwanted(reader, sender=item.sender)
    made = ItemFactory.create_batch(REMEMBERED, sender=UserFactory())
    NotInterested.objects.bulk_create(NotInterested(user=reader, item=one) for one in made)
    result = kept(reader, item, first)
    assert scores(result) == {item.pk: 1.0}
    assert result.excluded == {"not_interested": 1}


def test_deleted_items_weaken_nothing(reader: User) -> None:
    item = tagged("#cats")
    NotInterested.objects.create(user=reader, item=(gone := tagged("#cats", sender=item.sender)))
    items.delete(item=gone)
    assert scores(kept(reader, item)) == {item.pk: 1.0}


def test_equal_scores_keep_the_order_of_recall(reader: User) -> None:
    those = ItemFactory.create_batch(6)
    mixed = [candidate(item, score) for item, score in zip(those, (3, 1, 2, 1, 3, 2), strict=True)]
    result = exclude(reader, mixed, now=NOW)
    places = [those.index(next(one for one in those if one.pk == kept.item_id)) for kept in result.candidates]
    assert places == [0, 4, 2, 5, 1, 3]


# --- Cost and outages ------------------------------------------------------------------------------------
def test_one_statement_and_one_round_trip_however_many(reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    trips: list[Any] = []
    pipelined = recent.pipelined
    monkeypatch.setattr(recent, "pipelined", lambda *args: trips.append(args) or pipelined(*args))
    those = [make(reader) for make in CASES] + ItemFactory.create_batch(40)
    for some in (those[:1], those):
        trips.clear()
        with statements() as seen:
            kept(reader, *some)
        assert (len(seen), len(trips)) == (1, 1)


def test_no_candidates_ask_nothing_of_postgresql(reader: User) -> None:
    with statements() as seen:
        assert kept(reader) == RemainingCandidates([], kept(reader).excluded, views_known=True)
    assert not seen


@pytest.mark.slow
@pytest.mark.parametrize("fault", [dead, frozen])
def test_without_redis_views_are_unknown_and_all_else_holds(
    reader: User, feeds: redis.Redis, feeds_server: Valkey, fault: Callable[[Valkey], Any]
) -> None:
    those = [make(reader) for make in CASES]
    with fault(feeds_server):
        result = kept(reader, *those)
    assert not result.views_known
    assert {one.item_id for one in result.candidates} == {
        those[list(CASES).index(make)].pk for make in (viewed, viewed_in_part)
    }
