"""Readers who need no inbox: savings by hand, and a sample of the site."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from items.models import Item
from operation import inboxes
from operation.doctor import feeds
from operation.doctor.findings import OK
from operation.inboxes import Costs, NothingWrittenError, Readers, recommended, sample, savings
from relations import actions as relations
from storage.ids import compose
from tests.support.factories import ItemFactory, UserFactory

COSTS = Costs(push=0.5, page=2.0, pull=0.25, inbox=1.5, sql=1.0, followee=0.125, packed_entry=10, entry=100)


def tiny() -> Readers:
    """Of 1, 4 and 40 followees, of 2, 10 and 100 deliveries and 8, 4 and 1 pages a day; the first merges two
    outboxes.
    """
    return Readers(
        followees=np.array([1, 4, 40]),
        deliveries=np.array([2.0, 10.0, 100.0]),
        outboxes=np.array([2, 0, 0]),
        pages=np.array([8.0, 4.0, 1.0]),
        caps=np.array([300, 1000, 1000]),
    )


def test_savings_by_hand() -> None:
    none, some, more, all_of_them = savings(tiny(), COSTS, (1, 2, 5, 50))
    assert (none.readers, none.deliveries, none.memory, none.pages, none.total) == (0, 0, 0, 0, 0)
    # 300 entries of a year's 730, packed; 1000 of 3650 and 1000 of 36500 are not.
    assert (some.readers, some.deliveries, some.memory) == (1 / 3, 2 / 112, 3_000 / 203_000)
    assert (some.writing, some.before, some.after) == (1.0, 2.5, 1.5 + 0.125)
    assert (some.reading, some.total, some.pages) == (8 * 0.875, 8.0, 8 / 13)
    assert (more.delivered, more.bytes, more.writing) == (12, 103_000, 6)
    assert more.reading == 8 * 0.875 + 4 * (2 - (1.5 + 0.5))
    assert (all_of_them.deliveries, all_of_them.memory, all_of_them.pages) == (1, 1, 1)
    assert all_of_them.reading == more.reading + 1 * (2 - (1.5 + 5))


def test_the_one_that_saves_most_is_recommended() -> None:
    found = savings(tiny(), COSTS)
    assert recommended(found).total == max(each.total for each in found)
    dear = Costs(push=1e-9, sql=9.0)
    assert recommended(savings(tiny(), dear)).inbox_from == 0, "where a pull is dear and a delivery cheap"
    no_readers = Readers(*(np.zeros(0, dtype=np.int64) for _ in range(5)))
    assert [each.total for each in savings(no_readers, COSTS)] == [0] * len(inboxes.CANDIDATES)


@pytest.fixture
def community(db: None) -> list[User]:
    """Three senders of 4, 2 and 0 items within two days, and readers of one, two and three of them."""
    senders = UserFactory.create_batch(3, level=0)
    for sender, count in zip(senders, (4, 2, 0), strict=True):
        ItemFactory.create_batch(count, sender=sender)
    readers = UserFactory.create_batch(3, level=3)
    for place, reader in enumerate(readers):
        for sender in senders[: place + 1]:
            relations.follow(follower=reader, followee=sender)
    return list(readers)


def test_the_sample_is_what_the_community_writes(community: list[User]) -> None:
    found = sample(now=timezone.now() + timedelta(minutes=1), days=2)
    assert sorted(found.followees.tolist()) == [1, 2, 3]
    assert sorted(found.deliveries.tolist()) == pytest.approx([2, 3, 3])
    assert found.pages.tolist() == [inboxes.PAGES] * 3
    none, two, three, four = savings(found, Costs(), (0, 2, 3, 4))
    assert [none.deliveries, two.deliveries, three.deliveries, four.deliveries] == pytest.approx([0, 2 / 8, 5 / 8, 1])
    assert [none.pages, two.pages, three.pages, four.pages] == pytest.approx([0, 1 / 3, 2 / 3, 1])


@pytest.mark.slow
def test_of_busy_senders_the_newest_items_tell(community: list[User]) -> None:
    """No more is read of a sender, a reader or the site than the sample's bounds, and rates come out all the same."""
    sender = UserFactory(level=0)
    now = timezone.now()
    for hours in range(72):
        ItemFactory(pk=compose(now - timedelta(hours=hours + 1), 0), sender=sender)
    reader = UserFactory(level=3)
    relations.follow(follower=reader, followee=sender)
    for each in community:
        User.objects.filter(pk=each.pk).update(level=0)
    found = sample(now=now, days=30)
    assert found.followees.tolist() == [1]
    assert found.deliveries[0] == pytest.approx(24, rel=0.05)
    Item.objects.all().delete()
    for minutes in range(72):
        ItemFactory(pk=compose(now - timedelta(minutes=minutes + 1), 0), sender=sender)
    assert sample(now=now, days=30).deliveries[0] == inboxes.NEWEST, "a burst is a day's work"


def test_one_statement_whatever_is_asked(community: list[User]) -> None:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        sample(now=timezone.now() + timedelta(minutes=1), days=2)
    assert len(queries) <= 2


def test_nothing_to_say(db: None) -> None:
    with pytest.raises(NothingWrittenError, match="no post of the last 30 days"):
        sample(now=timezone.now())
    (finding,) = feeds.need_of_inboxes(timezone.now())
    assert (finding.state, finding.text[:19]) == (OK, "no post of the last")


def test_the_doctor_recommends_for_this_site(community: list[User], inbox_from: Any) -> None:
    inbox_from(3)
    (finding,) = feeds.need_of_inboxes(timezone.now() + timedelta(minutes=1))
    assert finding.state == OK
    assert finding.text.startswith(
        "inbox_from is 3; by a sample of 3 readers 10 is best. Against 0 it saves 100% of the"
    )
