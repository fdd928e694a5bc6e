"""Readers who also write, one call of a hundred, against a running site; prints the table of docs/operations.md.

    FEEDSITE_RATE_SCALE=1000 python3 manage.py up
    locust -f benchmarks/locustfile.py --headless --only-summary -u 55 -r 20 -t 90 \\
        --host http://127.0.0.1:8000 --page docs/operations.md

All users here come from one address, hence the rate. Each signs up at first and follows whom the site suggests by its
posts and some of the others. When the last one has, all users begin, and so do the figures. A pause of 0.5 to 1.5 s
lies between two calls of one of them. They scroll their home, look at items, replies and profiles, search, read what
concerns them, the recommended and the live feed, and ask what they have played.

Whenever a hundred reads were answered the next call of somebody is a write: the seeds' ratio. Any answer but the
expected one is an error; errors, or another ratio, make the exit code 1. `--page` puts what was found into a Markdown
page, in place of what stood there of an earlier run.
"""

import os
import random
import secrets
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gevent.event import Event
from locust import HttpUser, between, events, task
from locust.clients import ResponseContextManager
from locust.env import Environment

API = "/api/v1"
PASSWORD = secrets.token_urlsafe(16)
READS = 100
"""To a write."""
TOLERANCE = 0.1
"""Share by which the counted ratio may differ; below ten writes more, for the last hundred may be unfinished."""
WORDS = ("harbor", "ferry", "market", "tram", "moon", "雨停了", "今天的云")
DEMO = ("harbor-news", "weather-desk", "mira", "tomas", "lin-wei")
"""Users of the demo community, which a site need not have."""
MARKS = "<!-- figures of the load -->", "<!-- end of the load -->"
KINDS = {
    "postgres": "PostgreSQL",
    "valkey": "Redis",
    "redis": "Redis",
    "granian": "web",
    "locust": "Locust",
    "celery": "workers",
}
"""A word of a process' command line, and whose processor time it is; the first one counts."""

chance = random.Random()  # noqa: S311 (no secret)
known: list[str] = []
"""Ids that all may look at; some are deleted by now."""
people: list[str] = []
counted = Counter[str]()
"""Reads and writes since all have begun."""
failures: list[str] = []
ready = Event()
begun: dict[str, Any] = {}


