"""Exclusive lists take members out of home."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from items import actions as items
from items.models import Item
from relations import actions as relations
from relations import lists
from storage.connections import count_trips
from tests.support.timelines import read, seen, sources
from tests.support.workers import Workers
from timeline import home
from timeline.home import new_count
from timeline.late import LATE
from timeline.lists import list_new_count, list_page
from timeline.oracle import home_ids, list_ids, new_ids
from timeline.pull import AROUND, PULL_ABOVE, PULL_BELOW, PULL_BODIES
from timeline.senders import Statement
from timeline.truth import DESCRIBE, VERIFY_IDS

pytestmark = pytest.mark.django_db(transaction=True)

Say = Callable[..., Item]


@pytest.fixture
def friend() -> User:
    return seen(username="friend")


@pytest.fixture
def other() -> User:
    return seen(username="other")


@pytest.fixture
def reader(friend: User, other: User, workers: Workers) -> User:
    reader = seen(username="reader")
    for one in (friend, other):
        relations.follow(follower=reader, followee=one)
    return reader


def listed(owner: User, *members: User, is_exclusive: bool = False) -> int:
    made = lists.create(owner=owner, title="a list", is_exclusive=is_exclusive)
    for member in members:
        lists.add(owner=owner, list_id=made.pk, member=member)
    return made.pk


def shown(reader: User, list_id: int, **page: int) -> list[int]:
    ids = [int(item.id) for item in list_page(reader, list_id, **page).items]
    assert page or ids == list_ids(reader.pk, list_id)
    return ids


@pytest.mark.slow
def test_a_list_has_its_members_alone(reader: User, friend: User, other: User, say: Say) -> None:
    made, empty = listed(reader, friend), listed(reader)
    said, _, _ = say(friend), say(other), say(reader)
    assert shown(reader, made) == [said.pk]
    assert shown(reader, empty) == []
    assert read(reader) == home_ids(reader.pk)
    assert len(read(reader)) == 3, "a plain list takes nothing out of home"


@pytest.mark.slow
def test_rules_of_home_hold_in_lists(reader: User, friend: User, other: User, say: Say) -> None:
    made = listed(reader, friend, other)
    for visibility, is_seen in (("public", True), ("followers", True), ("mutuals", False), ("self", False)):
        said = say(friend, visibility=visibility)
        assert (said.pk in shown(reader, made)) == is_seen, visibility
    items.repost(sender=other, item=say(seen()))
    assert len(shown(reader, made)) == 3
    relations.mute(muter=reader, muted=friend)
    assert len(shown(reader, made)) == 1
    relations.unmute(muter=reader, muted=friend)
    relations.block(blocker=friend, blocked=reader)
    assert len(shown(reader, made)) == 1
    relations.unblock(blocker=friend, blocked=reader)
    relations.unfollow(follower=reader, followee=friend)
    assert len(shown(reader, made)) == 1


@pytest.mark.slow
def test_reposts_are_folded_among_the_members(reader: User, friend: User, other: User, say: Say) -> None:
    made = listed(reader, friend)
    said = say(seen())
    both = [items.repost(sender=one, item=said)[0].pk for one in (friend, other)]
    assert read(reader) == [both[1]]
    assert shown(reader, made) == [both[0]], "what is not in the list folds nothing in it"


@pytest.mark.slow
def test_pages_go_on_to_the_end(reader: User, friend: User, other: User, say: Say) -> None:
    made = listed(reader, friend, other, is_exclusive=True)
    said = [say(one).pk for _ in range(5) for one in (friend, other)][::-1]
    walked: list[int] = []
    last_id = None
    for _ in range(5):
        page = list_page(reader, made, last_id=last_id, limit=3)
        walked += [int(item.id) for item in page.items]
        last_id = page.last_id
        if not page.has_more:
            break
    assert walked == said == list_ids(reader.pk, made)
    assert list_new_count(reader, made, since_id=said[3]) == (3, False)


def test_counts_stop_at_their_cap(reader: User, friend: User, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "NEW_CAP", 2)
    made = listed(reader, friend)
    for _ in range(3):
        say(friend)
    assert list_new_count(reader, made, since_id=0) == (2, True)


# --- Exclusive lists -------------------------------------------------------------------------------------
@pytest.mark.slow
def test_an_exclusive_list_leaves_home_at_once_and_comes_back(
    reader: User, friend: User, other: User, say: Say, workers: Workers
) -> None:
    said = [say(one).pk for one in (friend, other)]
    read(reader)
    workers.work()
    assert sources(reader) == ["inbox"]
    made = listed(reader, friend, is_exclusive=True)
    assert read(reader) == home_ids(reader.pk) == [said[1]]
    later = say(friend).pk
    workers.work()
    assert read(reader) == [said[1]]
    assert new_count(reader, since_id=said[1]) == (len(new_ids(reader.pk, since=said[1])), False) == (0, False)
    assert shown(reader, made) == [later, said[0]]
    workers.work()
    assert read(reader) == [said[1]], "by now the inbox has forgotten the member's items"
    lists.change(owner=reader, list_id=made, is_exclusive=False)
    assert read(reader) == home_ids(reader.pk) == [later, said[1], said[0]]
    workers.work()
    assert sources(reader) == ["inbox"]
    assert read(reader) == [later, said[1], said[0]]


def test_a_member_of_two_exclusive_lists_comes_back_after_both(reader: User, friend: User, say: Say) -> None:
    said = say(friend).pk
    one, two = (listed(reader, friend, is_exclusive=True) for _ in range(2))
    lists.delete(owner=reader, list_id=one)
    assert read(reader) == home_ids(reader.pk) == []
    lists.remove(owner=reader, list_id=two, member=friend)
    assert read(reader) == home_ids(reader.pk) == [said]


def test_what_others_repost_of_a_member_stays(reader: User, friend: User, other: User, say: Say) -> None:
    listed(reader, friend, is_exclusive=True)
    again, _ = items.repost(sender=other, item=say(friend))
    assert read(reader) == home_ids(reader.pk) == [again.pk]


def test_anothers_exclusive_list_takes_nothing_away(reader: User, friend: User, say: Say) -> None:
    stranger = seen()
    relations.follow(follower=stranger, followee=friend)
    listed(stranger, friend, is_exclusive=True)
    said = say(friend)
    assert read(reader) == [said.pk]
    assert read(stranger) == home_ids(stranger.pk) == []


# --- Cost ------------------------------------------------------------------------------------------------
def test_a_page_is_one_statement(reader: User, friend: User, say: Say) -> None:
    made = listed(reader, friend)
    say(friend)
    with count_trips() as asked, CaptureQueriesContext(connection) as others:
        list_page(reader, made)
    assert (asked.statements, asked.round_trips, len(others)) == (1, 0, 0)


OF_BOTH = {
    "bodies": PULL_BODIES,
    "below": PULL_BELOW,
    "above": PULL_ABOVE,
    "around": AROUND,
    "verify": DESCRIBE,
    "verify ids": VERIFY_IDS,
    "late": LATE,
}


@pytest.mark.parametrize("built", OF_BOTH.values(), ids=OF_BOTH)
def test_a_statement_of_a_list_asks_for_no_exclusive_list_and_not_for_its_owner(built: Statement) -> None:
    assert "is_exclusive" in built.of_home
    assert "is_exclusive" not in built.of_list
    assert "%(list)s" not in built.of_home
    assert ("%(list)s" in built.of_list) == (built not in (DESCRIBE, VERIFY_IDS))
    assert "SELECT %(reader)s::bigint, false" not in built.of_list
