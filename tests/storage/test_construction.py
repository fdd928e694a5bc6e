import pytest
import redis

from runtime.embedded import wait_for
from storage import construction
from storage.connections import feeds_for_tasks, pipelined
from storage.construction import BuiltWindow, WindowSnapshot
from storage.window import INFINITY, WindowEntry, deliver
from tests.support.servers import Valkey, dead


class Some(BuiltWindow):
    __slots__ = ()

    def build_later(self, token: str) -> bool:
        raise NotImplementedError


WINDOW = Some(1, "inbox:1")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    builds: list[tuple[int, str]] = []
    monkeypatch.setattr(Some, "build_later", lambda self, token: builds.append((self.owner, token)) is None)
    return builds


def test_one_construction_is_asked_for_and_filled(feeds: redis.Redis, asked: list[tuple[int, str]]) -> None:
    assert construction.begin(WINDOW, 5)
    assert not construction.begin(WINDOW, 5), "it is under way"
    ((user_id, token),) = asked
    assert user_id == 1
    assert construction.is_under_way(WINDOW, token)
    assert not construction.is_under_way(WINDOW, "another")
    deliver(feeds, WindowEntry(400, 7), [WINDOW.key], [10])
    snapshot = WindowSnapshot(5, 50, [WindowEntry(item_id, 7) for item_id in (300, 200, 100)], cap=3, pushes=9)
    assert not construction.finish(WINDOW, "another", snapshot)
    assert construction.finish(WINDOW, token, snapshot)
    assert not construction.is_under_way(WINDOW, token)
    (reply,) = pipelined(feeds_for_tasks(), [WINDOW.read_command(INFINITY, 10)])
    read = WINDOW.slice(reply, 10, 5)
    assert (read.entries, read.floor, read.pushes) == ((400, 300, 200), 100, 9)
    assert not construction.begin(WINDOW, 5), "it is built"
    assert construction.begin(WINDOW, 6)


def test_without_redis_no_worker_is_asked(feeds_server: Valkey, asked: list[tuple[int, str]]) -> None:
    with dead(feeds_server):
        assert not construction.begin(WINDOW, 5)
    assert asked == []
    assert wait_for(lambda: construction.begin(WINDOW, 5), 30)
