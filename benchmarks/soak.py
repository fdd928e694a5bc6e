"""Does anything grow while the site is used for an hour?

The crowd of `load` uses a site under `up` at a steady rate, half of what it can. Every process is looked at all the
time: its own memory (anonymous pages, which it shares with no file) as a line over time, with the confidence interval
of its slope. Rows of every table, keys of every kind in Redis and files are counted after a quarter of the time and at
the end, and held against docs/growth.md: a table grows by what was written, all else is bounded.
"""

import asyncio
import itertools
import math
import random
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.db import connection

from benchmarks import pinned
from benchmarks.crowd import API, Acts, Crowd, Ledger
from benchmarks.fits import STUDENT
from benchmarks.generator import Generator, every, listening
from benchmarks.load import FILES, LIGHT
from benchmarks.measure import Report
from runtime import processes
from storage.connections import client_of, fetch

LOOKS = 120
"""Times that memory is looked at."""
QUIETER = 0.25
"""The share of the time before the first look that counts: caches fill, and windows are built."""
FLAT_MB, FLAT_SHARE = 4.0, 0.05
"""Growth in an hour that is none: so many MB of a process, or that share of it, by the low end of the interval."""
STEADY_ROWS, STEADY_KEYS, STEADY_FILES = 200, 200, 20
"""Rows, keys and files of a kind that come and go."""
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
"""Tables that docs/growth.md says grow, by the writes that add a row each."""
BY_MEMBERS = (
    "feedsite_written",
    "timeline_readingposition",
    "notifications_readmark",
    "knox_authtoken",
    "django_session",
    "usersessions_usersession",
    "accounts_session",
)
"""Tables with a row for each member at most."""


class Look(NamedTuple):
    """Counts of a moment: rows by table, keys by kind, files by folder."""

    rows: Counter[str]
    keys: Counter[str]
    files: Counter[str]


class Slope(NamedTuple):
    """A line through sizes of one process, in MB and MB an hour; `margin` is half its interval of 95 %."""

    size: float
    slope: float
    margin: float

    @property
    def is_flat(self) -> bool:
        """Whether growth that counts is not shown."""
        return self.slope - self.margin <= max(FLAT_MB, FLAT_SHARE * self.size)


def run(crowd: Crowd) -> Report:
    """Run the benchmark, and return its report."""
    seconds = crowd.size.soak_seconds
    report = Report(
        "soak",
        __doc__.splitlines()[0],
        ["process", "looks", "MB", "MB an hour", "from", "to"],
        f"{seconds:g} s; a look every {seconds / LOOKS:g} s, those of the first quarter left out; slopes by least "
        "squares, with 95 % confidence",
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(FILES, hard)), hard))
    with pinned.site() as ports:
        soak = Soak(crowd, ports, seconds)
        asyncio.run(soak.everything())
    soak.tell(report)
    return report