class Person(HttpUser):
    """A simulated user with an account of their own."""

    wait_time = between(0.5, 1.5)

    def on_start(self) -> None:
        """Sign up, and follow some of the others."""
        self.name = f"load-{secrets.token_hex(6)}"
        self.own: list[str] = []
        body = {"username": self.name, "password": PASSWORD}
        self.client.post(f"{API}/users", json=body).raise_for_status()
        token = self.client.post(f"{API}/auth/token", json=body).json()["token"]
        self.client.headers["Authorization"] = f"Token {token}"
        for other in (*chance.sample(people, min(len(people), 20)), *DEMO):
            with self.client.put(
                f"{API}/users/{other}/follow", name=f"{API}/users/:name/follow", catch_response=True
            ) as answer:
                if answer.status_code == 404 and other in DEMO:
                    answer.success()
        people.append(self.name)
        runner = self.environment.runner
        if runner and len(people) >= runner.target_user_count and not ready.is_set():
            runner.stats.reset_all()
            begun.update(at=time.time(), spent=processor_time(), load=os.getloadavg()[0])
            ready.set()
        ready.wait()

    @task
    def act(self) -> None:
        """Do one thing by chance: mostly read, one time of a hundred write."""
        is_writes_turn = counted["reads"] >= READS * (counted["writes"] + 1)
        kinds = WRITING if is_writes_turn else READING
        (kind,) = chance.choices(list(kinds), weights=list(kinds.values()))
        kind(self)

    # --- Calls -----------------------------------------------------------------------------------------------
    def read(self, path: str, name: str = "", *, gone: bool = False, body: dict[str, Any] | None = None) -> Any:
        """The answer as JSON; with `gone`, a 404 is a right answer too."""
        counted["reads"] += 1
        method = "GET" if body is None else "POST"
        with self.client.request(
            method, f"{API}{path}", name=f"{API}{name or path}", json=body, catch_response=True
        ) as answer:
            return expected(answer, 200, gone=gone)

    def write(
        self, method: str, path: str, name: str, *statuses: int, body: dict[str, Any] | None = None, gone: bool = False
    ) -> Any:
        """Send a write, and check its answer; `statuses` are the right ones."""
        counted["writes"] += 1
        with self.client.request(method, f"{API}{path}", name=f"{API}{name}", json=body, catch_response=True) as answer:
            return expected(answer, *statuses, gone=gone)

    # --- Reading ---------------------------------------------------------------------------------------------
    def scroll(self) -> None:
        """Read up to three pages of home."""
        page = self.read("/timeline/home")
        known.extend(item["id"] for item in page.get("items", [])[:3])
        del known[:-500]
        for _ in range(2):
            if not page.get("has_more"):
                break
            self.wait()
            page = self.read(f"/timeline/home?last_id={page['last_id']}", "/timeline/home?last_id=:id")

    def count_news(self) -> None:
        """Ask how many items are new."""
        if known:
            self.read(f"/timeline/home/new?since_id={known[-1]}", "/timeline/home/new")

    def look(self) -> None:
        """Open an item and its replies."""
        if known:
            item = chance.choice(known)
            self.read(f"/items/{item}", "/items/:id", gone=True)
            self.wait()
            self.read(f"/items/{item}/replies", "/items/:id/replies", gone=True)

    def visit(self) -> None:
        """Open a user and their items."""
        other = chance.choice(people)
        self.read(f"/users/{other}", "/users/:name")
        self.wait()
        self.read(f"/users/{other}/items", "/users/:name/items")

    def search(self) -> None:
        """Search for a word."""
        self.read(f"/search?q={chance.choice(WORDS)}", "/search")

    def notifications(self) -> None:
        """Read the notifications."""
        self.read("/notifications")

    def discover(self) -> None:
        """Read two pages of the recommended feed."""
        for action in ("refresh", "load_more"):
            self.read("/discover/feed", f"/discover/feed {action}", body={"action": action})
            self.wait()

    def watch(self) -> None:
        """Read up to two pages of live sessions."""
        page = self.read("/live/feed")
        if page.get("has_more"):
            self.wait()
            after = f"session_id={page['session_id']}&last_id={page['last_id']}"
            self.read(f"/live/feed?{after}", "/live/feed?last_id=:id")

    def filter_played(self) -> None:
        """Ask which of 200 ids were not seen, and check the answer."""
        ids = [str(chance.randrange(1, 2**50)) for _ in range(200)]
        answer = self.read("/seen/filter", body={"ids": ids})
        if answer and not set(answer["unseen"]) <= set(ids):
            failures.append("/seen/filter answered what it was not asked for")

    # --- Writing ---------------------------------------------------------------------------------------------
    def publish(self) -> None:
        """Publish a post."""
        words = " ".join(chance.choices(WORDS, k=12))
        body = {"content": {"text": f"{words} {secrets.token_hex(4)} #load"}}
        self._published(self.write("POST", "/items", "/items", 201, body=body))

    def answer(self) -> None:
        """Reply to a post of one's own."""
        if not self.own:
            self.publish()
            return
        body = {"content": {"text": f"and {secrets.token_hex(4)}"}, "reply_to": self.own[-1]}
        self.write("POST", "/items", "/items", 201, body=body)

    def like(self) -> None:
        """Like an item that was seen."""
        if not known:
            self.publish()
            return
        self.write("PUT", f"/items/{chance.choice(known)}/like", "/items/:id/like", 204, gone=True)

    def repost(self) -> None:
        """Repost a post of one's own."""
        if not self.own:
            self.publish()
            return
        self.write("POST", f"/items/{chance.choice(self.own)}/repost", "/items/:id/repost", 200, 201)

    def delete(self) -> None:
        """Delete a post of one's own."""
        if len(self.own) < 2:
            self.publish()
            return
        self.write("DELETE", f"/items/{self.own.pop(0)}", "/items/:id", 204)

    def _published(self, item: Any) -> None:
        if item:
            self.own.append(item["id"])
            known.append(item["id"])


READING: dict[Callable[[Person], None], int] = {
    Person.scroll: 10,
    Person.count_news: 5,
    Person.look: 5,
    Person.visit: 3,
    Person.notifications: 3,
    Person.search: 2,
    Person.discover: 2,
    Person.watch: 2,
    Person.filter_played: 2,
}
"""The acts of people who read, each with its share of 34; a scroll is up to three calls."""
WRITING: dict[Callable[[Person], None], int] = {
    Person.publish: 8,
    Person.like: 6,
    Person.answer: 3,
    Person.repost: 1,
    Person.delete: 1,
}


