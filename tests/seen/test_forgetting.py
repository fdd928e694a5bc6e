"""Nothing reveals a deleted account's plays."""

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from accounts import actions
from accounts.models import User
from seen import forgetting, played, ring, store
from seen.checker import unseen
from seen.filter_store import KEPT_MONTHS, FilterKey, FilterStore, month_of
from seen.merging import merge_users
from seen.migration import migrate, old
from seen.migration.old import MIGRATED, Phase
from seen.played import Play, PlayedUnavailableError
from storage import keys
from tests.support import servers
from tests.support.deletions import settle
from tests.support.factories import UserFactory
from tests.support.filter_stores import STORES, made_store

pytestmark = pytest.mark.django_db


@pytest.fixture(params=STORES)
def filters(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FilterStore:
    return made_store(request.param, tmp_path / "played", monkeypatch)


@pytest.fixture
def ann() -> User:
    return UserFactory()


@pytest.fixture
def bob() -> User:
    return UserFactory()


def play(user: User, *item_ids: int) -> None:
    now = timezone.now()
    played.record([Play(user.pk, item_id, now) for item_id in item_ids], now=now)


def kept(user: User) -> list[str]:
    """What Redis and the store have of a user."""
    client = played.client()
    found = [key for key in (keys.played_recent(user.pk), keys.issued(user.pk)) if client.exists(key)]
    marks = [keys.played_users(node, ring.shard_of(user.pk)) for node in range(ring.NODES)]
    found += [key for key in marks if client.sismember(key, str(user.pk))]
    months = range(month_of(timezone.now()) - 12, month_of(timezone.now()) + 12)
    data = store.store().read([FilterKey(user.pk, month) for month in months])
    return found + [f"month {month}" for month, bits in zip(months, data, strict=True) if bits]


def fill(user: User) -> None:
    """Merged plays of every kept month, waiting plays and issued items."""
    play(user, 1)
    merge_users([user.pk], now=timezone.now())
    month = month_of(timezone.now())
    (data,) = store.store().read([FilterKey(user.pk, month)])
    months = [FilterKey(user.pk, month - ago) for ago in range(KEPT_MONTHS + 1)]
    store.store().update(months, lambda key, _: data)
    play(user, 2)
    played.record_issued([(user.pk, [3])])


@pytest.mark.slow
def test_nothing_is_left_of_a_deleted_account_and_all_of_others(filters: FilterStore, ann: User, bob: User) -> None:
    for user in (ann, bob):
        fill(user)
    before = kept(bob)
    assert min(len(kept(ann)), len(before)) >= 3 + KEPT_MONTHS, "the oldest month may expire today"
    actions.delete_account(user=ann)
    settle(ann)
    assert kept(ann) == []
    assert kept(bob) == before
    assert unseen(bob.pk, [1, 2, 3, 4], now=timezone.now()) == [4]
    assert forgetting.forget([ann.pk], now=timezone.now()) == 0


@pytest.mark.slow
def test_a_merge_under_way_brings_nothing_back(
    filters: FilterStore, ann: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deletion and purge run between its read and write."""
    for user in (ann, bob):
        play(user, 1)
    update = filters.update

    def late(*args: Any) -> None:
        monkeypatch.setattr(filters, "update", update)
        actions.delete_account(user=ann)
        settle(ann)
        update(*args)
        assert kept(ann), "or this shows nothing"

    monkeypatch.setattr(filters, "update", late)
    merge_users([ann.pk, bob.pk], now=timezone.now())
    assert kept(ann) == []
    assert unseen(bob.pk, [1, 2], now=timezone.now()) == [2]


@pytest.mark.parametrize("filters", ["lmdb"], indirect=True)
def test_a_play_that_is_reported_late_goes_with_its_merge(filters: FilterStore, ann: User) -> None:
    actions.delete_account(user=ann)
    settle(ann)
    play(ann, 1)
    played.record_issued([(ann.pk, [2])])
    merge_users([ann.pk], now=timezone.now())
    assert kept(ann) == []


@pytest.mark.slow
@pytest.mark.parametrize("filters", ["lmdb"], indirect=True)
def test_it_is_taken_from_the_old_redis_and_holds_no_migration_up(
    filters: FilterStore, ann: User, bob: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "PLAYED_OLD_URL", f"unix://{servers.servers.broker.socket}?db=3")
    try:
        for user in (ann, bob):
            old.client().zadd(f"played:{user.pk}", {"1": timezone.now().timestamp() * 1000})
        migrate.run(clock=timezone.now)
        actions.delete_account(user=ann)
        settle(ann)
        assert old.client().keys() == [b"played:%d" % bob.pk]
        assert kept(ann) == []
        merge_users([bob.pk], now=timezone.now())
        assert migrate.cut_over(clock=timezone.now, say=lambda _: None) == 1
        assert old.state().phase == Phase.CUT_OVER
        assert filters.count(MIGRATED) == 0
        assert unseen(bob.pk, [1, 8], now=timezone.now()) == [8]
    finally:
        old.client().flushdb()


@pytest.mark.slow
@pytest.mark.parametrize("filters", ["lmdb"], indirect=True)
def test_a_deletion_waits_for_a_server_that_is_down(
    filters: FilterStore, ann: User, plays_server: servers.Valkey
) -> None:
    play(ann, 1)
    actions.delete_account(user=ann)
    with servers.dead(plays_server), pytest.raises(PlayedUnavailableError):
        settle(ann)
    assert kept(ann)
    settle(ann)
    assert kept(ann) == []
