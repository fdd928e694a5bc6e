import http.client
import json
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from runtime.embedded import wait_for
from runtime.management.commands.check_all import clean_environ
from tests.support.api import API
from tests.support.clusters import free_ports
from tests.support.whole_sites import Running, Site

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

RETRY_SECONDS = 30
"""How soon a client must retry after a 503."""


class Traffic:
    def __init__(self, port: int, tokens: list[str]) -> None:
        self.port = port
        self.answers = Counter[str]()
        self.wrong: list[str] = []
        """Neither 200, 201, nor 503 with Retry-After."""
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
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path / "var", free_ports()[0], {"FEEDSITE_RATE_SCALE": "100000"}, "--demo")
    yield site
    site.end()
    print(site.printed[-5_000:])


def upgrade(site: Site, *arguments: str) -> Running:
    command = [sys.executable, "manage.py", "upgrade", *arguments]
    return Running(command, settings.BASE_DIR, clean_environ(site.folder))


def test_a_site_is_upgraded_while_it_is_in_use(site: Site) -> None:
    """A killed upgrade starts again. No request or acknowledged post is lost."""
    site.wait_until_up()
    port = site.port
    logins = re.findall(r"demo login: (\S+)  password: (\S+)  \(reader", site.printed)[:3]
    tokens = [
        call(port, "POST", f"{API}/auth/token", {"username": name, "password": password})["token"]
        for name, password in logins
    ]
    assert len(tokens) == 3, site.printed
    with Traffic(port, tokens) as traffic:
        assert wait_for(lambda: len(traffic.acknowledged) > 10, 60), traffic.wrong
        killed = upgrade(site, "--no-backup")
        assert killed.says("migrate:", 300), killed.printed
        killed.process.kill()
        assert killed.end() == -signal.SIGKILL, killed.printed
        before = len(traffic.acknowledged)
        again = upgrade(site)
        code = again.process.wait(600)
        again.end()
        assert code == 0, again.printed
        after = len(traffic.acknowledged)
        assert wait_for(lambda: len(traffic.acknowledged) > after + 10, 60), traffic.wrong
    told = f"{dict(traffic.answers)}, slowest {traffic.slowest:.1f} s, {traffic.wrong[:20]}"
    print(told)
    assert re.findall(r"  (\w+) restarted in", again.printed) == ["worker", "web", "stream"]
    assert list((site.folder / "backups").glob("before-*.backup"))
    assert traffic.wrong == [], told
    assert traffic.slowest < 20, told
    assert after > before, "it was written to meanwhile"
    found = {int(item["id"]) for token in tokens for item in posts_of_own(port, token)}
    assert set(traffic.acknowledged) <= found
    assert site.end() == 0, site.printed


def posts_of_own(port: int, token: str) -> Iterator[Any]:
    name = call(port, "GET", f"{API}/users/me", token=token)["username"]
    last = ""
    while True:
        page = call(port, "GET", f"{API}/users/{name}/items?limit=100{last}", token=token)
        yield from page["items"]
        if not page["has_more"]:
            return
        last = f"&last_id={page['last_id']}"
