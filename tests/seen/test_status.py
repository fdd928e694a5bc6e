from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
import time_machine
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from runtime import metrics
from seen import merging, played, status, store, tasks
from seen.filter_store import FilterKey, StoreUnavailableError, month_of
from seen.lmdb_store import LmdbStore
from seen.merging import merge_task_shard
from seen.migration import migrate
from seen.models import MergeRun
from seen.played import Play
from seen.ring import NODES, node_of, shard_of
from tests.support import servers
from tests.support.admin import text
from tests.support.impression_servers import LATELY
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

NOW = LATELY.replace(minute=40)
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def plays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> redis.Redis:
    """An empty server, with a store and few shards."""
    monkeypatch.setattr(store, "_store", LmdbStore(tmp_path / "played"))
    monkeypatch.setattr(settings, "PLAYED_SHARDS", 8)
    monkeypatch.setattr(settings, "PLAYED_TASK_SHARDS", 4)
    return played.client()


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


def names(found: status.Status) -> set[str]:
    return {problem.name for problem in found.problems}


def task_of(user_id: int) -> int:
    return shard_of(user_id) * settings.PLAYED_TASK_SHARDS // settings.PLAYED_SHARDS


# --- Collecting ------------------------------------------------------------------------------------------
def test_an_empty_history_is_well() -> None:
    found = status.collect(now=NOW)
    assert not found.problems
    assert found.ring
    assert sum(found.ring.by_node) == 0
    assert (found.merged, found.months, found.last_merge) == ((0, 0, 0), [], None)


def test_the_ring_and_its_shards_say_who_waits() -> None:
    play(*range(1, 21), at=NOW - 2 * HOUR)
    play(*range(1, 6), at=NOW - HOUR)
    play(1, 2)
    found = status.collect(now=NOW)
    assert found.ring
    nodes = [(node_of(NOW) - ago) % NODES for ago in range(NODES)]
    assert [found.ring.by_node[node] for node in nodes] == [2, 5, 20, 0, 0, 0]
    assert [found.ring.states[node] for node in nodes[:3]] == ["current", "merging", "left"]
    assert [found.ring.waiting(state) for state in status.NodeState] == [2, 5, 20]
    played_by = [task_of(user_id) for users in (range(1, 3), range(1, 6), range(1, 21)) for user_id in users]
    assert found.ring.by_task_shard == [played_by.count(number) for number in range(settings.PLAYED_TASK_SHARDS)]
    assert names(found) == {"left", "idle"}


def test_merges_of_a_day_are_told_with_their_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = NOW.replace(minute=5), NOW.replace(minute=35)
    play(*range(1, 21), at=NOW - HOUR, count=3)
    fail(first, monkeypatch, task_of(1))
    merge(first)
    play(1, at=NOW - HOUR)
    merge(second)
    play(1, at=first)
    merge(NOW + HOUR)
    play(2, at=NOW + HOUR)
    found = status.collect(now=NOW + HOUR)
    assert found.merged == (22, 62, 1)
    assert found.last_merge == NOW + HOUR
    assert found.failures == [(first, node_of(first - HOUR), task_of(1), "the disk is gone")]
    assert names(found) == {"failed"}
    assert names(status.collect(now=NOW + 3 * HOUR)) == {"left"}, "the play of user 2, and no failure of late"
    assert status.collect(now=NOW + 26 * HOUR).merged == (0, 0, 0)


def test_filters_are_counted_by_month() -> None:
    last_month = NOW - timedelta(days=30)
    play(*range(1, 8), at=last_month)
    merge(last_month + HOUR)
    play(*range(1, 4))
    merge(NOW + HOUR)
    found = status.collect(now=NOW + HOUR)
    assert [(month.month, month.age, month.filters) for month in found.months] == [
        (f"{NOW:%Y-%m}", 0, 3),
        (f"{last_month:%Y-%m}", 1, 7),
    ]
    (data,) = store.store().read([FilterKey(1, month_of(NOW))])
    assert data
    assert found.months[0].size == 3 * len(data)


