"""A site of version 0.1.0 goes over to the version of now while people read and write."""

import http.client
import json
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.embedded import wait_for
from runtime.management.commands.check_all import clean_environ
from tests.support.api import API
from tests.support.clusters import free_ports
from tests.support.versions import version, version_of_now
from tests.support.whole_sites import Running

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

RETRY_SECONDS = 30
"""Within which a client that is answered 503 is to come again."""


class Traffic:
    """Members that read and write until they are told to stop, each answer counted."""

    def __init__(self, port: int, tokens: list[str]) -> None:
        self.port = port
        self.answers = Counter[str]()
        self.wrong: list[str] = []
        """Requests that were answered otherwise than by 200, 201 or 503 with Retry-After, or not at all."""
        self.acknowledged: list[int] = []
        self.slowest = 0.0
        self.is_over = threading.Event()
        self.threads = [threading.Thread(target=self._act, args=(token, number)) for number, token in enumerate(tokens)]

    def __enter__(self) -> "Traffic":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.is_over.set()
        for thread in self.threads:
            thread.join()

    def _act(self, token: str, number: int) -> None:
        count = 0
        while not self.is_over.wait(0.05):
            count += 1
            self._ask("GET", "/login", token)
            self._ask("GET", f"{API}/timeline/home", token)
            if answer := self._ask("POST", f"{API}/items", token, {"content": {"text": f"words {count} of {number}"}}):
                self.acknowledged.append(int(answer["id"]))

    def _ask(self, method: str, path: str, token: str, body: Any = None) -> Any:
        began = time.monotonic()
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}
        try:
            client.request(method, path, None if body is None else json.dumps(body), headers)
            response = client.getresponse()
            said = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.wrong.append(f"{method} {path}: {error!r}")
            return None
        finally:
            client.close()
            self.slowest = max(self.slowest, time.monotonic() - began)
        self.answers[f"{method} {response.status}"] += 1
        if response.status == 503 and 0 < int(response.headers.get("Retry-After", 0)) <= RETRY_SECONDS:
            return None
        if response.status not in (200, 201):
            self.wrong.append(f"{method} {path}: {response.status} {said[:200]!r}")
            return None
        return json.loads(said) if response.status == 201 else None


def call(port: int, method: str, path: str, body: Any = None, token: str = "") -> Any:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Token {token}"} if token else {})
    client.request(method, path, None if body is None else json.dumps(body), headers)
    response = client.getresponse()
    said = response.read()
    client.close()
    assert response.status in (200, 201), (path, response.status, said)
    return json.loads(said)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return clean_environ(tmp_path / "var") | {
        "PORT": str(free_ports()[0]),
        "FEEDSITE_RATE_SCALE": "100000",
        "FEEDSITE_WEB_PROCESSES": "1",
        "FEEDSITE_WORKER_PROCESSES": "1",
        "DJANGO_SETTINGS_MODULE": "feedsite.settings",
    }


@pytest.fixture
def before(tmp_path: Path, environ: dict[str, str]) -> Iterator[Running]:
    old = version(tmp_path / "old")
    running = Running(old.command("up"), old.tree, environ)
    yield running
    running.end()
    print(running.printed[-5_000:])


def test_a_site_of_the_first_version_is_taken_over_while_it_is_in_use(
    before: Running, environ: dict[str, str], tmp_path: Path
) -> None:
    port, now = int(environ["PORT"]), version_of_now()
    assert before.says("These logins are kept", 400), before.printed
    logins = re.findall(r"demo login: (\S+)  password: (\S+)  \(reader", before.printed)[:3]
    tokens = [
        call(port, "POST", f"{API}/auth/token", {"username": name, "password": password})["token"]
        for name, password in logins
    ]
    after = None
    try:
        with Traffic(port, tokens) as traffic:
            assert wait_for(lambda: len(traffic.acknowledged) > 10, 60), traffic.wrong
            killed = Running(now.command("upgrade", "--no-backup"), now.tree, environ)
            assert killed.says("Applying items.", 300), killed.printed
            killed.process.kill()
            assert killed.end() == -signal.SIGKILL, killed.printed
            upgrade = Running(now.command("upgrade"), now.tree, environ)
            code = upgrade.process.wait(600)
            upgrade.end()
            assert code == 0, upgrade.printed
            assert "`manage.py up --take-over` begins beside it" in upgrade.printed
            assert "HOLDS UP" not in upgrade.printed
            assert list((tmp_path / "var" / "backups").glob("before-*.backup"))
            migrated = len(traffic.acknowledged)
            after = Running(now.command("up", "--take-over"), now.tree, environ)
            assert after.says("the site is at", 400), after.printed
            taken = len(traffic.acknowledged)
            assert before.process.wait(60) == 0, before.printed
            assert wait_for(lambda: len(traffic.acknowledged) > taken + 10, 60), traffic.wrong
        told = f"{dict(traffic.answers)}, slowest {traffic.slowest:.1f} s, {traffic.wrong[:20]}"
        print(told, after.printed[-3_000:])
        assert traffic.wrong == [], told
        assert traffic.slowest < 20, told
        assert taken > migrated, "it was written to while the new version began"
        # Every acknowledged post is there, for its writer and for a follower.
        found = {int(item["id"]) for token in tokens for item in posts_of_own(port, token)}
        assert set(traffic.acknowledged) <= found
    finally:
        if after is not None:
            code = after.end()
    assert code == 0, after.printed


def posts_of_own(port: int, token: str) -> Iterator[Any]:
    """All items of the token's user, page by page."""
    name = call(port, "GET", f"{API}/users/me", token=token)["username"]
    last = ""
    while True:
        page = call(port, "GET", f"{API}/users/{name}/items?limit=100{last}", token=token)
        yield from page["items"]
        if not page["has_more"]:
            return
        last = f"&last_id={page['last_id']}"
