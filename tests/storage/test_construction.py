from typing import ClassVar

import pytest
import redis

from runtime.embedded import wait_for
from storage import construction
from storage.connections import feeds_for_tasks, pipelined
from storage.construction import BuiltWindow, Snapshot
from storage.window import INFINITY, Entry, deliver
from tests.support.servers import Valkey, dead


class Some(BuiltWindow):
    builder: ClassVar[str] = "some.task"
    __slots__ = ()


WINDOW = Some(1, "inbox:1")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, str]]:
    tasks: list[tuple[str, int, str]] = []
    monkeypatch.setattr(construction, "enqueue", lambda *task: tasks.append(task) is None)
    return tasks


def test_one_construction_is_asked_for_and_filled(feeds: redis.Redis, asked: list[tuple[str, int, str]]) -> None:
    assert construction.begin(WINDOW, 5)
    assert not construction.begin(WINDOW, 5), "it is under way"
    ((task, user_id, token),) = asked
    assert (task, user_id) == ("some.task", 1)
    assert construction.is_under_way(WINDOW, token)
    assert not construction.is_under_way(WINDOW, "another")
    deliver(feeds, Entry(400, 7), [WINDOW.key], [10])
    snapshot = Snapshot(5, 50, [Entry(item_id, 7) for item_id in (300, 200, 100)], cap=3, pushes=9)
    assert not construction.finish(WINDOW, "another", snapshot)
    assert construction.finish(WINDOW, token, snapshot)
    assert not construction.is_under_way(WINDOW, token)
    (reply,) = pipelined(feeds_for_tasks(), [WINDOW.reading(INFINITY, 10)])
    read = WINDOW.slice(reply, 10, 5)
    assert (read.entries, read.floor, read.pushes) == ((400, 300, 200), 100, 9)
    assert not construction.begin(WINDOW, 5), "it is built"
    assert construction.begin(WINDOW, 6)


def test_without_redis_no_worker_is_asked(feeds_server: Valkey, asked: list[tuple[str, int, str]]) -> None:
    with dead(feeds_server):
        assert not construction.begin(WINDOW, 5)
    assert asked == []
    assert wait_for(lambda: construction.begin(WINDOW, 5), 30)
