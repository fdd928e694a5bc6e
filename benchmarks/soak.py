"""Does anything grow, or get lost, while the site is used for hours and its processes are killed?

The crowd of load uses a site at half its capacity. From time to time a random process gets SIGKILL. Memory and open
files of each process are fitted by lines with confidence intervals. Rows, Redis keys and files are counted after a
quarter of the time and at the end. Only tables may grow, by what was written, and windows up to their bound.
"""

import itertools
import math
import os
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import linear_regression, mean
from typing import NamedTuple

import redis
from django.conf import settings
from django.db import OperationalError, connection

from benchmarks import processes
from benchmarks.load import (
    CLIENTS,
    LIGHT,
    SHED,
    Acts,
    Crowd,
    Generator,
    Ledger,
    Made,
    Ports,
    every,
    opened_streams,
    site,
)
from benchmarks.measure import BenchmarkReport
from runtime.embedded import wait_for
from storage.connections import client_of, fetch, pipelined
from timeline.models import Delivery

LOOKS = 120
"""Number of memory measurements."""
QUIETER = 0.25
"""The share of the time before the first one: caches fill, and windows are built."""
FLAT_MB, FLAT_FILES = 1.0, 5.0
"""Accepted growth of a process in an hour, at the low end of the interval."""
PROGRAMS, SERVERS = ("web", "worker", "stream", "beat", "outside"), ("postgresql", "redis")
"""Kinds of processes that are killed in turn: programs in the first half of the time, then servers.

So every kind has an hour of two to grow in. PostgreSQL restarts when any of its processes is killed.
"""
YOUNG = 0.25
"""The share of the time in which a restarted process may fill its caches."""
BACK_SECONDS = 30.0
"""After a kill, calls may fail for this long."""
WAIT_SECONDS = 120.0
"""Longest wait for PostgreSQL, and for the last deliveries."""
STEADY = 200
STEADY_FILES = 20
"""Rows, keys and files of a kind that come and go."""
FILLING = "redis"
"""Kind of process that is judged by its keys: windows fill up to their bound."""
LARGEST_KEY = 4 << 20
"""Accepted bytes of a key. The stream of events takes 1 to 2 MB, a full inbox 100 kB."""
STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)
"""97.5 % quantiles of the t distribution for 1 to 10 degrees of freedom, then 1.96."""
BY_WRITES = {
    "items_item": ("publish",),
    "items_itemdocument": ("publish",),
    "items_itemcounts": ("publish", "like"),
    "items_like": ("like",),
    "relations_follow": ("follow",),
    "notifications_notification": ("like", "follow"),
    "notifications_act": ("like", "follow"),
    "discover_wordrarity": ("publish",),
}
"""Tables that grow, by the writes that add a row."""
BY_MEMBERS = (
    "feedsite_written",
    "timeline_readingposition",
    "notifications_readmark",
    "django_session",
    "usersessions_usersession",
    "accounts_session",
)
"""Tables with at most a row per member."""


class Slope(NamedTuple):
    """How a size grows: its mean, and its growth an hour. `margin` is half the 95 % interval."""

    size: float
    slope: float
    margin: float

    @property
    def low(self) -> float:
        """The low end of the interval."""
        return self.slope - self.margin


class ProcessSize(NamedTuple):
    """A process's memory (neither of files nor shared, in MB) and open files at `at`, seconds after the begin."""

    at: float
    memory: float
    files: int


def run(crowd: Crowd) -> BenchmarkReport:
    seconds = crowd.size.soak_seconds
    report = BenchmarkReport(
        "soak",
        __doc__.splitlines()[0],
        ["process", "looks", "MB", "MB an hour", "from", "to", "open files", "more an hour"],
        f"{seconds:g} s, a kill every {crowd.size.soak_kill_seconds:g} s; a look every "
        f"{seconds * (1 - QUIETER) / LOOKS:g} s, without those of the first quarter and of young processes; slopes by "
        "least squares, with 95 % confidence",
    )
    with site() as ports:
        used = Soak(crowd, ports, seconds)
        used.everything()
        used.wait_for_deliveries()
    used.tell(report)
    return report


