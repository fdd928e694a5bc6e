import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.test import Client

from runtime import metrics
from tests.support.patience import SHORT
from tests.support.servers import Valkey, dead, frozen
from web import health
from web.static_files import StaticStorage

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A late answer on a busy machine counts as one."""
    monkeypatch.setattr("web.health.DEADLINE_SECONDS", 60)
    monkeypatch.setattr("web.health.SHARED_SECONDS", 0)
    monkeypatch.setattr("web.health.latest", health.LatestStates())


def readiness(client: Client) -> tuple[int, dict[str, str], float]:
    began = time.monotonic()
    response = client.get("/readyz")
    return response.status_code, response.json()["servers"], time.monotonic() - began


def test_healthz_answers(client: Client) -> None:
    response = client.get("/healthz")
    assert (response.status_code, response.content) == (200, b"ok\n")
    assert client.post("/healthz").status_code == 405


def test_ready_when_all_servers_answer(client: Client) -> None:
    status, servers, _ = readiness(client)
    assert status == 200
    assert servers == {"postgresql": "ok", "feeds": "ok", "plays": "ok", "broker": "ok"}


@pytest.mark.slow
@pytest.mark.parametrize("trouble", [frozen, dead])
@pytest.mark.parametrize("name", ["feeds", "plays", "broker"])
def test_not_ready_without_a_redis(client: Client, name: str, trouble, request: pytest.FixtureRequest) -> None:
    server: Valkey = request.getfixturevalue(f"{name}_server")
    with trouble(server):
        status, servers, seconds = readiness(client)
    assert status == 503
    assert servers.pop(name).startswith("does not answer")
    assert set(servers.values()) == {"ok"}
    assert seconds < SHORT
    assert readiness(client)[0] == 200


def test_not_ready_without_static_files(client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(health, "staticfiles_storage", StaticStorage(tmp_path))
    status, servers, _ = readiness(client)
    assert (status, servers.pop("static files")) == (503, "were not collected")
    assert set(servers.values()) == {"ok"}


# --- Callers ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:8000", "10.2.3.4:8000", "web.internal"])
@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_are_answered_by_address(client: Client, settings, path: str, host: str) -> None:
    settings.ALLOWED_HOSTS = ["feeds.example.org"]
    settings.SECURE_SSL_REDIRECT = True
    assert client.get(path, HTTP_HOST=host).status_code == 200
    assert client.get("/", HTTP_HOST=host).status_code == 400


@pytest.mark.slow
def test_probes_are_counted_by_their_names(client: Client) -> None:
    labels = {"route": "healthz", "method": "GET", "status": "200"}
    name = "feedsite_http_seconds_count"
    before = metrics.registry.get_sample_value(name, labels) or 0
    client.get("/healthz")
    assert metrics.registry.get_sample_value(name, labels) == before + 1


# --- How often the servers are asked ---------------------------------------------------------------------
@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    real = health.server_states

    def counting() -> dict[str, str]:
        found.append(threading.get_ident())
        return real()

    monkeypatch.setattr(health, "server_states", counting)
    monkeypatch.setattr(health, "SHARED_SECONDS", 60)
    monkeypatch.setattr(health, "latest", health.LatestStates())
    return found


def test_many_who_ask_share_an_answer(client: Client, looks: list[int]) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.get("/readyz").status_code, range(40)))
    assert answers == [200] * 40
    assert len(looks) == 1


def test_a_look_that_takes_long_holds_one_thread(
    client: Client, looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "SHARED_SECONDS", 0)
    assert client.get("/readyz").status_code == 200
    began, end = threading.Event(), threading.Event()

    def slow() -> dict[str, str]:
        began.set()
        assert end.wait(60)
        return {"postgresql": "does not answer (in time)"}

    monkeypatch.setattr(health, "server_states", slow)
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(client.get, "/readyz")
        assert began.wait(60)
        assert client.get("/readyz").status_code == 200, "the answer of before"
        end.set()
        assert late.result().status_code == 503
