"""How does the site behave at the machine's limit, and beyond it?

`up` runs on one processor, with one process of web; the generator, on another one, asks as people do: home for apps and
browsers, deeper pages, items, how much is new, pictures, streams, and one write of ten calls (likes, posts, follows). A
closed loop finds the capacity, the most calls that the site answers in a second. Open loops then come at shares of it
by chance, and beyond it; times count from when a call was to be sent, so they hold all waiting, wherever it is. Calls
that are shed are answered 503 with Retry-After. At the end PostgreSQL is asked for every write that was acknowledged,
and for those that were answered 503.
"""

import asyncio
import gc
import random
import resource
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from statistics import median

from benchmarks import pinned
from benchmarks.crowd import API, Acts, Crowd, Ledger
from benchmarks.generator import Generator, Made, every, listening
from benchmarks.measure import Report, percentile

CLIENTS = (1, 4, 16)
"""Clients of the closed loops."""
LIGHT, HEAVY, BEYOND = 0.5, 0.8, 2.0
"""Shares of the capacity."""
OVERLOADS = 3
"""Times beyond the capacity."""
RETURN_SECONDS = 10.0
"""In which everything is to be as before, after a time beyond the capacity: in the median of those times."""
OVERLOAD_TARGET, BIG_V_TARGET = 4.0, 1.3
LOOK_SECONDS = 0.25
BIG_V_EVERY = 2.0
BIG_V_ROUNDS = 8
"""With so many, a machine that slows down for some seconds does so to both."""
FILES = 8_192
GENERATOR_LIMIT = 0.9
"""Share of its processor from which the generator itself is the limit."""
SHED = 503


@dataclass(slots=True)
class Phase:
    """The outcome of one load."""

    name: str
    calls: list[Made] = field(default_factory=list)
    spent: pinned.Spent | None = None
    generator: float = 0.0
    """Share of a processor that the generator took."""
    to_accept: int = 0
    """Most connections that waited in the kernel."""
    accepted: int = 0
    """Most connections that were open."""
    seconds: float = 0.0

    @property
    def answered(self) -> list[Made]:
        """Calls that were answered as is right; of probes of the big-V nothing is counted."""
        return [made for made in self.calls if 200 <= made.answer.status < 300 and made.kind != "big-V"]

    @property
    def shed(self) -> list[Made]:
        """Calls that were answered 503."""
        return [made for made in self.calls if made.answer.status == SHED]

    @property
    def wrong(self) -> list[Made]:
        """Calls that had another answer, or none."""
        return [made for made in self.calls if not 200 <= made.answer.status < 300 and made.answer.status != SHED]

    def p(self, share: float, calls: Iterable[Made] | None = None) -> float:
        """The time that a share of the answered calls do not exceed, in ms; 0 without any."""
        times = [made.seconds for made in (self.answered if calls is None else calls)]
        return percentile(times, share) if times else 0.0

    def row(self) -> list[str | float]:
        """The row of the report."""
        assert self.spent is not None
        return [
            self.name,
            round(len(self.calls) / self.seconds, 1),
            round(len(self.answered) / self.seconds, 1),
            round(len(self.shed) / self.seconds, 1),
            len(self.wrong),
            round(self.p(0.5), 1),
            round(self.p(0.99), 1),
            round(self.p(0.99, self.shed), 1),
            round(self.spent.mean("feedsite_http_seconds"), 1),
            self.accepted,
            self.to_accept,
            round(self.generator, 2),
        ]


COLUMNS = (
    "load",
    "calls/s",
    "answered/s",
    "503/s",
    "other",
    "p50 ms",
    "p99 ms",
    "p99 of 503",
    "mean in Django",
    "open",
    "to accept",
    "generator",
)


def run(crowd: Crowd) -> Report:
    """Run the benchmark, and return its report."""
    report = Report(
        "load",
        __doc__.splitlines()[0],
        COLUMNS,
        f"{crowd.size.load_seconds:g} s of each load; ms from when a call was to be sent; `generator` is its share of "
        "a processor",
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(FILES, hard)), hard))
    gc.collect()
    gc.freeze()
    try:
        with pinned.site() as ports:
            run_ = Run(crowd, ports)
            asyncio.run(run_.everything())
            run_.tell(report)
    finally:
        gc.unfreeze()
    return report