def test_what_it_asks_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> tuple[int, int]:
        trips = []
        pipelined = status.pipelined
        with monkeypatch.context() as patch, statements() as said:
            patch.setattr(status, "pipelined", lambda *args: trips.append(1) or pipelined(*args))
            status.collect(now=NOW)
        return len(trips), len(said)

    before = asked()
    play(*range(1, 200), at=NOW - HOUR)
    merge(NOW)
    play(*range(1, 200))
    assert (before, asked()) == ((1, 3), (2, 3)), "an empty ring is seen in one round trip less"


@pytest.mark.slow
def test_servers_that_do_not_answer_are_told_of_and_the_rest_is_shown(tmp_path: Path) -> None:
    play(1, at=NOW - HOUR)
    merge(NOW)
    with servers.dead(servers.servers.plays):
        (tmp_path / "file").write_text("no folder")
        store._store = LmdbStore(tmp_path / "file")
        found = status.measure(now=NOW)
    assert names(found) == {"plays", "store"}
    assert (found.ring, found.months) == (None, [])
    assert found.merged.users == 1
    metrics_shown = Shown()
    assert [metrics_shown.of("feedsite_played_up", server=one) for one in ("plays", "store")] == [0, 0]


@pytest.mark.slow
def test_a_migration_is_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status.collect(now=NOW).migration is None
    history = tmp_path / "old"
    history.write_text("".join(f"{user_id} 1001 1002\n" for user_id in range(1, 6)))
    with time_machine.travel(NOW - HOUR, tick=False):
        migrate.run(history, clock=timezone.now, quiet=True)
    merge_task_shard(task_of(1), now=NOW)
    merged = sum(task_of(user_id) == task_of(1) for user_id in range(1, 6))
    found = status.measure(now=NOW).migration
    assert found
    assert (found.phase, found.users, found.merged, found.left) == ("running", 5, merged, 5 - merged)
    assert Shown().of("feedsite_played_migration_users", state="left") == 5 - merged
    with time_machine.travel(NOW + 2 * HOUR, tick=False), pytest.raises(SystemExit):  # some were left behind
        call_command("played_status")
    assert f"Migration: running; {merged} users merged, {5 - merged} left" in capsys.readouterr().out


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
    assert shown.of("feedsite_played_node_users", node=str(node_of(NOW))) == 3
    assert sum(shown.of("feedsite_played_task_shard_users", task_shard=str(number)) for number in range(4)) == 3
    assert shown.of("feedsite_played_filters", age="0") == 20
    assert shown.of("feedsite_played_filters", age="1") == 0
    assert shown.of("feedsite_played_filter_bytes", age="0") == sum(one.size for one in store.store().stats().values())
    assert shown.of("feedsite_played_up", server="plays") == 1


@time_machine.travel(NOW, tick=False)
def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    call_command("played_status")
    assert "Filters\n  none" in capsys.readouterr().out
    play(*range(1, 21), at=NOW - HOUR, count=2)
    fail(NOW, monkeypatch, task_of(1))
    merge(NOW)
    play(1, 2, 3)
    with pytest.raises(SystemExit) as ended:
        call_command("played_status")
    assert ended.value.code == 1
    shown = capsys.readouterr().out
    assert "PROBLEM failed: 1 merge failed within two hours." in shown
    assert "Users waiting: 3 current, 0 merging, 0 left\n" in shown
    assert f"Merged within a day: 20 users, 40 plays; last merge: {NOW:%Y-%m}-21 10:40" in shown
    assert "the disk is gone" in shown
    assert f"{NOW:%Y-%m}           20" in shown


def test_merges_are_listed(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    play(*range(1, 21), at=NOW - HOUR)
    fail(NOW, monkeypatch, 0)
    merge(NOW)
    listed = admin_client.get("/admin/seen/mergerun/", {"result": "failed"})
    assert [run.error for run in listed.context["cl"].result_list] == ["the disk is gone"]
    assert admin_client.post(f"/admin/seen/mergerun/{MergeRun.objects.latest('pk').pk}/delete/").status_code == 403
