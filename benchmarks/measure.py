"""How the benchmarks time things, their sizes, and their reports."""

import gc
import http.client
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import linear_regression, mean, median
from typing import Any, NamedTuple

from celery import current_app
from django.conf import settings

from runtime.embedded import die_with_parent, wait_for

Times = dict[str, list[float]]
Case = Callable[[int], object]


# --- Sizes -----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Size:
    """How much is generated, and how often it is measured."""

    items: int = 1_000_000
    senders: int = 20_000
    big_vs: int = 100
    followees: tuple[int, ...] = (10, 50, 200, 1000, 2000)
    """Followees of the readers of each kind."""
    readers: int = 10
    """Readers of each kind."""
    outboxes: tuple[int, ...] = (5, 20, 100)
    """Big-Vs that hybrid readers follow."""
    followers: tuple[int, ...] = (1_000, 10_000)
    searched: int = 200_000
    """Newest items that search finds."""
    page_rounds: int = 200
    hidden: int = 12_000
    """Newest items of a followee that the reader may not see."""
    fan_out_rounds: int = 24
    publish_rounds: int = 210
    http_rounds: int = 9
    http_requests: int = 150
    growth_followers: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    growth_rounds: int = 15
    growth_few_rounds: int = 3
    """Rounds with the most followers."""
    active: int = 1_000
    """Followers of a big-V at level 3."""
    big_v_rounds: int = 60
    growth_items: tuple[int, ...] = (100_000, 1_000_000)
    growth_calls: int = 50
    """Calls of each kind on each number of items."""
    streams: int = 1_000
    app_streams: int = 5_000
    stream_rounds: int = 60
    quality_readers: int = 1_000
    """Readers for discover_quality."""
    impressions: int = 100_000
    impression_rounds: int = 100
    played_users: int = 2_000
    """Users whose plays are merged together."""
    played_rounds: int = 40
    lane_followers: int = 5_000
    lane_posts: int = 20
    lane_chores: int = 10
    lane_seconds: float = 60.0
    """Seconds in which the site's own tasks come due."""
    idle_pause: float = 120.0
    """Seconds after a start or visits before measuring."""
    idle_seconds: float = 240.0
    load_people: int = 300
    load_items: int = 20_000
    load_fans: int = 1_000_000
    """Followers of the big-V under load."""
    load_streams: int = 100
    """Streams that stay open under load."""
    load_seconds: float = 20.0
    """Seconds of each load."""
    soak_seconds: float = 3_600.0
    soak_kill_seconds: float = 300.0
    """From one killed process to the next."""

    def grown(self, items: int) -> "Size":
        """The same with this largest number of items, against the next smaller one."""
        fewer = max((count for count in self.growth_items if count < items), default=items // 10)
        return replace(self, growth_items=(fewer, items))


QUICK = Size(
    items=12_000,
    senders=400,
    big_vs=20,
    followees=(10, 200),
    readers=2,
    outboxes=(5, 20),
    followers=(60, 120),
    searched=2_000,
    page_rounds=4,
    hidden=1_000,
    fan_out_rounds=2,
    publish_rounds=20,
    http_rounds=2,
    http_requests=5,
    growth_followers=(40, 120, 400),
    growth_rounds=2,
    growth_few_rounds=1,
    active=20,
    big_v_rounds=2,
    growth_items=(12_000, 15_000),
    growth_calls=4,
    streams=20,
    app_streams=80,
    stream_rounds=2,
    quality_readers=5,
    impressions=5_000,
    impression_rounds=2,
    played_users=50,
    played_rounds=2,
    lane_followers=50,
    lane_posts=2,
    lane_chores=1,
    lane_seconds=3.0,
    idle_pause=1.0,
    idle_seconds=2.0,
    load_people=30,
    load_items=600,
    load_fans=500,
    load_streams=5,
    load_seconds=1.5,
    soak_seconds=12.0,
    soak_kill_seconds=6.0,
)


# --- Reports ---------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Ratio:
    """A ratio of two figures of a run, or a figure with a target (`at_least`, `at_most`).

    The page puts names that differ only after the first ", " into one row.
    """

    name: str
    value: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def target(self) -> str:
        """The target as text, or ""."""
        if self.at_least is not None:
            return f"≥{self.at_least:g}"
        return "" if self.at_most is None else f"≤{self.at_most:g}"

    @property
    def is_met(self) -> bool | None:
        """Whether the ratio reaches its target. None without one."""
        if self.at_least is not None:
            return self.value >= self.at_least
        return None if self.at_most is None else self.value <= self.at_most


@dataclass(slots=True)
class BenchmarkReport:
    """The result of one benchmark."""

    name: str
    question: str
    columns: Sequence[str]
    n: str
    """How often everything was measured."""
    rows: list[Sequence[str | float]] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    figures: list[tuple[str, str, str]] = field(default_factory=list)
    """Rows for the page: what, measured, target or ""."""
    machine: dict[str, Any] = field(default_factory=dict)
    """Time, machine and versions of the run."""
    data_set: str = ""
    seconds: float = 0.0
    """Duration of the measurement, without building the data."""

    def ratio(self, name: str, value: float, *, at_least: float | None = None, at_most: float | None = None) -> None:
        """Add a ratio."""
        self.ratios.append(Ratio(name, value, at_least, at_most))

    def figure(self, what: str, measured: str) -> None:
        """Add a figure without a target to the page."""
        self.figures.append((what, measured, ""))

    def as_json(self) -> dict[str, Any]:
        """The report as JSON objects."""
        return asdict(self) | {"ratios": [asdict(ratio) | {"is_met": ratio.is_met} for ratio in self.ratios]}


def written(value: float) -> str:
    """A number with two digits, or whole from a hundred on, without "-0.00"."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{round(value, 2) + 0.0:.2f}"


def span(values: Sequence[float]) -> str:
    """The least and the most value, or the only one."""
    return "\N{EN DASH}".join(dict.fromkeys(written(end(values)) for end in (min, max)))


# --- Times -----------------------------------------------------------------------------------------------
def interleaved(cases: Mapping[str, Case], *, rounds: int, warm_up: int = 3) -> Times:
    """Run every case in every round. Returns each case's seconds by round, without warm-up.

    Every round begins with another case, and passes its number.
    """
    names = list(cases)
    times: Times = {name: [] for name in names}
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        for number in range(warm_up + rounds):
            first = number % len(names)
            for name in names[first:] + names[:first]:
                case = cases[name]
                begin = time.perf_counter()
                case(number)
                seconds = time.perf_counter() - begin
                if number >= warm_up:
                    times[name].append(seconds)
    finally:
        gc.enable()
        gc.unfreeze()
    return times


def milliseconds(times: Sequence[float]) -> float:
    """The median of times, in ms."""
    return median(times) * 1000


def over(times: Times, one: str, other: str, middle: Callable[[Sequence[float]], float] = median) -> float:
    """The median (or other `middle`) of `one` over that of `other`."""
    return middle(times[one]) / middle(times[other])


def percentile(times: Sequence[float], share: float) -> float:
    """A percentile of times, in ms."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """The exponent of y = factor * x ** exponent that fits best. 0 is flat, 1 linear."""
    return linear_regression([math.log(x) for x, _ in points], [math.log(y) for _, y in points]).slope


# --- Processor time --------------------------------------------------------------------------------------
class _Process(NamedTuple):
    name: str
    parent: int
    seconds: float
    is_of_site: bool


def _processes() -> dict[int, _Process]:
    tick, found = os.sysconf("SC_CLK_TCK"), {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            head, _, tail = (entry / "stat").read_text().rpartition(")")
            is_of_site = str(settings.DATA_DIR).encode() in (entry / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        fields = tail.split()
        found[int(entry.name)] = _Process(head, int(fields[1]), sum(map(int, fields[11:13])) / tick, is_of_site)
    return found


def servers_time() -> tuple[float, float]:
    """Processor seconds of PostgreSQL and of Redis, with children."""
    spent, processes = {"postgres": 0.0, "valkey": 0.0}, _processes()
    kinds = {number: kind for number, each in processes.items() for kind in spent if kind in each.name}
    own = {number for number in kinds if processes[number].is_of_site}
    for number, kind in kinds.items():
        if number in own or processes[number].parent in own:
            spent[kind] += processes[number].seconds
    return spent["postgres"], spent["valkey"]


def family_time(parent: int) -> float:
    """Processor seconds of a process and its children."""
    return sum(each.seconds for number, each in _processes().items() if parent in (number, each.parent))


# --- A server of pages -----------------------------------------------------------------------------------
class MeasuredRequest(NamedTuple):
    """A request to measure: a GET, or a POST of `body` as JSON."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any] | None = None


class Client:
    """One kept connection to a local server."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def time(self, request: MeasuredRequest) -> float:
        """Send a request. Returns the seconds until its answer."""
        begin = time.perf_counter()
        self.ask(request)
        return time.perf_counter() - begin

    def processor_time(self) -> float:
        """Processor seconds of the server."""
        return float(self.ask(MeasuredRequest("/bench/processor", {})))

    def ask(self, request: MeasuredRequest) -> bytes:
        """Send a request. Returns the body of a successful answer."""
        path, headers, body = request
        if body is None:
            self.connection.request("GET", path, headers={"Host": "localhost", **headers})
        else:
            headers = {"Host": "localhost", "Content-Type": "application/json", **headers}
            self.connection.request("POST", path, json.dumps(body), headers)
        response = self.connection.getresponse()
        answer = response.read()
        assert response.status in (200, 201, 204), (path, response.status, answer[:200])
        return answer


class Blocks:
    """The costs of one kind of request, a row per block."""

    def __init__(self) -> None:
        self.spent: list[tuple[float, ...]] = []
        """Processor seconds per request: of granian's worker, PostgreSQL, Redis and Celery workers."""
        self.waited: list[float] = []

    @property
    def worker(self) -> float:
        """The worker's processor seconds per request: the median of the blocks, by granian's own clock."""
        return median(parts[0] for parts in self.spent)

    @property
    def parts(self) -> list[float]:
        """The mean processor seconds of each part. Means, because the kernel counts only hundredths of a second."""
        return [mean(parts) for parts in zip(*self.spent, strict=True)]

    @property
    def total(self) -> float:
        """The processor seconds of all processes per request."""
        return sum(self.parts)


def over_http(
    port: int, requests: Mapping[str, Sequence[MeasuredRequest]], *, rounds: int, each: int, family: int | None = None
) -> dict[str, Blocks]:
    """Send blocks of `each` requests of every kind in turn, after a warm-up block.

    A kind with several requests takes the next one each round. `family`: a process to measure too.
    """
    client = Client(port)
    found = {name: Blocks() for name in requests}

    def clocks() -> tuple[float, ...]:
        return client.processor_time(), *servers_time(), family_time(family) if family else 0.0

    names = list(requests)
    for number in range(1 + rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            request = requests[name][number % len(requests[name])]
            before = clocks()
            waited = [client.time(request) for _ in range(each)]
            after = clocks()
            if number:
                spent = tuple((end - begin) / each for begin, end in zip(before, after, strict=True))
                found[name].spent.append(spent)
                found[name].waited += waited
    return found


def application() -> Callable[..., Any]:
    """The WSGI application: the site, with the addresses of http_page."""
    from feedsite.wsgi import Handler

    settings.ROOT_URLCONF = "benchmarks.http_page"
    return Handler()


@contextmanager
def served() -> Iterator[int]:
    """Run granian with one worker. Yields the port."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "granian", "--interface", "wsgi", "--no-ws", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--workers", "1", "--blocking-threads", "1", "--log-level", "warning"]
    server = subprocess.Popen(
        [*command, "--factory", "benchmarks.measure:application"],
        cwd=settings.BASE_DIR,
        preexec_fn=die_with_parent(signal.SIGTERM),
    )
    try:
        assert wait_for(lambda: _answers(port), 120), "granian does not answer"
        yield port
    finally:
        stop(server, 30)


def _answers(port: int) -> bool:
    with suppress(OSError, http.client.HTTPException):
        return Client(port).processor_time() > 0
    return False


@contextmanager
def workers() -> Iterator[int]:
    """Run two Celery workers. Yields their parent's id."""
    command = [sys.executable, "-m", "celery", "-A", "feedsite", "--quiet", "worker", "--concurrency", "2"]
    command += ["--without-gossip", "--without-mingle", "--loglevel", "error"]
    worker = subprocess.Popen(
        command,
        cwd=settings.BASE_DIR,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=die_with_parent(signal.SIGTERM),
    )
    try:
        assert wait_for(lambda: current_app.control.ping(timeout=0.3), 120), "no Celery worker answers"
        yield worker.pid
    finally:
        stop(worker, 30)


def free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def stop(program: subprocess.Popen[bytes], seconds: float) -> None:
    """End a program. After `seconds` kill it and raise TimeoutExpired."""
    program.terminate()
    try:
        program.wait(seconds)
    finally:
        program.kill()
