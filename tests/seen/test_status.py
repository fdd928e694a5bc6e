from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import settings
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from operation.doctor import work
from operation.doctor.findings import OK, WARNING
from runtime import metrics
from seen import merging, played, status, store, tasks
from seen.filter_store import StoreUnavailableError
from seen.lmdb_store import LmdbStore
from seen.merging import merge_task_shard
from seen.models import MergeRun
from seen.played import Play
from seen.ring import shard_of
from tests.support import servers
from tests.support.admin import text
from tests.support.impression_servers import LATELY
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

NOW = LATELY.replace(minute=40)
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def plays(plays: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> redis.Redis:
    """An empty server, with a store and few shards."""
    monkeypatch.setattr(settings, "PLAYED_SHARDS", 8)
    monkeypatch.setattr(settings, "PLAYED_TASK_SHARDS", 4)
    return plays


def play(*user_ids: int, at: datetime = NOW, count: int = 1) -> None:
    items = range(1, count + 1)
    played.record([Play(user_id, item_id, at) for user_id in user_ids for item_id in items], now=at)


def merge(at: datetime) -> None:
    for task_shard in range(settings.PLAYED_TASK_SHARDS):
        merge_task_shard(task_shard, now=at)


def fail(at: datetime, monkeypatch: pytest.MonkeyPatch, task_shard: int) -> None:
    """Merge a task shard while its store is down."""

    def down(*args: Any) -> None:
        raise StoreUnavailableError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(store.store(), "update", down)
        with pytest.raises(StoreUnavailableError):
            merge_task_shard(task_shard, now=at)


def task_of(user_id: int) -> int:
    return shard_of(user_id) * settings.PLAYED_TASK_SHARDS // settings.PLAYED_SHARDS


# --- Who waits --------------------------------------------------------------------------------------------
def test_the_ring_says_who_waits() -> None:
    assert status.waiting_users(now=NOW) == {"current": 0, "merging": 0, "left": 0}
    play(*range(1, 21), at=NOW - 2 * HOUR)
    play(*range(1, 6), at=NOW - HOUR)
    play(1, 2)
    assert status.waiting_users(now=NOW) == {"current": 2, "merging": 5, "left": 20}


def test_what_it_asks_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> tuple[int, int]:
        trips = []
        pipelined = status.pipelined
        with monkeypatch.context() as patch, statements() as said:
            patch.setattr(status, "pipelined", lambda *args: trips.append(1) or pipelined(*args))
            status.measure(now=NOW)
        return len(trips), len(said)

    before = asked()
    play(*range(1, 200), at=NOW - HOUR)
    merge(NOW)
    play(*range(1, 200))
    assert (before, asked()) == ((1, 0), (2, 0)), "an empty ring is seen in one round trip less"


@pytest.mark.slow
def test_servers_that_do_not_answer_are_told_of(tmp_path: Path) -> None:
    with servers.dead(servers.servers.plays):
        (tmp_path / "file").write_text("no folder")
        store._store = LmdbStore(tmp_path / "file")
        status.measure(now=NOW)
    shown = Shown()
    assert [shown.of("feedsite_played_up", server=one) for one in ("plays", "store")] == [0, 0]


@pytest.mark.slow
def test_the_doctor_tells_of_plays_that_wait_and_of_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(at: datetime = NOW) -> tuple[str, str]:
        (finding,) = work.merges_of_plays(at)
        return finding.state, finding.text

    play(*range(1, 4), at=NOW - HOUR)
    play(*range(1, 4))
    assert found() == (OK, "in time")
    play(9, at=NOW - 2 * HOUR)
    fail(NOW - HOUR, monkeypatch, task_of(9))
    assert found() == (WARNING, "1 users wait for more than two hours, 1 merges failed")
    merge(NOW - HOUR)
    assert found(NOW + 2 * HOUR)[1] == "6 users wait for more than two hours, 0 merges failed"


def test_old_merges_are_forgotten() -> None:
    play(1, at=NOW - HOUR)
    merge(NOW)
    assert merging.forget_runs(now=NOW + timedelta(days=29)) == 0
    assert merging.forget_runs(now=NOW + timedelta(days=31)) == 1
    assert not MergeRun.objects.exists()


# --- Where it is shown -----------------------------------------------------------------------------------
class Shown:
    """The metrics of this moment. Reading them takes a second after many tests."""

    def __init__(self) -> None:
        families = text_string_to_metric_families(text(Client().get("/metrics")))
        self.samples = [one for family in families for one in family.samples]

    def of(self, name: str, **labels: str) -> float:
        (found,) = (one.value for one in self.samples if one.name == name and one.labels == labels)
        return found


@pytest.mark.slow
def test_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    merged, failed = "feedsite_played_merged_users_total", "feedsite_played_merges_total"
    metrics.played_merges.labels("failed")
    before = Shown()
    play(*range(1, 21), at=NOW - HOUR)
    fail(NOW, monkeypatch, task_of(1))
    merge(NOW)
    play(1, 2, 3)
    monkeypatch.setattr(tasks, "database_now", lambda: NOW)
    tasks.watch_plays()
    shown = Shown()
    assert shown.of(merged) == before.of(merged) + 20
    assert shown.of(failed, result="failed") == before.of(failed, result="failed") + 1
    assert shown.of("feedsite_played_backlog_users", state="current") == 3
    assert shown.of("feedsite_played_backlog_users", state="merging") == 0
    assert shown.of("feedsite_played_filters", age="0") == 20
    assert shown.of("feedsite_played_filters", age="1") == 0
    assert shown.of("feedsite_played_filter_bytes", age="0") == sum(one.size for one in store.store().stats().values())
    assert shown.of("feedsite_played_up", server="plays") == 1


def test_merges_are_listed(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    play(*range(1, 21), at=NOW - HOUR)
    fail(NOW, monkeypatch, 0)
    merge(NOW)
    listed = admin_client.get("/admin/seen/mergerun/", {"error__isempty": "0"})
    assert [run.error for run in listed.context["cl"].result_list] == ["the disk is gone"]
    assert admin_client.post(f"/admin/seen/mergerun/{MergeRun.objects.latest('pk').pk}/delete/").status_code == 403
