"""How things are timed, and what a benchmark hands back."""

import gc
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from django.conf import settings

from benchmarks.fits import Chart, Curve, Fit

Times = dict[str, list[float]]


def interleaved(cases: Mapping[str, Callable[[int], object]], *, rounds: int, warm_up: int = 3) -> Times:
    """Seconds that each case took in each round; the warm-up rounds are dropped.

    Every round runs every case once, beginning with another one each time, and tells it the number of the round.
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


@dataclass(slots=True)
class Ratio:
    """One figure over another of the same run. `at_least` and `at_most` are targets."""

    name: str
    value: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def target(self) -> str:
        """The target as text; empty without one."""
        if self.at_least is not None:
            return f"≥ {self.at_least:g}"
        return "" if self.at_most is None else f"≤ {self.at_most:g}"

    @property
    def is_met(self) -> bool | None:
        """Whether the ratio reaches its target; None without one."""
        if self.at_least is not None:
            return self.value >= self.at_least
        return None if self.at_most is None else self.value <= self.at_most


@dataclass(slots=True)
class Report:
    """The result of one benchmark: a table, and the ratios that matter."""

    name: str
    question: str
    columns: Sequence[str]
    n: str
    """How often everything was measured."""
    rows: list[Sequence[str | float]] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    machine: dict[str, Any] = field(default_factory=dict)
    """The time, the machine and the versions of the measurement."""
    data_set: str = ""
    """The data that was measured."""
    seconds: float = 0.0
    """Seconds that the measurement took, without making the data."""

    def ratio(self, name: str, value: float, *, at_least: float | None = None, at_most: float | None = None) -> None:
        """Add a ratio to the report."""
        self.ratios.append(Ratio(name, value, at_least, at_most))

    def as_json(self) -> dict[str, Any]:
        """The report as objects that JSON can hold."""
        return asdict(self) | {"ratios": [asdict(ratio) | {"is_met": ratio.is_met} for ratio in self.ratios]}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Report":
        """The report that `as_json` wrote, in this run or an earlier one."""
        report = cls(**found)
        report.ratios = [
            Ratio(**{name: value for name, value in ratio.items() if name != "is_met"}) for ratio in found["ratios"]
        ]
        report.charts = [
            Chart(**chart | {"curves": [_curve(curve) for curve in chart["curves"]]}) for chart in found["charts"]
        ]
        return report


def _curve(found: Mapping[str, Any]) -> Curve:
    points = [(x, y) for x, y in found["points"]]
    return Curve(found["name"], points, found["fit"] and Fit(**found["fit"]))


def milliseconds(times: Sequence[float]) -> float:
    """The median, in ms."""
    return median(times) * 1000


def over(times: Times, one: str, other: str, middle: Callable[[Sequence[float]], float] = median) -> float:
    """The median of `one` over the median of `other`; the mean where what is done differs from round to round."""
    return middle(times[one]) / middle(times[other])


def percentile(times: Sequence[float], share: float) -> float:
    """The time that `share` of the times do not exceed, in ms."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000


def servers_time() -> tuple[float, float]:
    """Processor seconds so far of PostgreSQL and of Redis: of what names this site's folder, and of its children."""
    spent, processes = {"postgres": 0.0, "valkey": 0.0}, _processes()
    kinds = {number: kind for number, each in processes.items() for kind in spent if kind in each.name}
    own = {number for number in kinds if processes[number].is_of_site}
    for number, kind in kinds.items():
        if number in own or processes[number].parent in own:
            spent[kind] += processes[number].seconds
    return spent["postgres"], spent["valkey"]


def family_time(parent: int) -> float:
    """Processor seconds so far of a process and of its children."""
    return sum(each.seconds for number, each in _processes().items() if parent in (number, each.parent))


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