class Soak:
    """One long use of a site."""

    def __init__(self, crowd: Crowd, ports: Ports, seconds: float) -> None:
        self.crowd, self.seconds = crowd, seconds
        self.ledger = Ledger()
        self.chance = random.Random(26)  # noqa: S311 (no secret)
        self.acts = Acts(crowd, self.ledger, self.chance)
        self.generator = Generator(ports.web, ports.stream, self.chance)
        self.programs, self.servers = itertools.cycle(PROGRAMS), itertools.cycle(SERVERS)
        self.kills: list[tuple[float, str]] = []
        self.sizes: dict[tuple[str, int], list[ProcessSize]] = defaultdict(list)
        self.calls = 0
        self.failed: list[Made] = []

    def everything(self) -> None:
        """Use the site, kill its processes, and measure."""
        for user in self.crowd.people:
            self.generator.asked(self.acts.request("GET", "/timeline/home", user))
        self.rate = max(1.0, LIGHT * self.capacity(min(20.0, self.seconds / 20)))
        self.first = {process.pid for process in processes.of_site(settings.DATA_DIR)}
        with self.streams(), every(self.crowd.size.soak_kill_seconds, self.kill):
            self.use(self.seconds * QUIETER)
            self.before = look()
            self.earlier = {kind: len(pairs) for kind, pairs in self.ledger.done.items()}
            begin = time.monotonic()
            with every(self.seconds * (1 - QUIETER) / LOOKS, lambda: self.weigh(begin)):
                self.use(self.seconds * (1 - QUIETER))
        self.generator.close()

    def capacity(self, seconds: float) -> float:
        """Measure how many calls the site answers in a second, after as long a warm-up."""
        self.generator.closed(self.acts, clients=max(CLIENTS), seconds=seconds)
        self.generator.taken()
        self.generator.closed(self.acts, clients=max(CLIENTS), seconds=seconds)
        return sum(200 <= made.answer.status < 300 for made in self.generator.taken()) / seconds

    @contextmanager
    def streams(self) -> Iterator[None]:
        """Keep streams open during the block, as apps do: those of a killed process are opened again."""
        ended = False

        def listen() -> None:
            while not ended:
                with opened_streams(self.generator, self.acts, lambda item, at: None) as hearing:
                    while not ended and not all(each.done() for each in hearing):
                        time.sleep(1)

        listening = self.generator.threads.submit(listen)
        try:
            yield
        finally:
            ended = True
            listening.result()

    def use(self, seconds: float) -> None:
        """Send calls at the steady rate."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.generator.open(self.acts, rate=self.rate, seconds=min(left, 30.0))
            made = self.generator.taken()
            self.calls += len(made)
            self.failed += [each for each in made if not 200 <= each.answer.status < 300]

    def kill(self) -> None:
        """Kill a random process of the next kind."""
        kills = self.seconds / self.crowd.size.soak_kill_seconds
        kind = next(self.programs if len(self.kills) < kills / 2 else self.servers)
        found = [each.pid for each in processes.of_site(settings.DATA_DIR) if each.kind == kind]
        self.kills.append((time.monotonic(), kind if found else f"no {kind} to kill"))
        if found:
            with suppress(ProcessLookupError):
                os.kill(self.chance.choice(found), signal.SIGKILL)

    def wait_for_deliveries(self) -> None:
        """Wait until all is delivered, and count for the last time."""
        wait_for(lambda: _connected() and not Delivery.objects.exists(), WAIT_SECONDS)
        self.undelivered = Delivery.objects.count()
        self.after = look()

    def weigh(self, begin: float) -> None:
        """Store memory and open files of every process."""
        for process in processes.of_site(settings.DATA_DIR):
            if found := size_of(process.pid, time.monotonic() - begin):
                self.sizes[process.kind, process.pid].append(found)

    def settled(self) -> dict[tuple[str, int], list[ProcessSize]]:
        """The sizes of processes that lived for long, without those of their first minutes."""
        found = {}
        for key, sizes in self.sizes.items():
            young = 0 if key[1] in self.first else self.seconds * YOUNG
            left = [each for each in sizes if each.at - sizes[0].at >= young]
            if len(left) >= max(3, LOOKS / 6):
                found[key] = left
        return dict(sorted(found.items()))

    def tell(self, report: BenchmarkReport) -> None:
        """Fill in the report."""
        growing, opening = [], []
        for (kind, pid), sizes in self.settled().items():
            memory = slope([(each.at, each.memory) for each in sizes])
            files = slope([(each.at, each.files) for each in sizes])
            numbers = (memory.size, memory.slope, memory.low, memory.slope + memory.margin, files.size, files.slope)
            report.rows.append([kind, len(sizes), *(round(each, 1) for each in numbers)])
            growing += [f"{kind} {pid}"] if memory.low > FLAT_MB and kind != FILLING else []
            opening += [f"open files of {kind} {pid}"] if files.low > FLAT_FILES else []
        rows = [
            f"{table} by {count:,} rows, {allowed:,} explained"
            for table, count in (self.after["rows"] - self.before["rows"]).items()
            if count > (allowed := self.explained(table))
        ]
        keys, files_grown = self.grown("keys", STEADY), self.grown("files", STEADY_FILES)
        unannounced = [made for made in self.failed if not self.was_announced(made)]
        report.ratio("processes that grow", len(growing), at_most=0)
        report.ratio("processes that keep files open", len(opening), at_most=0)
        report.ratio("tables that outgrow what was written", len(rows), at_most=0)
        report.ratio("kinds of keys that grow", len(keys), at_most=0)
        report.ratio("keys over their bound", self.after["large keys"].total(), at_most=0)
        report.ratio("folders that grow", len(files_grown), at_most=0)
        # A site that nobody uses does not grow either.
        report.ratio("answers but 2xx / calls", len(self.failed) / max(1, self.calls), at_most=0.05)
        report.ratio("errors neither announced nor by a kill", len(unannounced), at_most=0)
        report.ratio("kinds of writes without one", sum(not self.writes(kind) for kind in self.earlier), at_most=0)
        report.ratio("acknowledged writes that are lost", self.ledger.lost(), at_most=0)
        report.ratio("items that were not delivered", self.undelivered, at_most=0)
        written = ", ".join(f"{self.writes(kind):,} {kind}" for kind in self.earlier)
        errors = Counter(f"{made.answer.status} {made.kind}" for made in unannounced)
        report.notes += [
            f"{self.calls:,} calls, {self.rate:.0f} a second; {written} in the time that counts.",
            f"Grown: {'; '.join([*growing, *opening, *rows, *keys, *files_grown]) or 'nothing'}.",
            f"Kills, and longest time with failed calls: {', '.join(self.recovery())}.",
            f"Other errors: {', '.join(f'{count} x {what}' for what, count in errors.most_common()) or 'none'}.",
        ]

    def was_announced(self, made: Made) -> bool:
        """Whether a call failed by load shedding, which says when to come back, or around a kill."""
        shed = made.answer.status == SHED and bool(made.answer.retry_after)
        return shed or any(at <= made.ended and made.intended <= at + BACK_SECONDS for at, _ in self.kills)

    def recovery(self) -> Iterator[str]:
        """For each kind, the number of kills and the longest time until the last failed call."""
        longest: dict[str, float] = defaultdict(float)
        for at, kind in self.kills:
            after = (made.ended - at for made in self.failed if at <= made.ended and made.intended <= at + BACK_SECONDS)
            longest[kind] = max(longest[kind], *after, 0.0)
        for kind, count in Counter(kind for _, kind in self.kills).items():
            yield f"{kind} {count} ({longest[kind]:.1f} s)"

    def writes(self, kind: str) -> int:
        """The number of acknowledged writes in the measured time."""
        return len(self.ledger.done[kind]) - self.earlier[kind]

    def explained(self, table: str) -> int:
        """How many rows a table may grow by."""
        allowed = STEADY + sum(map(self.writes, BY_WRITES.get(table, ())))
        return allowed + len(self.crowd.people) * (table in BY_MEMBERS)

    def grown(self, what: str, steady: int) -> list[str]:
        """What has grown by more than `steady`, in words."""
        before, after = self.before[what], self.after[what]
        more = after - before
        return [f"{kind} from {before[kind]:,} to {after[kind]:,}" for kind, count in more.items() if count > steady]


def look() -> dict[str, Counter[str]]:
    """Count rows by table, keys by kind and files by folder, again if a server is killed meanwhile."""
    counts: dict[str, Counter[str]] = {}

    def count() -> bool:
        connection.close()
        with suppress(OperationalError, redis.exceptions.ConnectionError):
            counts.update(_counts())
        return bool(counts)

    try:
        wait_for(count, WAIT_SECONDS)
        return counts
    finally:
        connection.close()


def _counts() -> dict[str, Counter[str]]:
    sizes = _key_sizes(settings.REDIS_URL, settings.BROKER_URL, settings.PLAYED_URL)
    return {
        "rows": _rows(),
        "keys": Counter({kind: len(found) for kind, found in sizes.items()}),
        "large keys": Counter({kind: sum(size > LARGEST_KEY for size in found) for kind, found in sizes.items()}),
        "files": _files(settings.DATA_DIR),
    }


def _connected() -> bool:
    """Whether a new connection to PostgreSQL opens. The server of an older one may have been killed."""
    connection.close()
    with suppress(OperationalError):
        connection.ensure_connection()
        return True
    return False


def _rows() -> Counter[str]:
    with connection.cursor() as cursor:
        names = connection.introspection.table_names(cursor)
    found: Counter[str] = Counter()
    for name in names:
        ((found[name],),) = fetch(f"SELECT count(*) FROM {connection.ops.quote_name(name)}")
    return found


def _key_sizes(*urls: str) -> dict[str, list[int]]:
    """The bytes of all keys, by kind. A kind is a key without the parts that contain a digit."""
    found: dict[str, list[int]] = defaultdict(list)
    for url in dict.fromkeys(url.replace("redis+socket://", "unix://").replace("virtual_host=", "db=") for url in urls):
        client = client_of(url, 10)
        keys = [*client.scan_iter(count=1_000)]
        for key, size in zip(keys, pipelined(client, [("MEMORY", "USAGE", key) for key in keys]), strict=True):
            words = key.decode(errors="replace") if isinstance(key, bytes) else str(key)
            kind = ":".join(part for part in words.split(":") if not any(sign.isdigit() for sign in part))
            found[kind].append(size or 0)  # none if it has expired since
    return found


def _files(folder: Path) -> Counter[str]:
    """The number of files in each folder, without PostgreSQL's."""
    found: Counter[str] = Counter()
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not (Path(parent) / name / "PG_VERSION").exists()]
        found[Path(parent).relative_to(folder).parts[0] if Path(parent) != folder else "."] += len(names)
    return found


def size_of(pid: int, at: float) -> ProcessSize | None:
    """The size of a process. None if it ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return None
    sizes = {line.partition(":")[0]: line.split()[1] for line in lines[1:]}
    return ProcessSize(at, (int(sizes["Anonymous"]) + int(sizes["Swap"])) / 1024, files)


def slope(sizes: Sequence[tuple[float, float]]) -> Slope:
    """Fit a line to sizes over time. Correlation between neighbours widens the interval."""
    xs, ys = zip(*sizes, strict=True)
    count, middle = len(sizes), mean(xs)
    line = linear_regression(xs, ys)
    left = [y - line.intercept - line.slope * x for x, y in sizes]
    squares = sum(each**2 for each in left)
    spread = sum((x - middle) ** 2 for x in xs)
    alike = sum(one * other for one, other in itertools.pairwise(left)) / squares if squares else 0.0
    alike = min(max(alike, 0.0), 0.95)
    own = max(3.0, count * (1 - alike) / (1 + alike))
    student = STUDENT[math.ceil(own) - 3] if own - 2 <= len(STUDENT) else 1.96
    margin = student * math.sqrt(squares / count / spread * count / (own - 2))
    return Slope(mean(ys), line.slope * 3600, margin * 3600)
