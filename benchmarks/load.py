"""How does the site behave at the machine's limit, and beyond it?

`up` runs on one processor, the generator on another. It mixes calls as people do, with one write in ten.

A closed loop finds the capacity: the most answered calls a second. Open loops then send random calls at shares of it.
Times count from when a call should have been sent. At the end PostgreSQL is checked for every acknowledged write, and
for those answered 503.
"""

import gc
import io
import json
import os
import random
import resource
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import NamedTuple

from django.conf import settings
from PIL import Image
from urllib3 import HTTPConnectionPool, HTTPResponse
from urllib3.exceptions import HTTPError

from accounts.models import User
from benchmarks import processes
from benchmarks.community import (
    FIRST_FOLLOWER,
    FOLLOW_PUBLISHER,
    ITEMS,
    USERS,
    by_session,
    by_token,
    emptied,
    loading,
)
from benchmarks.measure import BenchmarkReport, Size, free_ports, percentile, stop
from items.actions import publish
from items.models import ItemType
from media.actions import upload
from media.decoder import decoder
from runtime.embedded import die_with_parent, wait_for
from storage.connections import fetch

API = "/api/v1"
PICTURES = 20
ACTIVE_FANS = 1_000
"""Followers of the big-V who take pushes."""
FILES = 8_192
WAIT_SECONDS = 30.0
"""Longest wait for an answer."""
MOST = 2_000
"""Calls at a time, and connections."""
SHED = 503
LIKED = """
    SELECT count(*) FROM unnest(%s::bigint[], %s::bigint[]) AS said(user_id, item_id)
    JOIN items_like USING (user_id, item_id)
"""
FOLLOWED = """
    SELECT count(*) FROM unnest(%s::bigint[], %s::bigint[]) AS said(follower_id, followee_id)
    JOIN relations_follow USING (follower_id, followee_id)
"""
PUBLISHED = """
    SELECT count(*) FROM unnest(%s::bigint[], %s::text[]) AS said(sender_id, words)
    JOIN items_item i ON i.sender_id = said.sender_id AND i.status = 'published' AND i.content ->> 'text' = words
"""
FOLLOWS = """
    INSERT INTO relations_follow (follower_id, followee_id, created_at)
    SELECT DISTINCT follower, followee, now() FROM (
        SELECT follower, ceil(%(people)s * random() ^ 2)::bigint AS followee
        FROM generate_series(1, %(people)s) AS follower, generate_series(1, %(each)s)
    ) drawn WHERE follower <> followee
"""


