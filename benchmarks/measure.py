"""How things are timed, and what a benchmark hands back."""

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

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
        if self.at_least is not None:
            return f"≥ {self.at_least:g}"
        return "" if self.at_most is None else f"≤ {self.at_most:g}"

    @property
    def is_met(self) -> bool | None:
        if self.at_least is not None:
            return self.value >= self.at_least
        return None if self.at_most is None else self.value <= self.at_most


@dataclass(slots=True)
class Report:
    """What one benchmark found: a table, and the ratios that matter."""

    name: str
    question: str
    columns: Sequence[str]
    n: str
    """How often everything was measured."""
    rows: list[Sequence[str | float]] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def ratio(self, name: str, value: float, *, at_least: float | None = None, at_most: float | None = None) -> None:
        self.ratios.append(Ratio(name, value, at_least, at_most))

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"ratios": [asdict(ratio) | {"is_met": ratio.is_met} for ratio in self.ratios]}


def milliseconds(times: Sequence[float]) -> float:
    """The median, in ms."""
    return median(times) * 1000


def over(times: Times, one: str, other: str, middle: Callable[[Sequence[float]], float] = median) -> float:
    """The median of `one` over the median of `other`; the mean where what is done differs from round to round."""
    return middle(times[one]) / middle(times[other])