class Run:
    """All loads of one site, one after another."""

    def __init__(self, crowd: Crowd, ports: pinned.Ports) -> None:
        self.crowd, self.ports, self.size = crowd, ports, crowd.size
        self.chance = random.Random(25)  # noqa: S311 (no secret)
        self.ledger = Ledger()
        self.acts = Acts(crowd, self.ledger, self.chance)
        self.phases: dict[str, Phase] = {}
        self.capacity = 0.0
        self.returned: list[float] = []
        self.heard: list[tuple[int, float]] = []

    async def everything(self) -> None:
        """Run all loads."""
        self.generator = Generator(self.ports.web, self.ports.stream, self.chance)
        seconds = self.size.load_seconds
        await self.warm_up()
        requests = [self.acts.request("GET", f"{API}/stream", user) for user in self.crowd.people]
        streams = await listening(
            self.ports.stream, requests[: self.size.load_streams], lambda item, at: self.heard.append((item, at))
        )
        for clients in CLIENTS:
            name = f"closed, {clients} client{'s' if clients > 1 else ''}"
            async with self.phase(name):
                await self.generator.closed(self.acts, clients=clients, seconds=seconds / 2)
            self.capacity = max(self.capacity, len(self.phases[name].answered) / self.phases[name].seconds)
        for share in (LIGHT, HEAVY):
            await self.open(f"open, {share:.0%}", share, seconds)
        for _ in range(OVERLOADS):
            await self.open(f"open, {BEYOND:.0%}", BEYOND, seconds)
            earlier = len(self.phases["afterwards"].calls) if "afterwards" in self.phases else 0
            afterwards = await self.open("afterwards", LIGHT, max(RETURN_SECONDS, seconds))
            limit = self.phases[f"open, {HEAVY:.0%}"].p(0.99) / 1000
            self.returned.append(returned(afterwards.calls[earlier:], limit))
        await self.with_big_v(seconds)
        for stream in streams:
            stream.transport.abort()
        self.generator.close()

    async def open(self, name: str, share: float, seconds: float) -> Phase:
        """Run an open loop at a share of the capacity, as a phase of this name or as more of it."""
        async with self.phase(name):
            await self.generator.open(self.acts, rate=share * self.capacity, seconds=seconds)
        return self.phases[name]

    async def warm_up(self) -> None:
        """Every person's windows are built, and every kind of page has been served."""
        for user in self.crowd.people:
            await self.generator.asked(self.acts.request("GET", f"{API}/timeline/home", user))
        await self.generator.closed(self.acts, clients=4, seconds=self.size.load_seconds / 4)
        self.generator.taken()
        await asyncio.sleep(min(3.0, self.size.load_seconds))

    async def with_big_v(self, seconds: float) -> None:
        """A load with and without a big-V who publishes all the time, in turns."""
        for number in range(2 * BIG_V_ROUNDS):
            publishes = number % 2 == 1
            async with self.phase(BIG_V if publishes else NO_BIG_V):
                publishing = asyncio.create_task(self.publish_as_big_v()) if publishes else None
                await self.generator.open(self.acts, rate=LIGHT * self.capacity, seconds=seconds / 2)
                if publishing:
                    publishing.cancel()
                    with suppress(asyncio.CancelledError):
                        await publishing  # raises what ended it before

    async def publish_as_big_v(self) -> None:
        """Publish again and again, until cancelled."""
        while True:
            await self.generator.call(self.acts.published_by(self.crowd.big_v, "big-V"), time.monotonic())
            await asyncio.sleep(min(BIG_V_EVERY, self.size.load_seconds / 5))

    def phase(self, name: str) -> "Watched":
        """Watch what runs within, as a phase of this name, or as more of it."""
        phase = self.phases.setdefault(name, Phase(name))
        return Watched(phase, self.generator, self.ports)

    # --- The report ------------------------------------------------------------------------------------------
    def tell(self, report: Report) -> None:
        """Fill the report in."""
        report.rows = [phase.row() for phase in self.phases.values()]
        heavy, beyond = self.phases[f"open, {HEAVY:.0%}"], self.phases[f"open, {BEYOND:.0%}"]
        every_call = [made for phase in self.phases.values() for made in phase.calls]
        unnamed = sum(made.answer.status == SHED and not made.answer.retry_after for made in every_call)
        ratio = report.ratio
        ratio(
            "p99 of what is answered at 200 % / at 80 %", over(beyond.p(0.99), heavy.p(0.99)), at_most=OVERLOAD_TARGET
        )
        ratio("answered at 200 % / capacity", len(beyond.answered) / beyond.seconds / self.capacity, at_least=0.75)
        ratio(
            "answers but 2xx and 503 / calls",
            sum(len(phase.wrong) for phase in self.phases.values()) / len(every_call),
            at_most=0,
        )
        ratio("503 without Retry-After / calls", unnamed / len(every_call), at_most=0)
        ratio("shed at 80 % / calls", len(heavy.shed) / len(heavy.calls))
        ratio(f"seconds until all is as before / {RETURN_SECONDS:g}", median(self.returned) / RETURN_SECONDS, at_most=1)
        ratio("acknowledged writes that are lost", self.ledger.lost(), at_most=0)
        ratio("writes that were answered 503 and done", self.ledger.carried_out(), at_most=0)
        big_v, without = self.phases[BIG_V], self.phases[NO_BIG_V]
        ratio(
            "p99 of others while a big-V publishes / without",
            over(big_v.p(0.99), without.p(0.99)),
            at_most=BIG_V_TARGET,
        )
        times = ", ".join(f"{seconds:.1f}" for seconds in self.returned)
        report.notes.append(f"All was as before {times} s after each time beyond the capacity.")
        report.notes += [self.by_kind(heavy), self.by_kind(beyond), self.busiest(), self.written(), self.streams()]
        if any(phase.generator > GENERATOR_LIMIT for phase in self.phases.values()):
            report.notes.append("**The generator was the limit** of a load above: its processor was busy.")

    def by_kind(self, phase: Phase) -> str:
        """p50 and p99 of every kind."""
        kinds = {kind: list(calls) for kind, calls in groupby(sorted(phase.answered, key=kind_of), kind_of)}
        said = (f"{kind} {phase.p(0.5, calls):.0f} / {phase.p(0.99, calls):.0f}" for kind, calls in kinds.items())
        return f"p50 / p99 in ms by kind ({phase.name}): {', '.join(said)}."

    def busiest(self) -> str:
        """The kinds of process by their processor time, beyond the capacity: the first one saturates it."""
        phase = self.phases[f"open, {BEYOND:.0%}"]
        assert phase.spent is not None
        busy = [f"{kind} {share:.0%}" for kind, share in phase.spent.busy() if share >= 0.005]
        whole = sum(share for _, share in phase.spent.busy())
        return f"The site's processor is busy for {whole:.0%} ({phase.name}): {', '.join(busy)}."

    def written(self) -> str:
        """How many writes were held against PostgreSQL."""
        done = ", ".join(f"{len(pairs):,} {kind}" for kind, pairs in self.ledger.done.items())
        refused = sum(map(len, self.ledger.refused.values()))
        unknown = f"{self.ledger.unknown:,} had another answer"
        return f"Writes looked for in PostgreSQL: {done} acknowledged, {refused:,} answered 503; {unknown}."

    def streams(self) -> str:
        """How long after its acknowledgement an item was heard of on the open streams."""
        published = self.ledger.published
        times = [max(0.0, at - published[item]) for item, at in self.heard if item in published]
        if not times:
            return "No stream heard of an item."
        told = f"{percentile(times, 0.5):.0f} / {percentile(times, 0.99):.0f} ms"
        return f"Open streams heard of an item {told} (p50 / p99) after it was acknowledged, {len(times):,} times."


