"""Growth laws: y = factor * x ** exponent, fitted by least squares between the logarithms."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)
"""The 97.5 % quantiles of the t distribution, by degrees of freedom from 1 on; the normal distribution's 1.96 beyond.
"""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Fit:
    """0 is flat, 1 linear. The exponent lies between `low` and `high` with 95 % confidence, if the law holds at all;
    of two points nothing is known of that. `r2` is the share of the variance that the law explains: little of a flat
    curve.
    """

    exponent: float
    low: float | None
    high: float | None
    factor: float
    r2: float

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return written(self.exponent)
        return f"{written(self.exponent)} ({written(self.low)} to {written(self.high)})"

    def at(self, x: float) -> float:
        """The law's value at `x`."""
        return self.factor * x**self.exponent


def written(value: float) -> str:
    """With two digits, and no minus before a nought."""
    return f"{round(value, 2) + 0.0:.2f}"


def fitted(points: Points) -> Fit:
    """The law through points, of which at least two have different x; all are above 0."""
    xs = [math.log(x) for x, _ in points]
    ys = [math.log(y) for _, y in points]
    count = len(points)
    x_mean, y_mean = sum(xs) / count, sum(ys) / count
    spread = sum((x - x_mean) ** 2 for x in xs)
    exponent = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True)) / spread
    factor = y_mean - exponent * x_mean
    left = sum((y - factor - exponent * x) ** 2 for x, y in zip(xs, ys, strict=True))
    whole = sum((y - y_mean) ** 2 for y in ys)
    low = high = None
    if freedom := count - 2:
        student = STUDENT[freedom - 1] if freedom <= len(STUDENT) else 1.96
        margin = student * math.sqrt(left / freedom / spread)
        low, high = exponent - margin, exponent + margin
    return Fit(exponent, low, high, math.exp(factor), 1 - left / whole if whole else 1.0)


@dataclass(slots=True)
class Curve:
    """One line of a chart. A curve that follows no law has no fit."""

    name: str
    points: list[tuple[float, float]]
    fit: Fit | None = None


@dataclass(slots=True)
class Chart:
    """Curves over the same x, both axes by powers of ten; `name` is part of a file's name."""

    name: str
    title: str
    x: str
    """The axis's quantity, with its unit."""
    y: str
    curves: list[Curve] = field(default_factory=list)

    def add(self, name: str, points: Points) -> Fit:
        """Draw a curve with its law, which is returned."""
        law = fitted(points)
        self.curves.append(Curve(name, [(float(x), float(y)) for x, y in points], law))
        return law
