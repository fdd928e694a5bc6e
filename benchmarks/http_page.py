"""The cost of a page over HTTP, against an authenticated DRF view that returns a constant.

granian serves the site with one worker; a client asks in turn over one kept connection with a token. Measured:
processor time (user + system) of granian's worker (CPU), by its own clock, of PostgreSQL, of Redis and of two Celery
workers that have nothing else to do; and the time that the client waits. A reader who follows big-Vs is raised by the
first page, and their inbox deepened, before measuring begins. The constant views use the same
authentication and middleware: one is plain DRF, one also counts every call against a rate, as the site's views do.
Apps ask for the same homes at Mastodon's address, by the tokens of apps.
"""

import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from statistics import mean, median
from typing import Any

from django.conf import settings

from accounts.actions import issue_token
from accounts.models import User
from benchmarks.app_tokens import app_tokens
from benchmarks.community import Community
from benchmarks.ground import stop
from benchmarks.measure import Report, family_time, servers_time
from benchmarks.publish_to_inbox import workers
from runtime.embedded import die_with_parent, wait_for

TARGET = 2.5
APPS_TARGET = 1.25
PAGE = "/api/v1/timeline/home"
APPS_PAGE = "/api/v1/timelines/home"
PLAIN = "plain constant"
COUNTED = "counted constant"


def run(community: Community) -> Report:
    """Run the benchmark, and return its report."""
    size = community.size
    report = Report(
        "http_page",
        __doc__.splitlines()[0],
        [
            "request",
            "CPU ms",
            "CPU of all, ms",
            "PostgreSQL",
            "Redis",
            "workers",
            "waited ms",
            "CPU over plain",
            "CPU over counted",
            "CPU of all over counted",
        ],
        f"{size.http_rounds} blocks of {size.http_requests} requests; ms a request, of processors means, else medians",
    )
    kinds = {f"home, {count} followees": readers[0] for count, readers in community.readers.items()}
    kinds |= {f"home, {count} big-Vs followed": readers[0] for count, readers in community.hybrids.items()}
    users = {name: User.objects.get(pk=reader) for name, reader in kinds.items()}
    tokens = {name: issue_token(user=user) for name, user in users.items()}
    some = next(iter(tokens.values()))
    requests = {PLAIN: ("/bench/constant", some), COUNTED: ("/bench/counted", some)}
    requests |= {name: (PAGE, token) for name, token in tokens.items()}
    app_named = zip(users, app_tokens(users.values()), strict=True)
    requests |= {for_apps(name): (APPS_PAGE, f"Bearer {token}") for name, token in app_named}
    spent: dict[str, list[tuple[float, ...]]] = {name: [] for name in requests}
    waited: dict[str, list[float]] = {name: [] for name in requests}
    with workers() as worker, served() as port:
        client = Client(port)

        def clocks() -> tuple[float, ...]:
            return client.processor_time(), *servers_time(), family_time(worker)

        for number in range(1 + size.http_rounds):
            names = list(requests)
            first = number % len(names)
            for name in names[first:] + names[:first]:
                before = clocks()
                times = [client.ask(*requests[name]) for _ in range(size.http_requests)]
                after = clocks()
                if number:
                    each = tuple((end - begin) / size.http_requests for begin, end in zip(before, after, strict=True))
                    spent[name].append(each)
                    waited[name] += times
    # The kernel counts in hundredths of a second, so a block alone says little of a server.
    split = {name: [mean(parts) for parts in zip(*blocks, strict=True)] for name, blocks in spent.items()}
    web = {name: median(parts[0] for parts in blocks) for name, blocks in spent.items()}
    for name, parts in split.items():
        over = (web[name] / web[PLAIN], web[name] / web[COUNTED], sum(parts) / sum(split[COUNTED]))
        own, *others = parts
        figures = [seconds * 1000 for seconds in (own, sum(parts), *others, median(waited[name]))]
        report.rows.append([name, *(round(figure, 3) for figure in (*figures, *over))])
    for name in kinds:
        report.ratio(f"{name} / plain constant (CPU)", web[name] / web[PLAIN], at_most=TARGET)
        report.ratio(f"{name} / counted constant (CPU)", web[name] / web[COUNTED])
        report.ratio(f"{name} / counted constant (CPU of all)", sum(split[name]) / sum(split[COUNTED]))
        report.ratio(f"{for_apps(name)} / the own API's (CPU)", web[for_apps(name)] / web[name], at_most=APPS_TARGET)
    return report


def for_apps(name: str) -> str:
    """The name of a page as apps ask for it."""
    return f"{name}, for apps"


class Client:
    """One kept connection."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)

    def ask(self, path: str, token: str, body: dict[str, Any] | None = None) -> float:
        """The seconds that one request takes: a GET, or a POST of what is given. A token may name its kind."""
        named = token if " " in token else f"Token {token}"
        begin = time.perf_counter()
        self._answer(path, {"Authorization": named}, body)
        return time.perf_counter() - begin

    def processor_time(self) -> float:
        """The seconds of processor time that the server has used."""
        return float(self._answer("/bench/processor", {}))

    def _answer(self, path: str, headers: dict[str, str], body: dict[str, Any] | None = None) -> bytes:
        headers |= {"Host": "localhost"}
        if body is None:
            self.connection.request("GET", path, headers=headers)
        else:
            headers |= {"Content-Type": "application/json"}
            self.connection.request("POST", path, json.dumps(body), headers)
        response = self.connection.getresponse()
        answer = response.read()
        assert response.status in (200, 201, 204), (path, response.status, answer[:200])
        return answer


@contextmanager
def served() -> Iterator[int]:
    """granian with one worker; the port it listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "granian", "--interface", "wsgi", "--no-ws", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--workers", "1", "--blocking-threads", "1", "--log-level", "warning"]
    server = subprocess.Popen(
        [*command, "benchmarks.served:application"],
        cwd=settings.BASE_DIR,
        preexec_fn=die_with_parent(signal.SIGTERM),
    )
    try:
        assert wait_for(lambda: answers(port), 30), "granian does not answer"
        yield port
    finally:
        stop(server, 10)


def answers(port: int) -> bool:
    """Whether the server on the port answers."""
    with suppress(OSError, http.client.HTTPException):
        return Client(port).processor_time() > 0
    return False