BIG_V, NO_BIG_V = "50 %, a big-V publishes", "50 %, it is silent"


class Watched:
    """A phase while it runs: its calls, what the site spends, and the kernel's queue."""

    def __init__(self, phase: Phase, generator: Generator, ports: pinned.Ports) -> None:
        self.phase, self.generator, self.ports = phase, generator, ports

    async def __aenter__(self) -> None:
        self.generator.taken()
        self.before = pinned.spent()
        self.began, self.own = time.monotonic(), time.process_time()
        self.looking = asyncio.create_task(every(LOOK_SECONDS, self.look))

    def look(self) -> None:
        """Look at the queues."""
        self.phase.to_accept = max(self.phase.to_accept, pinned.to_accept(self.ports.web))
        self.phase.accepted = max(self.phase.accepted, pinned.accepted(self.ports.web))

    async def __aexit__(self, *error: object) -> None:
        self.looking.cancel()
        phase, seconds = self.phase, time.monotonic() - self.began
        whole = phase.seconds + seconds
        own = time.process_time() - self.own
        phase.generator = (phase.generator * phase.seconds + own) / whole
        phase.seconds = whole
        since = pinned.spent().since(self.before)
        phase.spent = since if phase.spent is None else phase.spent.plus(since)
        phase.calls += self.generator.taken()


def returned(calls: list[Made], limit: float) -> float:
    """Seconds from the first call until the last second in which calls were shed or took longer than the limit."""
    begin = min(made.intended for made in calls)
    slow = [made for made in calls if made.answer.status == SHED or made.seconds > limit]
    times = sorted(made.intended - begin for made in slow)
    # One call of a hundred may be as slow at any time: a second counts by more than that.
    seconds = [list(some) for _, some in groupby(times, int)]
    passed = max(made.intended for made in calls) - begin
    busy = [some[-1] for some in seconds if len(some) > 0.05 * len(calls) / passed]
    return max(busy, default=0.0)


def kind_of(made: Made) -> str:
    """The kind of a call."""
    return made.kind


def over(one: float, other: float) -> float:
    """A ratio; 0 where there is nothing to compare with."""
    return one / other if other else 0.0
