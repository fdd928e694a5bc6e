"""The curve over thresholds as an SVG of its own, for a file."""

import math
from collections.abc import Sequence
from html import escape

from operation.simulation import NEVER, NO_LEVEL, Outcome, Point

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 210, 34, 46
COLOURS = ("#0072b2", "#009e73", "#e69f00", "#d55e00")
"""Of push levels 1 to 4; told apart by the colour-blind (Okabe and Ito)."""


def picture(points: Sequence[Point], straight: Sequence[Outcome], best: Point, *, fixed: float, title: str) -> str:
    """CPU of deliveries and pulls a day over the threshold, a line a push level; `straight` policies, which have no
    threshold, dashed. `fixed`, what a day costs under every policy, is left out. Costs are drawn by powers of ten.
    """
    finite = sorted({point.threshold for point in points if point.threshold != NEVER})
    places = {threshold: math.log10(threshold) for threshold in finite}
    places[NEVER] = (max(places.values()) if places else 0.0) + 0.5
    costs = [total - fixed for total in (*(point.total for point in points), *(each.total for each in straight))]
    most = max(1e-3, *costs)
    low = math.floor(math.log10(max(min(costs), most / 1e6)))
    high = math.ceil(math.log10(most) + 1e-9)

    def x(threshold: int) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * places[threshold] / places[NEVER], 1)

    def y(total: float) -> float:
        share = (math.log10(max(total - fixed, 10.0**low)) - low) / (high - low)
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share, 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        "<style>text { font: 12px sans-serif }</style>",
        f'<title>{escape(title)}</title><rect width="100%" height="100%" fill="#fff"/>',
        _text(LEFT, 18, f"{title}: seconds of a core a day for deliveries and pulls"),
    ]
    for power in range(low, high + 1):
        at = y(fixed + 10.0**power)
        parts.append(f'<path d="M{LEFT} {at}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(_text(LEFT - 6, at + 4, f"{10.0**power:,g}", anchor="end"))
    decades = [threshold for threshold in finite if math.log10(threshold).is_integer()]
    parts += [_text(x(each), HEIGHT - BOTTOM + 18, f"{each:,}", anchor="middle") for each in decades]
    parts.append(_text(x(NEVER), HEIGHT - BOTTOM + 18, "nobody", anchor="middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "followers from which one is big-V", anchor="middle"))
    names: list[tuple[float, str, str]] = []
    for each in straight:
        parts.append(f'<path d="M{LEFT} {y(each.total)}H{WIDTH - RIGHT}" stroke="#666" stroke-dasharray="5 4"/>')
        names.append((y(each.total), f"{each.policy} ({each.total - fixed:,.1f})", "#444"))
    for push_level, colour in enumerate(COLOURS, 1):
        line = [point for point in points if point.push_level == push_level]
        path = "L".join(f"{x(point.threshold)} {y(point.total)}" for point in line)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        # At the left, where lines part; at the right all are one.
        said = "big-Vs push to nobody" if push_level == NO_LEVEL else f"big-Vs push from level {push_level}"
        names.append((y(line[0].total), said, colour))
    parts.append(f'<circle cx="{x(best.threshold)}" cy="{y(best.total)}" r="5" fill="none" stroke="#000"/>')
    height = 0.0
    for at, name, colour in sorted(names):
        height = max(at + 4, height + 15)
        parts.append(_text(WIDTH - RIGHT + 8, height, name, colour=colour))
    parts.append(_text(WIDTH - RIGHT + 8, HEIGHT - 8, "\N{WHITE CIRCLE} recommended"))
    return "\n".join([*parts, "</svg>\n"])


def _text(x: float, y: float, words: str, *, anchor: str = "start", colour: str = "#222") -> str:
    return f'<text x="{x}" y="{round(y, 1)}" text-anchor="{anchor}" fill="{colour}">{escape(words)}</text>'
