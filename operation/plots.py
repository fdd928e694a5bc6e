"""Small plots of the samples: what goes where in an SVG of `WIDTH` by `HEIGHT`. The template draws it.

A rate or a share between two samples is the growth of counters, which begin at zero again when the processes are
started anew: what is less than before has grown from zero.

See docs/decisions.md: Counters are kept as they are, and subtracted when they are drawn.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from django.utils.functional import Promise

WIDTH, HEIGHT = 400, 170
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 8, 22
POINTS = 120
"""Points of a line at most: a longer time is drawn in longer steps."""
NOTHING = "\N{EN DASH}"
"""Stands where there is no value."""
Text = str | Promise


@dataclass(frozen=True, slots=True)
class Step:
    """The step between two samples."""

    at: datetime
    seconds: float
    now: dict[str, Any]
    before: dict[str, Any]

    def value(self, name: str) -> float | None:
        """A gauge at the end of the step."""
        found = self.now.get(name)
        return None if found is None else float(found)

    def growth(self, name: str) -> float:
        """The growth of a counter within the step."""
        return _grown(self.now.get(name, 0), self.before.get(name, 0))

    def growths(self, name: str) -> dict[str, float]:
        """The growth of every label."""
        now, before = self.now.get(name, {}), self.before.get(name, {})
        return {label: _grown(value, before.get(label, 0)) for label, value in now.items()}


def _grown(now: float, before: float) -> float:
    return float(now - before if now >= before else now)


def steps(samples: Sequence[tuple[datetime, dict[str, Any]]]) -> list[Step]:
    """At most `POINTS` steps through samples, which are in their order."""
    stride = max(1, math.ceil(len(samples) / POINTS))
    kept = list(samples[::-1][::stride])[::-1]
    return [Step(at, (at - since).total_seconds(), now, before) for (since, before), (at, now) in pairwise(kept)]


def quantile(buckets: dict[str, float], share: float) -> float | None:
    """The value below which `share` of a histogram lies, evenly spread within a bucket, in its unit; None if empty.

    `buckets`: upper bound -> how many up to it. Beyond the last bound it is that bound.
    """
    ordered = sorted((math.inf if bound == "+Inf" else float(bound), count) for bound, count in buckets.items())
    total = ordered[-1][1] if ordered else 0
    if total <= 0:
        return None
    low, under = 0.0, 0.0
    for bound, count in ordered:
        if count >= share * total and count > under:
            return low if bound == math.inf else low + (bound - low) * (share * total - under) / (count - under)
        low, under = bound, count
    return low


# --- Geometry --------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Line:
    """One line, or one layer of a stack, of a plot."""

    name: Text
    path: str
    last: str
    """The line's last value, written for people."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark of an axis: its place in the drawing, and its label."""

    place: float
    label: Any


@dataclass(slots=True)
class Plot:
    """A plot, ready to be drawn: its lines and the marks of its axes."""

    title: Text
    lines: list[Line] = field(default_factory=list)
    is_stacked: bool = False
    rows: list[Tick] = field(default_factory=list)
    columns: list[Tick] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether no line has a value."""
        return not any(line.path for line in self.lines)


Write = Callable[[float], str]
Values = Sequence[float | None]


def plot(title: Text, taken: Sequence[Step], lines: Iterable[tuple[Text, Values]], write: Write) -> Plot:
    """Lines from zero up, with gaps where there is no value."""
    made = list(lines)
    top = round_up(max((value for _, values in made for value in values if value is not None), default=0))
    drawn = [Line(name, _path(taken, values, top), _last(values, write)) for name, values in made]
    return Plot(title, drawn, rows=_rows(top, write), columns=_columns(taken))


def stack(title: Text, taken: Sequence[Step], layers: Sequence[tuple[Text, Values]], write: Write) -> Plot:
    """Layers of a whole, which is 1; a step in which nothing happened is a gap."""
    below: list[float] = [0.0] * len(taken)
    drawn = []
    for name, values in layers:
        above = [base if value is None else base + value for base, value in zip(below, values, strict=True)]
        drawn.append(Line(name, _area(taken, below, above, values), _last(values, write)))
        below = above
    return Plot(title, drawn, is_stacked=True, rows=_rows(1.0, write), columns=_columns(taken))


def round_up(value: float) -> float:
    """The next number of the form 1, 2 or 5 times a power of ten; 1 for nothing."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return float(next(factor * power for factor in (1, 2, 5, 10) if factor * power >= value * 0.999999))


def _x(taken: Sequence[Step], place: int) -> float:
    span = (taken[-1].at - taken[0].at).total_seconds() or 1.0
    passed = (taken[place].at - taken[0].at).total_seconds()
    return round(LEFT + (WIDTH - LEFT - RIGHT) * passed / span, 1)


def _y(value: float, top: float) -> float:
    return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(value / top, 1.0), 1)


def _path(taken: Sequence[Step], values: Values, top: float) -> str:
    parts, pen = [], "M"
    for place, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        # A point between two gaps is a line of no length, which round ends make a dot.
        parts.append(f"{pen}{_x(taken, place)} {_y(value, top)}{'h0' if pen == 'M' else ''}")
        pen = "L"
    return "".join(parts)


def _area(taken: Sequence[Step], below: Sequence[float], above: Sequence[float], values: Values) -> str:
    parts = []
    run: list[int] = []
    for place in [*range(len(values)), None]:
        if place is not None and values[place] is not None:
            run.append(place)
            continue
        if run:
            ends = {run[0]: _x(taken, run[0]) - 0.8, run[-1]: _x(taken, run[-1]) + 0.8}
            upper = [f"{round(ends.get(each, _x(taken, each)), 1)} {_y(above[each], 1.0)}" for each in run]
            lower = [f"{round(ends.get(each, _x(taken, each)), 1)} {_y(below[each], 1.0)}" for each in reversed(run)]
            parts.append(f"M{'L'.join(upper)}L{'L'.join(lower)}Z")
        run = []
    return "".join(parts)


def _last(values: Values, write: Write) -> str:
    value = next((each for each in reversed(values) if each is not None), None)
    return NOTHING if value is None else write(value)


def _rows(top: float, write: Write) -> list[Tick]:
    return [Tick(_y(top * share, top), write(top * share)) for share in (0, 0.5, 1)]


def _columns(taken: Sequence[Step]) -> list[Tick]:
    if len(taken) < 2:
        return []
    places = sorted({round(share * (len(taken) - 1)) for share in (0.12, 0.5, 0.88)})
    return [Tick(_x(taken, place), taken[place].at) for place in places]
