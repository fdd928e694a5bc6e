"""How much memory and processor time does an idle site take?

All processes of `up --demo` after a pause, and after visits to every page. A page of memory shared by n processes
counts one n-th for each (PSS).
"""

import http.client
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from django.conf import settings

from benchmarks import processes
from benchmarks.measure import BenchmarkReport, Size, free_ports, stop
from runtime.embedded import die_with_parent, wait_for

PSS_MB = 480
VISITED_MB = 560
CPU_MS = 15
PAGES = ("/", "/discover", "/live", "/notifications", "/search?q=the", "/@wanda", "/settings", "/bookmarks", "/lists")
ROUNDS = 20


class Alone:
    """The demo community."""

    def __init__(self, size: Size, folder: Path | None = None) -> None:
        self.size = size

    def build(self) -> None:
        """Do nothing: `up` builds it."""

    def described(self) -> str:
        """The data set in a line."""
        return "The demo community, by `up` with its own servers"


def run(alone: Alone) -> BenchmarkReport:
    seconds = alone.size.idle_seconds
    report = BenchmarkReport(
        "idle",
        __doc__.splitlines()[0],
        ["processes", "number", "PSS MB", "CPU ms/s", "PSS MB after visits"],
        f"processor time over {seconds} s without a request; {ROUNDS} rounds of {len(PAGES)} pages as visits",
    )
    folder = settings.DATA_DIR / "idle"
    with up(folder) as port:
        time.sleep(alone.size.idle_pause)
        before, begin = processes.usage(processes.of_site(folder)), time.monotonic()
        time.sleep(seconds)
        passed = time.monotonic() - begin
        after = processes.usage(processes.of_site(folder))
        visit(folder, port)
        time.sleep(alone.size.idle_pause)
        visited = processes.usage(processes.of_site(folder))
    nothing = processes.ProcessUsage(0, 0, 0.0)
    for kind, found in after.items():
        spent = (found.seconds - before.get(kind, nothing).seconds) / passed * 1000
        report.rows.append([kind, found.processes, found.pss / 2**20, spent, visited.get(kind, nothing).pss / 2**20])
    totals = [sum(float(row[place]) for row in report.rows) for place in range(1, 5)]
    report.rows.append(["all", int(totals[0]), *totals[1:]])
    report.rows = [[kind, number, *(round(float(cell), 1) for cell in cells)] for kind, number, *cells in report.rows]
    report.ratio("MB of memory (PSS)", totals[1], at_most=PSS_MB)
    report.ratio("ms of processor time a second", totals[2], at_most=CPU_MS)
    report.ratio("MB after visits", totals[3], at_most=VISITED_MB)
    return report


@contextmanager
def up(folder: Path) -> Iterator[int]:
    """Run `up --demo` in the folder. Yields the site's port."""
    (port,) = free_ports(1)
    own = {name: value for name, value in os.environ.items() if not name.startswith(("FEEDSITE_", "PROMETHEUS_"))}
    kept = {name: os.environ[name] for name in ("FEEDSITE_VENV",) if name in os.environ}
    environ = own | kept | {"FEEDSITE_DATA_DIR": str(folder), "PORT": str(port), "FEEDSITE_ENV_FILE": os.devnull}
    folder.mkdir()
    with (folder / "up.log").open("wb") as log:
        site = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--demo"],
            cwd=settings.BASE_DIR,
            env=environ,
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
    try:
        text = (folder / "up.log").read_text
        assert wait_for(lambda: "the site is at" in text() or site.poll() is not None, 300), text()
        assert site.poll() is None, text()
        yield port
    finally:
        stop(site, 60)


def visit(folder: Path, port: int) -> None:
    """Log in, and request every page several times."""
    found = re.search(r"login: (\S+)  password: (\S+)", (folder / "demo.txt").read_text())
    assert found
    _, cookies, page = asked(port, "GET", "/login", {})
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert token
    body = urlencode({"csrfmiddlewaretoken": token[1], "username": found[1], "password": found[2]})
    status, cookies, _ = asked(port, "POST", "/login", cookies, body)
    assert status == 302, status
    for _ in range(ROUNDS):
        for path in PAGES:
            status, _, _ = asked(port, "GET", path, cookies)
            assert status == 200, (path, status)


def asked(
    port: int, method: str, path: str, cookies: dict[str, str], body: str | None = None
) -> tuple[int, dict[str, str], str]:
    """Send a request. Returns status, cookies and page.

    Each call has its own connection, so that all processes take part.
    """
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Host": "localhost", "Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
    if body is not None:
        headers |= {"Content-Type": "application/x-www-form-urlencoded"}
    client.request(method, path, body, headers)
    response = client.getresponse()
    for each in response.headers.get_all("Set-Cookie") or []:
        name, _, value = each.partition(";")[0].partition("=")
        cookies = cookies | {name: value}
    text = response.read().decode(errors="replace")
    client.close()
    return response.status, cookies, text
