"""The curve over thresholds as an SVG of its own, for a file."""

import math
from collections.abc import Sequence

from operation.simulation import NEVER, NO_LEVEL, Outcome, Point
from operation.svg import Drawing, PowersOfTen, number

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 220, 34, 46
PUSH_LEVELS = (1, 2, 3, NO_LEVEL)


def picture(points: Sequence[Point], straight: Sequence[Outcome], best: Point, *, fixed: float, title: str) -> str:
    """CPU of deliveries and pulls a day over the threshold, a line a push level; `straight` policies, which have no
    threshold, dashed. `fixed`, what a day costs under every policy, is left out. Costs are drawn by powers of ten.
    """
    finite = sorted({point.threshold for point in points if point.threshold != NEVER})
    places = {threshold: math.log10(threshold) for threshold in finite}
    places[NEVER] = (max(places.values()) if places else 0.0) + 0.5
    costs = [total - fixed for total in (*(point.total for point in points), *(each.total for each in straight))]
    most = max(1e-3, *costs)
    right, foot = WIDTH - RIGHT, HEIGHT - BOTTOM
    axis = PowersOfTen((max(min(costs), most / 1e6), most), foot, TOP)

    def x(threshold: int) -> float:
        return LEFT + (right - LEFT) * places[threshold] / places[NEVER]

    def y(total: float) -> float:
        return axis.at(total - fixed)

    said = f"{title}: seconds of a core a day for deliveries and pulls"
    drawing = Drawing(WIDTH, HEIGHT, title=title, description=f"{said}, over the threshold for big-Vs.")
    drawing.text(LEFT, 18, said, kind="strong")
    for tick in axis.ticks():
        drawing.path([(LEFT, axis.at(tick)), (right, axis.at(tick))], "rule")
        drawing.text(LEFT - 6, axis.at(tick) + 4, number(tick), anchor="end", kind="faint")
    for threshold in finite:
        if math.log10(threshold).is_integer():
            drawing.text(x(threshold), foot + 18, f"{threshold:,}", anchor="middle", kind="faint")
    drawing.text(x(NEVER), foot + 18, "nobody", anchor="middle", kind="faint")
    drawing.text((LEFT + right) / 2, HEIGHT - 8, "followers from which one is big-V", anchor="middle")
    names: list[tuple[float, str, int | None]] = []
    for each in straight:
        drawing.path([(LEFT, y(each.total)), (right, y(each.total))], "axis dashed")
        names.append((y(each.total), f"{each.policy} ({each.total - fixed:,.1f})", None))
    for series, push_level in enumerate(PUSH_LEVELS):
        line = [point for point in points if point.push_level == push_level]
        drawing.path([(x(point.threshold), y(point.total)) for point in line], f"line s{series}")
        # At the left, where lines part; at the right all are one.
        drawing.mark(x(line[0].threshold), y(line[0].total), series)
        who = "big-Vs push to nobody" if push_level == NO_LEVEL else f"big-Vs push from level {push_level}"
        names.append((y(line[0].total), who, series))
    drawing.circle(x(best.threshold), y(best.total), 6, "ink")
    drawing.labels(right + 8, names, top=TOP, bottom=foot + 20)
    drawing.text(right + 8, HEIGHT - 8, "\N{WHITE CIRCLE} recommended")
    return str(drawing)