# --- The people ----------------------------------------------------------------------------------------------
class Crowd:
    """The users of the load: people 1 to `size.load_people`, and a big-V."""

    def __init__(self, size: Size, folder: Path | None = None) -> None:
        self.size = size
        self.people = range(1, size.load_people + 1)
        self.big_v = size.load_people + 1
        self.tokens: dict[int, dict[str, str]] = {}
        self.sessions: dict[int, dict[str, str]] = {}
        self.items: list[int] = []
        self.files: list[str] = []

    def build(self) -> None:
        """Replace all data."""
        size = self.size
        emptied(find_people=False)
        with loading() as cursor:
            for first, count, level in ((1, size.load_people + 1, 3), (FIRST_FOLLOWER, size.load_fans, 1)):
                cursor.execute(USERS, {"first": first, "count": count, "level": level, "big_vs": 0})
            cursor.execute("UPDATE accounts_user SET is_big_v = true WHERE id = %s", [self.big_v])
            active = min(ACTIVE_FANS, size.load_fans)
            cursor.execute(
                "UPDATE accounts_user SET level = 3 WHERE id >= %s AND id < %s",
                [FIRST_FOLLOWER, FIRST_FOLLOWER + active],
            )
            cursor.execute(ITEMS, {"items": size.load_items, "senders": size.load_people})
            cursor.execute(FOLLOWS, {"people": size.load_people, "each": min(50, size.load_people // 2)})
            for first, count in ((1, size.load_people // 2), (FIRST_FOLLOWER, size.load_fans)):
                cursor.execute(FOLLOW_PUBLISHER, {"publisher": self.big_v, "first": first, "count": count})
        self.items = [item for (item,) in fetch("SELECT id FROM items_item WHERE reply_to_id IS NULL ORDER BY id")]
        for number, user in User.objects.in_bulk([*self.people, self.big_v]).items():
            self.tokens[number], self.sessions[number] = by_token(user), by_session(user)
        self._publish_pictures()

    def _publish_pictures(self) -> None:
        for user in User.objects.in_bulk(list(self.people[:PICTURES])).values():
            file = io.BytesIO()
            Image.effect_noise((640, 480), 60).save(file, "JPEG")
            row = upload(owner_id=user.pk, file=file, description="A picture of noise.")
            publish(sender=user, type=ItemType.IMAGE, content={"text": "A picture", "media": [str(row.pk)]})
            self.files.append(f"{row.name}.small.{row.small_ext}")
        decoder.stop()

    def described(self) -> str:
        """The data set in a line."""
        return (
            f"{self.size.load_people} people who follow up to 50 each other by chance and have written "
            f"{self.size.load_items:,} items, and a big-V with {self.size.load_fans:,} followers"
        )


class Ledger:
    """The writes sent, by answer."""

    def __init__(self) -> None:
        self.done: dict[str, list[tuple[int, int | str]]] = {"publish": [], "like": [], "follow": []}
        self.refused: dict[str, list[tuple[int, int | str]]] = {"publish": [], "like": [], "follow": []}
        self.unknown = 0
        """Writes with another answer or none, which may have happened."""
        self.published: dict[int, float] = {}
        """When each item was acknowledged."""

    def note(self, kind: str, user: int, what: int | str) -> Callable[["CallAnswer"], None]:
        """A function for the answer to a write, which notes it. `what` is the text, the item or the followee."""

        def told(answer: CallAnswer) -> None:
            if 200 <= answer.status < 300:
                self.done[kind].append((user, what))
                if kind == "publish":
                    self.published[int(json.loads(answer.body)["id"])] = time.monotonic()
            elif answer.status == SHED:
                self.refused[kind].append((user, what))
            else:
                self.unknown += 1

        return told

    def lost(self) -> int:
        """Acknowledged writes that PostgreSQL lacks."""
        return sum(len(pairs) - _found(kind, pairs) for kind, pairs in self.done.items())

    def carried_out(self) -> int:
        """Writes answered 503 that PostgreSQL has."""
        return sum(_found(kind, pairs) for kind, pairs in self.refused.items())


def _found(kind: str, pairs: list[tuple[int, int | str]]) -> int:
    statement = {"publish": PUBLISHED, "like": LIKED, "follow": FOLLOWED}[kind]
    ((count,),) = fetch(statement, [[user for user, _ in pairs], [what for _, what in pairs]])
    return int(count)


class Acts:
    """Draws random calls. Nobody likes an item or follows somebody twice."""

    def __init__(self, crowd: Crowd, ledger: Ledger, chance: random.Random) -> None:
        self.crowd, self.ledger, self.chance = crowd, ledger, chance
        known = "SELECT follower_id, followee_id FROM relations_follow WHERE follower_id < %s"
        self.used: set[tuple[str, int, int]] = {("follow", *pair) for pair in fetch(known, [FIRST_FOLLOWER])}
        self.kinds: dict[Callable[[], PlannedCall], int] = {
            lambda: self.get("home", "/timeline/home"): 28,
            lambda: PlannedCall("page", LoadRequest("GET", "/", crowd.sessions[self.someone()])): 10,
            lambda: self.get("deeper", f"/timeline/home?last_id={chance.choice(crowd.items)}"): 22,
            lambda: self.get("item", f"/items/{chance.choice(crowd.items)}"): 8,
            lambda: self.get("news", f"/timeline/home/new?since_id={crowd.items[-1]}"): 6,
            lambda: PlannedCall("picture", LoadRequest("GET", f"/media/{chance.choice(crowd.files)}")): 14,
            self.like: 5,
            lambda: self.published_by(self.someone(), "publish"): 3,
            self.follow: 2,
            lambda: self.get("stream", "/stream", opens=True): 2,
        }

    def __call__(self) -> "PlannedCall":
        """The next call."""
        (act,) = self.chance.choices(list(self.kinds), list(self.kinds.values()))
        return act()

    def someone(self) -> int:
        """A random person."""
        return self.chance.choice(self.crowd.people)

    def get(self, kind: str, path: str, *, opens: bool = False) -> "PlannedCall":
        """A GET by a random person."""
        return PlannedCall(kind, self.request("GET", path, self.someone()), opens=opens)

    def like(self) -> "PlannedCall":
        user, item = self.pair("like", lambda: self.chance.choice(self.crowd.items))
        return PlannedCall(
            "like", self.request("PUT", f"/items/{item}/like", user), self.ledger.note("like", user, item)
        )

    def follow(self) -> "PlannedCall":
        user, other = self.pair("follow", self.someone)
        request = self.request("PUT", f"/users/user{other}/follow", user)
        return PlannedCall("follow", request, self.ledger.note("follow", user, other))

    def published_by(self, user: int, kind: str) -> "PlannedCall":
        """A user's post, as a call of this kind."""
        words = f"load {secrets.token_hex(8)}"
        request = self.request("POST", "/items", user, json.dumps({"content": {"text": words}}).encode())
        return PlannedCall(kind, request, self.ledger.note("publish", user, words))

    def pair(self, kind: str, draw: Callable[[], int]) -> tuple[int, int]:
        """A random person and what `draw` gives. Each pair comes only once."""
        while True:
            drawn = (kind, self.someone(), draw())
            if drawn not in self.used and not (kind == "follow" and drawn[1] == drawn[2]):
                self.used.add(drawn)
                return drawn[1:]

    def request(self, method: str, path: str, user: int, body: bytes | None = None) -> "LoadRequest":
        """A call of the API by a user."""
        headers = self.crowd.tokens[user] | ({"Content-Type": "application/json"} if body else {})
        return LoadRequest(method, f"{API}{path}", headers, body)


# --- The generator -------------------------------------------------------------------------------------------
class LoadRequest(NamedTuple):
    """A request to send."""

    method: str
    path: str
    headers: dict[str, str] | None = None
    body: bytes | None = None


class CallAnswer(NamedTuple):
    """The answer to a call. `status` is 0 without an answer."""

    status: int
    retry_after: str = ""
    body: bytes = b""


class PlannedCall(NamedTuple):
    """A call to send. `told` gets the answer. `opens`: a stream, answered when it is open."""

    kind: str
    request: LoadRequest
    told: Callable[[CallAnswer], None] | None = None
    opens: bool = False


class Made(NamedTuple):
    """A call that was sent. `intended` is when it should have been sent (time.monotonic())."""

    kind: str
    intended: float
    ended: float
    answer: CallAnswer

    @property
    def seconds(self) -> float:
        """The time that the client waited."""
        return self.ended - self.intended


class Generator:
    """Sends calls in closed or open loops, and stores the results.

    In an open loop calls come at random times (Poisson). Their time counts from when they should have been sent, so a
    stalled site delays every call (no coordinated omission).
    """

    def __init__(self, port: int, stream_port: int, chance: random.Random) -> None:
        self.web, self.streams = (
            HTTPConnectionPool("127.0.0.1", each, maxsize=MOST, timeout=WAIT_SECONDS, retries=False)
            for each in (port, stream_port)
        )
        self.chance = chance
        self.threads = ThreadPoolExecutor(MOST)
        self.made: list[Made] = []

    def closed(self, calls: Callable[[], PlannedCall], *, clients: int, seconds: float) -> None:
        """Let clients send calls. Each one sends the next call when it has its answer."""
        until = time.monotonic() + seconds

        def client() -> None:
            while (now := time.monotonic()) < until:
                self.call(calls(), now)

        _ended([self.threads.submit(client) for _ in range(clients)])

    def open(self, calls: Callable[[], PlannedCall], *, rate: float, seconds: float) -> None:
        """Send `rate` random calls a second, until all are answered."""
        at = time.monotonic()
        until = at + seconds
        running = []
        while (at := at + self.chance.expovariate(rate)) < until:
            if (pause := at - time.monotonic()) > 0:
                time.sleep(pause)
            running.append(self.threads.submit(self.call, calls(), at))
        _ended(running)

    def call(self, call: PlannedCall, intended: float) -> None:
        """Send one call, and store the result."""
        answer = (self.opened if call.opens else self.asked)(call.request)
        self.made.append(Made(call.kind, intended, time.monotonic(), answer._replace(body=b"")))
        if call.told is not None:
            call.told(answer)

    def asked(self, request: LoadRequest) -> CallAnswer:
        """Send a request. Returns the answer."""
        try:
            found = self.web.request(request.method, request.path, request.body, headers=request.headers)
        except (HTTPError, OSError):
            return CallAnswer(0)
        return CallAnswer(found.status, found.headers.get("Retry-After", ""), found.data)

    def opened(self, request: LoadRequest) -> CallAnswer:
        """Open and close a stream. The status is 200 if it opened."""
        stream = self.listening(request)
        if stream is None:
            return CallAnswer(0)
        stream.close()
        return CallAnswer(200)

    def listening(self, request: LoadRequest) -> HTTPResponse | None:
        """Open a stream. None if it was refused."""
        with suppress(HTTPError, OSError):
            stream = self.streams.request(
                request.method, request.path, headers=request.headers, preload_content=False, decode_content=False
            )
            if stream.status == 200:
                return stream
            stream.close()
        return None

    def taken(self) -> list[Made]:
        """The results since the last call of this method."""
        made, self.made = self.made, []
        return made

    def close(self) -> None:
        """Close all connections and threads."""
        self.threads.shutdown()
        self.web.close()


def _ended(running: Iterable[Future[None]]) -> None:
    """Wait for all. Raises what one raised."""
    for one in wait(running).done:
        one.result()


def hear(stream: HTTPResponse, heard: Callable[[int, float], None]) -> None:
    """Call `heard` for each item, until the stream's end."""
    with suppress(HTTPError, OSError):
        for news in stream:
            if news.startswith(b'data: {"id":"'):
                heard(int(news.split(b'"')[3]), time.monotonic())


@contextmanager
def every(seconds: float, act: Callable[[], object]) -> Iterator[None]:
    """Call `act` repeatedly in a thread during the block. Raises what it raised."""
    ended = threading.Event()

    def repeated() -> None:
        while True:
            act()
            if ended.wait(seconds):
                return

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(repeated)
        try:
            yield
        finally:
            ended.set()
        running.result()


# --- The site ------------------------------------------------------------------------------------------------
class Ports(NamedTuple):
    """The site's ports."""

    web: int
    stream: int


@contextmanager
def site() -> Iterator[Ports]:
    """Run the site on the last processor. This process keeps the first one."""
    cores = sorted(os.sched_getaffinity(0))
    ports = Ports(*free_ports(2))
    # This site waits for Redis as real sites do, and has their memory.
    ours = ("FEEDSITE_REDIS_TIMEOUT_SECONDS", "FEEDSITE_FEEDS_MEMORY")
    environ = {name: value for name, value in os.environ.items() if name not in ours}
    environ |= {"PORT": str(ports.web), "FEEDSITE_STREAM_PORT": str(ports.stream)}
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(FILES, hard)), hard))
    log_path = settings.DATA_DIR / "up.log"
    os.sched_setaffinity(0, {cores[-1]})  # `up` counts its processors at the start
    try:
        with log_path.open("wb") as log:
            up = subprocess.Popen(
                [sys.executable, "manage.py", "up"],
                cwd=settings.BASE_DIR,
                env=environ,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent(signal.SIGTERM),
            )
        os.sched_setaffinity(0, {cores[0]})
        try:
            wait_for(lambda: b"the site is at" in log_path.read_bytes() or up.poll() is not None, 300)
            assert up.poll() is None, log_path.read_text()
            _pin({cores[-1]})
            yield ports
        finally:
            stop(up, 120)
    finally:
        os.sched_setaffinity(0, cores)
        _pin(set(cores))


def _pin(cores: set[int]) -> None:
    """Move all threads of the site to these processors."""
    for process in processes.of_site(settings.DATA_DIR):
        for thread in Path(f"/proc/{process.pid}/task").glob("*"):
            with suppress(OSError):  # it has ended
                os.sched_setaffinity(int(thread.name), cores)


def processor_time() -> Counter[str]:
    """Processor seconds, by kind of process."""
    found = processes.usage(processes.of_site(settings.DATA_DIR))
    return Counter({kind: use.seconds for kind, use in found.items()})


# --- The limit -----------------------------------------------------------------------------------------------
CLIENTS = (1, 4, 16)
"""Clients of the closed loops."""
LIGHT, HEAVY, BEYOND = 0.5, 0.8, 2.0
"""Shares of the capacity."""
OVERLOADS = 3
"""Number of overloads."""
RETURN_SECONDS = 10.0
"""Target: normal again within this time after an overload, in the median."""
OVERLOAD_TARGET, BIG_V_TARGET = 4.0, 1.3
BIG_V_EVERY = 2.0
BIG_V_ROUNDS = 8
"""Turns with and without the big-V, so that a temporary slowdown affects both."""
GENERATOR_LIMIT = 0.9
"""Above this share of its processor the generator is the limit."""
BIG_V, NO_BIG_V = "50 %, a big-V publishes", "50 %, it is silent"
COLUMNS = (
    "load",
    "calls/s",
    "answered/s",
    "503/s",
    "other",
    "p50 ms",
    "p99 ms",
    "p99 of 503",
    "generator",
)


@dataclass(slots=True)
class LoadResult:
    """The result of one load."""

    name: str
    calls: list[Made] = field(default_factory=list)
    spent: Counter[str] = field(default_factory=Counter)
    """Processor seconds by kind of process."""
    generator: float = 0.0
    """Processor seconds of the generator."""
    seconds: float = 0.0

    @property
    def answered(self) -> list[Made]:
        """Successful calls, without the big-V's."""
        return [made for made in self.calls if 200 <= made.answer.status < 300 and made.kind != "big-V"]

    @property
    def shed(self) -> list[Made]:
        """Calls answered 503."""
        return [made for made in self.calls if made.answer.status == SHED]

    @property
    def wrong(self) -> list[Made]:
        """Calls with another answer, or none."""
        return [made for made in self.calls if not 200 <= made.answer.status < 300 and made.answer.status != SHED]

    def p(self, share: float, calls: Iterable[Made] | None = None) -> float:
        """A percentile of the calls' times in ms. 0 without any."""
        times = [made.seconds for made in (self.answered if calls is None else calls)]
        return percentile(times, share) if times else 0.0

    def row(self) -> list[str | float]:
        """The row of the report."""
        rates = [round(len(calls) / self.seconds, 1) for calls in (self.calls, self.answered, self.shed)]
        times = [round(each, 1) for each in (self.p(0.5), self.p(0.99), self.p(0.99, self.shed))]
        used = round(self.generator / self.seconds, 2)
        return [self.name, *rates, len(self.wrong), *times, used]


def run(crowd: Crowd) -> BenchmarkReport:
    report = BenchmarkReport(
        "load",
        __doc__.splitlines()[0],
        COLUMNS,
        f"{crowd.size.load_seconds:g} s of each load; ms from when a call was to be sent; `generator` is its share of "
        "a processor",
    )
    gc.collect()
    gc.freeze()
    try:
        with site() as ports:
            loads = Loads(crowd, ports)
            loads.everything()
            loads.tell(report)
    finally:
        gc.unfreeze()
    return report


class Loads:
    """All loads of one site, one after another."""

    def __init__(self, crowd: Crowd, ports: Ports) -> None:
        self.crowd, self.ports, self.size = crowd, ports, crowd.size
        chance = random.Random(25)  # noqa: S311 (no secret)
        self.ledger = Ledger()
        self.acts = Acts(crowd, self.ledger, chance)
        self.generator = Generator(ports.web, ports.stream, chance)
        self.phases: dict[str, LoadResult] = {}
        self.capacity = 0.0
        self.returned: list[float] = []
        self.heard: list[tuple[int, float]] = []

    def everything(self) -> None:
        """Run all loads."""
        seconds = self.size.load_seconds
        self.warm_up()
        with opened_streams(self.generator, self.acts, lambda item, at: self.heard.append((item, at))):
            for clients in CLIENTS:
                name = f"closed, {clients} client{'s' if clients > 1 else ''}"
                with self.phase(name):
                    self.generator.closed(self.acts, clients=clients, seconds=seconds / 2)
                self.capacity = max(self.capacity, len(self.phases[name].answered) / self.phases[name].seconds)
            for share in (LIGHT, HEAVY):
                self.open(f"open, {share:.0%}", share, seconds)
            for _ in range(OVERLOADS):
                self.open(f"open, {BEYOND:.0%}", BEYOND, seconds)
                earlier = len(self.phases["afterwards"].calls) if "afterwards" in self.phases else 0
                afterwards = self.open("afterwards", LIGHT, max(RETURN_SECONDS, seconds))
                limit = self.phases[f"open, {HEAVY:.0%}"].p(0.99) / 1000
                self.returned.append(returned(afterwards.calls[earlier:], limit))
            self.with_big_v(seconds)
        self.generator.close()

    def warm_up(self) -> None:
        """Build windows, and serve every kind of page."""
        for user in self.crowd.people:
            self.generator.asked(self.acts.request("GET", "/timeline/home", user))
        self.generator.closed(self.acts, clients=4, seconds=self.size.load_seconds / 4)
        self.generator.taken()
        time.sleep(min(3.0, self.size.load_seconds))

    def open(self, name: str, share: float, seconds: float) -> LoadResult:
        """Send calls at a share of the capacity."""
        with self.phase(name) as phase:
            self.generator.open(self.acts, rate=share * self.capacity, seconds=seconds)
        return phase

    def with_big_v(self, seconds: float) -> None:
        """Send calls with and without a publishing big-V, in turns."""
        rate, pause = LIGHT * self.capacity, min(BIG_V_EVERY, self.size.load_seconds / 5)
        for _ in range(BIG_V_ROUNDS):
            with self.phase(NO_BIG_V):
                self.generator.open(self.acts, rate=rate, seconds=seconds / 2)
            with self.phase(BIG_V), every(pause, self.publish_as_big_v):
                self.generator.open(self.acts, rate=rate, seconds=seconds / 2)

    def publish_as_big_v(self) -> None:
        """Publish once."""
        self.generator.call(self.acts.published_by(self.crowd.big_v, "big-V"), time.monotonic())

    @contextmanager
    def phase(self, name: str) -> Iterator[LoadResult]:
        """Measure the block, and add it to the phase of this name."""
        phase = self.phases.setdefault(name, LoadResult(name))
        self.generator.taken()
        before, began, own = processor_time(), time.monotonic(), time.process_time()
        yield phase
        phase.seconds += time.monotonic() - began
        phase.generator += time.process_time() - own
        phase.spent += processor_time() - before
        phase.calls += self.generator.taken()

    def tell(self, report: BenchmarkReport) -> None:
        """Fill in the report."""
        report.rows = [phase.row() for phase in self.phases.values()]
        heavy, beyond = self.phases[f"open, {HEAVY:.0%}"], self.phases[f"open, {BEYOND:.0%}"]
        big_v, without = self.phases[BIG_V], self.phases[NO_BIG_V]
        calls = [made for phase in self.phases.values() for made in phase.calls]
        wrong = sum(len(phase.wrong) for phase in self.phases.values())
        unnamed = sum(made.answer.status == SHED and not made.answer.retry_after for made in calls)
        ratio = report.ratio
        overload = "p99 of what is answered at 200 % / at 80 %"
        ratio(overload, over(beyond.p(0.99), heavy.p(0.99)), at_most=OVERLOAD_TARGET)
        ratio("answered at 200 % / capacity", len(beyond.answered) / beyond.seconds / self.capacity, at_least=0.75)
        ratio("answers but 2xx and 503 / calls", wrong / len(calls), at_most=0)
        ratio("503 without Retry-After / calls", unnamed / len(calls), at_most=0)
        ratio("shed at 80 % / calls", len(heavy.shed) / len(heavy.calls))
        ratio(f"seconds until all is as before / {RETURN_SECONDS:g}", median(self.returned) / RETURN_SECONDS, at_most=1)
        ratio("acknowledged writes that are lost", self.ledger.lost(), at_most=0)
        ratio("writes that were answered 503 and done", self.ledger.carried_out(), at_most=0)
        beside = "p99 of others while a big-V publishes / without"
        ratio(beside, over(big_v.p(0.99), without.p(0.99)), at_most=BIG_V_TARGET)
        times = ", ".join(f"{seconds:.1f}" for seconds in self.returned)
        busy = ", ".join(f"{kind} {spent / beyond.seconds:.0%}" for kind, spent in beyond.spent.most_common(5))
        done = ", ".join(f"{len(pairs):,} {kind}" for kind, pairs in self.ledger.done.items())
        refused = sum(map(len, self.ledger.refused.values()))
        report.notes += [
            f"All was as before {times} s after each time beyond the capacity.",
            by_kind(heavy),
            f"The site's processor is busy for {beyond.spent.total() / beyond.seconds:.0%} ({beyond.name}): {busy}.",
            f"Writes looked for: {done} acknowledged, {refused:,} answered 503; {self.ledger.unknown:,} had another.",
            self.streams(),
        ]
        if any(phase.generator / phase.seconds > GENERATOR_LIMIT for phase in self.phases.values()):
            report.notes.append("**The generator was the limit** of a load above: its processor was busy.")

    def streams(self) -> str:
        """A sentence about the delay from an item's acknowledgement to its arrival."""
        published = self.ledger.published
        times = [max(0.0, at - published[item]) for item, at in self.heard if item in published]
        if not times:
            return "No stream heard of an item."
        told = f"{percentile(times, 0.5):.0f} / {percentile(times, 0.99):.0f} ms"
        return f"Open streams heard of an item {told} (p50 / p99) after it was acknowledged, {len(times):,} times."


@contextmanager
def opened_streams(
    generator: Generator, acts: Acts, heard: Callable[[int, float], None]
) -> Iterator[list[Future[None]]]:
    """Keep streams open during the block. `heard` gets each item and when it came. Yields a future of each stream."""
    crowd = acts.crowd
    requests = [acts.request("GET", "/stream", user) for user in crowd.people[: crowd.size.load_streams]]
    streams = [stream for stream in map(generator.listening, requests) if stream]
    hearing = [generator.threads.submit(hear, stream, heard) for stream in streams]
    try:
        yield hearing
    finally:
        for stream in streams:
            with suppress(RuntimeError, ValueError):  # it has ended
                stream.shutdown()
        _ended(hearing)


def by_kind(phase: LoadResult) -> str:
    """A sentence with p50 and p99 of every kind of call."""
    kinds = {kind: list(calls) for kind, calls in groupby(sorted(phase.answered, key=_kind), _kind)}
    said = (f"{kind} {phase.p(0.5, calls):.0f} / {phase.p(0.99, calls):.0f}" for kind, calls in kinds.items())
    return f"p50 / p99 in ms by kind ({phase.name}): {', '.join(said)}."


def _kind(made: Made) -> str:
    return made.kind


def returned(calls: list[Made], limit: float) -> float:
    """Seconds from the first call to the last second in which many calls were shed or too slow."""
    begin = min(made.intended for made in calls)
    slow = [made for made in calls if made.answer.status == SHED or made.seconds > limit]
    times = sorted(made.intended - begin for made in slow)
    # One call in a hundred may be slow at any time. A second counts from 5 % on.
    seconds = [list(some) for _, some in groupby(times, int)]
    passed = max(made.intended for made in calls) - begin
    return max((some[-1] for some in seconds if len(some) > 0.05 * len(calls) / passed), default=0.0)


def over(one: float, other: float) -> float:
    """The ratio of both values. 0 if the second one is 0."""
    return one / other if other else 0.0