def expected(answer: ResponseContextManager, *statuses: int, gone: bool) -> Any:
    """The body of an answer that is as it should be; nothing of another, which is an error."""
    if gone and answer.status_code == 404:
        answer.success()
        return {}
    if answer.status_code not in statuses:
        answer.failure(f"{answer.status_code} instead of {statuses}: {(answer.text or '')[:200]}")
        return {}
    answer.success()
    return answer.json() if answer.content else {}


# --- The outcome -----------------------------------------------------------------------------------------
def processor_time() -> Counter[str]:
    """Processor seconds so far on this machine, by `KINDS`, and of everything."""
    tick = os.sysconf("SC_CLK_TCK")
    spent = Counter[str]()
    busy = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    spent["all"] = (sum(map(int, busy)) - int(busy[3]) - int(busy[4])) / tick  # type: ignore[assignment]
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_text() if entry.name.isdigit() else ""
            fields = (entry / "stat").read_text().rpartition(")")[2].split() if line else []
        except OSError:
            continue
        kind = next((kind for word, kind in KINDS.items() if word in line), None)
        if kind and fields:
            spent[kind] += sum(map(int, fields[11:13])) / tick  # type: ignore[assignment]
    return spent


def table(environment: Environment, seconds: float) -> str:
    """Calls of every route, as Markdown."""
    lines = [
        "| call | calls | calls/s | p50, ms | p95 | p99 | errors |",
        "| --- | --: | --: | --: | --: | --: | --: |",
    ]
    called = (one for one in environment.stats.entries.values() if one.num_requests)
    entries = sorted(called, key=lambda one: (-one.num_requests, one.name))
    for one in (*entries, environment.stats.total):
        name = f"{one.method} {one.name.removeprefix(API)}" if one.method else "all"
        times = " | ".join(f"{one.get_response_time_percentile(share):,.0f}" for share in (0.5, 0.95, 0.99))
        calls = f"{one.num_requests:,} | {one.num_requests / seconds:.1f}"
        lines.append(f"| {name} | {calls} | {times} | {one.num_failures} |")
    return "\n".join(lines)


@events.init_command_line_parser.add_listener
def _options(parser: Any) -> None:
    parser.add_argument("--page", metavar="FILE", help="Renew the figures of the load in this Markdown page")


@events.quitting.add_listener
def _say(environment: Environment, **kwargs: object) -> None:
    if not begun:
        failures.append("not everybody had signed up when the time was over")
    else:
        text = summary(environment, time.time() - begun["at"])
        print(text)
        if environment.parsed_options and environment.parsed_options.page:
            page = Path(environment.parsed_options.page)
            before, rest = page.read_text().split(MARKS[0])
            page.write_text(f"{before}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{rest.split(MARKS[1])[1]}")
    if abs(counted["reads"] - READS * counted["writes"]) > READS * max(1.5, TOLERANCE * counted["writes"]):
        failures.append(f"{counted['reads']} reads to {counted['writes']} writes instead of {READS} to one")
    if environment.stats.total.num_failures:
        failures.append(f"{environment.stats.total.num_failures} calls were answered otherwise than expected")
    if failures:
        print(f"Failed: {'; '.join(failures)}.")
        environment.process_exit_code = 1


def summary(environment: Environment, seconds: float) -> str:
    """All that is told of a run."""
    spent = processor_time()
    spent.subtract(begun["spent"])
    busy = ", ".join(f"{kind} {value / seconds:.2f}" for kind, value in spent.most_common() if value / seconds >= 0.005)
    ratio = counted["reads"] / max(counted["writes"], 1)
    about = (
        f"{len(people)} people for {seconds:.0f} s at {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC: "
        f"{counted['reads']:,} reads and {counted['writes']:,} writes, {ratio:.1f} to 1, "
        f"{environment.stats.total.num_failures} errors. Cores busy, of {os.cpu_count()}: {busy}; load before "
        f"{begun['load']:.1f}, now {os.getloadavg()[0]:.1f}."
    )
    return f"{about}\n\n{table(environment, seconds)}"
