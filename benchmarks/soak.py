"""Does anything grow while the site is used for an hour?

The crowd of load uses a site at half its capacity. Each process's anonymous memory is fitted by a line with a
confidence interval. Rows, Redis keys and files are counted after a quarter of the time and at the end. Only tables may
grow, by what was written.
"""

import itertools
import math
import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import linear_regression, mean
from typing import NamedTuple

from django.conf import settings
from django.db import connection

from benchmarks import processes
from benchmarks.load import LIGHT, Acts, Crowd, Generator, Ledger, Ports, every, opened_streams, site
from benchmarks.measure import BenchmarkReport
from storage.connections import client_of, fetch

LOOKS = 120
"""Number of memory measurements."""
QUIETER = 0.25
"""The share of the time before the first one: caches fill, and windows are built."""
FLAT_MB, FLAT_SHARE = 4.0, 0.05
"""Accepted growth of a process in an hour: MB or share, at the low end of the interval."""
STEADY = 200
STEADY_FILES = 20
"""Rows, keys and files of a kind that come and go."""
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
    """How memory grows: `size` in MB, `slope` in MB an hour. `margin` is half the 95 % interval."""

    size: float
    slope: float
    margin: float

    @property
    def is_flat(self) -> bool:
        """Whether the memory shows no relevant growth."""
        return self.slope - self.margin <= max(FLAT_MB, FLAT_SHARE * self.size)


def run(crowd: Crowd) -> BenchmarkReport:
    seconds = crowd.size.soak_seconds
    report = BenchmarkReport(
        "soak",
        __doc__.splitlines()[0],
        ["process", "looks", "MB", "MB an hour", "from", "to"],
        f"{seconds:g} s; a look every {seconds / LOOKS:g} s, those of the first quarter left out; slopes by least "
        "squares, with 95 % confidence",
    )
    with site() as ports:
        used = Soak(crowd, ports, seconds)
        used.everything()
    used.tell(report)
    return report


class Soak:
    """One long use of a site."""

    def __init__(self, crowd: Crowd, ports: Ports, seconds: float) -> None:
        self.crowd, self.ports, self.seconds = crowd, ports, seconds
        self.ledger = Ledger()
        chance = random.Random(26)  # noqa: S311 (no secret)
        self.acts = Acts(crowd, self.ledger, chance)
        self.generator = Generator(ports.web, ports.stream, chance)
        self.memory: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
        self.answers: Counter[int] = Counter()

    def everything(self) -> None:
        """Use the site, and measure."""
        with opened_streams(self.generator, self.acts, lambda item, at: None):
            for user in self.crowd.people:
                self.generator.asked(self.acts.request("GET", "/timeline/home", user))
            trial = min(20.0, self.seconds / 20)
            self.generator.closed(self.acts, clients=4, seconds=trial)
            self.rate = max(1.0, LIGHT * len(self.generator.taken()) / trial)
            self.use(self.seconds * QUIETER)
            self.before = look()
            self.earlier = {kind: len(pairs) for kind, pairs in self.ledger.done.items()}
            begin = time.monotonic()
            with every(self.seconds * (1 - QUIETER) / LOOKS, lambda: self.weigh(begin)):
                self.use(self.seconds * (1 - QUIETER))
            self.after = look()
        self.generator.close()

    def use(self, seconds: float) -> None:
        """Send calls at the steady rate."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.generator.open(self.acts, rate=self.rate, seconds=min(left, 30.0))
            self.answers.update(made.answer.status for made in self.generator.taken())

    def weigh(self, begin: float) -> None:
        """Store the memory of every process."""
        for process in processes.of_site(settings.DATA_DIR):
            if (size := anonymous(process.pid)) is not None:
                self.memory[process.kind, process.pid].append((time.monotonic() - begin, size))

    def tell(self, report: BenchmarkReport) -> None:
        """Fill in the report."""
        growing = []
        most = max(map(len, self.memory.values()))
        for (kind, pid), sizes in sorted(self.memory.items()):
            if len(sizes) < max(3, most / 2):  # a PostgreSQL session or a task's child
                continue
            found = slope(sizes)
            low, high = found.slope - found.margin, found.slope + found.margin
            report.rows.append([kind, len(sizes), *(round(each, 1) for each in (found.size, found.slope, low, high))])
            growing += [] if found.is_flat else [f"{kind} {pid}"]
        rows = [
            f"{table} by {count:,} rows, {allowed:,} explained"
            for table, count in (self.after["rows"] - self.before["rows"]).items()
            if count > (allowed := self.explained(table))
        ]
        keys, files = self.grown("keys", STEADY), self.grown("files", STEADY_FILES)
        wrong = sum(count for status, count in self.answers.items() if not 200 <= status < 300)
        report.ratio("processes that grow", len(growing), at_most=0)
        report.ratio("tables that outgrow what was written", len(rows), at_most=0)
        report.ratio("kinds of keys that grow", len(keys), at_most=0)
        report.ratio("folders that grow", len(files), at_most=0)
        # A site that nobody uses does not grow either.
        report.ratio("answers but 2xx / calls", wrong / max(1, self.answers.total()), at_most=0.05)
        report.ratio("kinds of writes without one", sum(not self.writes(kind) for kind in self.earlier), at_most=0)
        report.ratio("acknowledged writes that are lost", self.ledger.lost(), at_most=0)
        written = ", ".join(f"{self.writes(kind):,} {kind}" for kind in self.earlier)
        report.notes += [
            f"{self.answers.total():,} calls, {self.rate:.0f} a second; {written} in the time that counts.",
            f"Grown: {'; '.join([*growing, *rows, *keys, *files]) or 'nothing'}.",
        ]

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
    """Count rows by table, keys by kind and files by folder."""
    try:
        urls = (settings.REDIS_URL, settings.BROKER_URL, settings.PLAYED_URL)
        return {"rows": _rows(), "keys": _keys(*urls), "files": _files(settings.DATA_DIR)}
    finally:
        connection.close()


def _rows() -> Counter[str]:
    with connection.cursor() as cursor:
        names = connection.introspection.table_names(cursor)
    found: Counter[str] = Counter()
    for name in names:
        ((found[name],),) = fetch(f"SELECT count(*) FROM {connection.ops.quote_name(name)}")
    return found


def _keys(*urls: str) -> Counter[str]:
    """The number of keys of each kind. A kind is a key without the parts that contain a digit."""
    found: Counter[str] = Counter()
    for url in dict.fromkeys(url.replace("redis+socket://", "unix://").replace("virtual_host=", "db=") for url in urls):
        for key in client_of(url, 10).scan_iter(count=1_000):
            words = key.decode(errors="replace") if isinstance(key, bytes) else str(key)
            found[":".join(part for part in words.split(":") if not any(sign.isdigit() for sign in part))] += 1
    return found


def _files(folder: Path) -> Counter[str]:
    """The number of files in each folder, without PostgreSQL's."""
    found: Counter[str] = Counter()
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not (Path(parent) / name / "PG_VERSION").exists()]
        found[Path(parent).relative_to(folder).parts[0] if Path(parent) != folder else "."] += len(names)
    return found


def anonymous(pid: int) -> float | None:
    """The memory of a process that is neither of files nor shared, in MB. None if it ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    sizes = {line.partition(":")[0]: line.split()[1] for line in lines[1:]}
    return (int(sizes["Anonymous"]) + int(sizes["Swap"])) / 1024


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
