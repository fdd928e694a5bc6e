"""/healthz and /readyz, with the real servers in trouble."""

import time

import pytest
from django.test import Client

from tests.patience import SHORT
from tests.servers import Valkey, dead, frozen

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever answers late, on a busy machine, answers."""
    monkeypatch.setattr("feedsite.health.DEADLINE", 60)


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