class Soak:
    """One long use of a site."""

    def __init__(self, crowd: Crowd, ports: pinned.Ports, seconds: float) -> None:
        self.crowd, self.ports, self.seconds = crowd, ports, seconds
        self.ledger = Ledger()
        chance = random.Random(26)  # noqa: S311 (no secret)
        self.acts = Acts(crowd, self.ledger, chance)
        self.memory: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
        self.answers: Counter[int] = Counter()
        self.chance = chance
        self.rate = 0.0

    async def everything(self) -> None:
        """Use the site, and look."""
        self.generator = Generator(self.ports.web, self.ports.stream, self.chance)
        requests = [self.acts.request("GET", f"{API}/stream", user) for user in self.crowd.people]
        streams = await listening(self.ports.stream, requests[: self.crowd.size.load_streams])
        for request in (self.acts.request("GET", f"{API}/timeline/home", user) for user in self.crowd.people):
            await self.generator.asked(request)
        trial = min(20.0, self.seconds / 20)
        await self.generator.closed(self.acts, clients=4, seconds=trial)
        self.rate = max(1.0, LIGHT * len(self.generator.taken()) / trial)
        await self.use(self.seconds * QUIETER)
        self.before = await asyncio.to_thread(look)
        self.earlier = {kind: len(pairs) for kind, pairs in self.ledger.done.items()}
        begin = time.monotonic()
        looking = asyncio.create_task(every(self.seconds * (1 - QUIETER) / LOOKS, lambda: self.weigh(begin)))
        await self.use(self.seconds * (1 - QUIETER))
        looking.cancel()
        self.minutes = (time.monotonic() - begin) / 60
        self.after = await asyncio.to_thread(look)
        for stream in streams:
            stream.transport.abort()
        self.generator.close()

    async def use(self, seconds: float) -> None:
        """Call at the steady rate."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            await self.generator.open(self.acts, rate=self.rate, seconds=min(left, 30.0))
            self.answers.update(made.answer.status for made in self.generator.taken())

    def weigh(self, begin: float) -> None:
        """Note the memory of every process."""
        for process in processes.of_site(settings.DATA_DIR):
            if (size := anonymous(process.pid)) is not None:
                self.memory[process.kind, process.pid].append((time.monotonic() - begin, size))

    # --- The report ------------------------------------------------------------------------------------------
    def tell(self, report: Report) -> None:
        """Fill the report in."""
        growing = []
        most = max(map(len, self.memory.values()))
        for (kind, pid), sizes in sorted(self.memory.items()):
            if len(sizes) < max(3, most / 2):  # a session of PostgreSQL or a task's child that came and went
                continue
            found = slope(sizes)
            low, high = found.slope - found.margin, found.slope + found.margin
            report.rows.append([kind, len(sizes), *(round(each, 1) for each in (found.size, found.slope, low, high))])
            growing += [] if found.is_flat else [f"{kind} {pid}"]
        rows, keys, files = self.grown_rows(), grown(self.before.keys, self.after.keys, STEADY_KEYS), self.grown_files()
        wrong = sum(count for status, count in self.answers.items() if not 200 <= status < 300)
        report.ratio("processes that grow", len(growing), at_most=0)
        report.ratio("tables that outgrow docs/growth.md", len(rows), at_most=0)
        report.ratio("kinds of keys that grow", len(keys), at_most=0)
        report.ratio("folders that grow", len(files), at_most=0)
        # A site that is not in use does not grow either.
        report.ratio("answers but 2xx / calls", wrong / max(1, self.answers.total()), at_most=0.05)
        report.ratio("kinds of writes without one", sum(not self.writes(kind) for kind in self.earlier), at_most=0)
        report.ratio("acknowledged writes that are lost", self.ledger.lost(), at_most=0)
        named = "; ".join([*growing, *rows, *keys, *files])
        report.notes += [
            f"{self.answers.total():,} calls, {self.rate:.0f} a second; {self.written()} in the time that counts.",
            f"Grown: {named or 'nothing'}.",
        ]

    def written(self) -> str:
        """The writes of the time that counts."""
        return ", ".join(f"{self.writes(kind):,} {kind}" for kind in self.earlier)

    def writes(self, kind: str) -> int:
        """Acknowledged writes of a kind, in the time that counts."""
        return len(self.ledger.done[kind]) - self.earlier[kind]

    def grown_rows(self) -> list[str]:
        """Tables that have more rows than docs/growth.md explains."""
        found = []
        for table, rows in (self.after.rows - self.before.rows).items():
            allowed: float = STEADY_ROWS + sum(map(self.writes, BY_WRITES.get(table, ())))
            allowed += len(self.crowd.people) * (table in BY_MEMBERS)
            if rows > allowed:
                found.append(f"{table} by {rows:,} rows, {allowed:.0f} explained")
        return found

    def grown_files(self) -> list[str]:
        """Folders that have more files."""
        return grown(self.before.files, self.after.files, STEADY_FILES)


def grown(before: Counter[str], after: Counter[str], steady: int) -> list[str]:
    """Kinds of which there are more than before, beyond what comes and goes."""
    return [
        f"{kind} from {before[kind]:,} to {count:,}" for kind, count in after.items() if count > before[kind] + steady
    ]


def look() -> Look:
    """Count everything, in a thread of its own."""
    try:
        counted = keys(settings.REDIS_URL, settings.BROKER_URL, settings.PLAYED_URL)
        return Look(rows(), counted, files(settings.DATA_DIR))
    finally:
        connection.close()


def rows() -> Counter[str]:
    """Rows of every table, counted."""
    with connection.cursor() as cursor:
        names = connection.introspection.table_names(cursor)
    found: Counter[str] = Counter()
    for name in names:
        ((found[name],),) = fetch(f"SELECT count(*) FROM {connection.ops.quote_name(name)}")  # noqa: S608
    return found


def keys(*urls: str) -> Counter[str]:
    """Keys of the servers by kind: the words of a key up to the first that names something."""
    found: Counter[str] = Counter()
    for url in dict.fromkeys(url.replace("redis+socket://", "unix://").replace("virtual_host=", "db=") for url in urls):
        client = client_of(url, 10)
        for key in client.scan_iter(count=1_000):
            words = key.decode(errors="replace") if isinstance(key, bytes) else str(key)
            found[":".join(part for part in words.split(":") if not any(sign.isdigit() for sign in part))] += 1
    return found


def files(folder: Path) -> Counter[str]:
    """Files by the folder at the top; PostgreSQL's own are its tables, which are counted by rows."""
    found: Counter[str] = Counter()
    for path in walked(folder):
        found[path.relative_to(folder).parts[0]] += 1
    return found


def walked(folder: Path) -> Iterator[Path]:
    """All files below a folder but those of PostgreSQL."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            if not (path / "PG_VERSION").exists():
                yield from walked(path)
        else:
            yield path


def anonymous(pid: int) -> float | None:
    """A process's own memory in MB: pages of no file, and none that sessions share. None if it ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    sizes: Mapping[str, str] = {line.partition(":")[0]: line.split()[1] for line in lines[1:]}
    return (int(sizes["Anonymous"]) + int(sizes["Swap"])) / 1024


def slope(sizes: Sequence[tuple[float, float]]) -> Slope:
    """The line through sizes (seconds, MB). Looks that follow each other are alike, so that the interval is widened by
    their correlation.
    """
    count = len(sizes)
    x_mean, y_mean = (sum(each[place] for each in sizes) / count for place in (0, 1))
    spread = sum((x - x_mean) ** 2 for x, _ in sizes)
    line = sum((x - x_mean) * (y - y_mean) for x, y in sizes) / spread
    left = [y - y_mean - line * (x - x_mean) for x, y in sizes]
    squares = sum(each**2 for each in left)
    alike = sum(one * other for one, other in itertools.pairwise(left)) / squares if squares else 0.0
    alike = min(max(alike, 0.0), 0.95)
    own = max(3.0, count * (1 - alike) / (1 + alike))
    student = STUDENT[math.ceil(own) - 3] if own - 2 <= len(STUDENT) else 1.96
    margin = student * math.sqrt(squares / count / spread * count / (own - 2))
    return Slope(y_mean, line * 3600, margin * 3600)
