"""The charts of the reports as SVG files: growth curves with their laws, and ratios against their targets.

See docs/decisions.md: Charts are drawn by 300 lines of our own.
"""

from collections.abc import Iterator

from benchmarks.fits import Chart, written
from benchmarks.measure import Ratio, Report
from operation.svg import LETTER, SERIES, Drawing, PowersOfTen, number

WIDTH = 860
LEFT, TOP, BOTTOM = 70, 44, 56
HEIGHT = 400
ROW = 22
BAR = 240
"""The width in which bars stand; the target is drawn at `AT_TARGET` of it."""
AT_TARGET = 0.6


def charts(report: Report) -> Iterator[tuple[str, str, str]]:
    """The plots of a report: the file's name, a description in words, and the SVG."""
    for chart in report.charts:
        said = described(chart)
        yield f"{report.name}.{chart.name}.svg".replace("_", "-"), said, growth(chart, said)
    aimed = [ratio for ratio in report.ratios if ratio.target]
    if aimed:
        missed = sum(ratio.is_met is False for ratio in aimed)
        said = f"{report.name}: {len(aimed) - missed} of {len(aimed)} targets met"
        yield f"{report.name}.targets.svg".replace("_", "-"), said, targets(report.name, aimed, said)


def described(chart: Chart) -> str:
    """A chart in words."""
    laws = "; ".join(f"{curve.name}: exponent {curve.fit}" for curve in chart.curves if curve.fit)
    return f"{chart.title}, in {chart.y}. {laws}"


def growth(chart: Chart, said: str) -> str:
    """Points as measured, on the line of their law; both axes by powers of ten."""
    names = [f"{curve.name}: {written(curve.fit.exponent)}" if curve.fit else curve.name for curve in chart.curves]
    right = WIDTH - round(max(map(len, names)) * LETTER) - 44
    foot = HEIGHT - BOTTOM
    points = [point for curve in chart.curves for point in curve.points]
    across = PowersOfTen((x for x, _ in points), LEFT + 14, right - 14, whole=False)
    up = PowersOfTen((y for _, y in points), foot, TOP)
    drawing = Drawing(WIDTH, HEIGHT, title=chart.title, description=said)
    drawing.text(LEFT, 20, chart.title, kind="strong")
    drawing.text(right + 29, 20, "growth exponent", kind="faint")
    for tick in up.ticks():
        drawing.path([(LEFT, up.at(tick)), (right, up.at(tick))], "rule")
        drawing.text(LEFT - 6, up.at(tick) + 4, number(tick), anchor="end", kind="faint")
    for x in sorted({x for x, _ in points}):
        drawing.path([(across.at(x), foot), (across.at(x), foot + 5)], "axis")
        drawing.text(across.at(x), foot + 20, number(x), anchor="middle", kind="faint")
    drawing.path([(LEFT, foot), (right, foot)], "axis")
    drawing.text((LEFT + right) / 2, HEIGHT - 12, f"{chart.x} (by powers of ten)", anchor="middle")
    drawing.text(16, (TOP + foot) / 2, f"{chart.y} (by powers of ten)", anchor="middle", turned=True)
    labels = []
    for series, (curve, name) in enumerate(zip(chart.curves, names, strict=True)):
        place = series % SERIES
        xs = [x for x, _ in curve.points]
        end = curve.points[-1][1]
        if curve.fit:
            law = [(across.at(x), up.at(curve.fit.at(x))) for x in (min(xs), max(xs))]
            drawing.path(law, f"s{place} dashed")
            end = curve.fit.at(max(xs))
        for x, y in curve.points:
            drawing.mark(across.at(x), up.at(y), place)
        labels.append((up.at(end), name, series))
    drawing.labels(right + 14, labels, top=TOP, bottom=foot)
    return str(drawing)


def targets(name: str, ratios: list[Ratio], said: str) -> str:
    """Bars of how much of what its target allows each ratio takes; what is missed goes beyond the line, is an outline,
    and is called missed.
    """
    label = max(len(ratio.name) for ratio in ratios) * LETTER
    left = round(label) + 16
    width = left + BAR + 170
    height = TOP + ROW * len(ratios) + 26
    aim = left + BAR * AT_TARGET
    drawing = Drawing(width, height, title=said, description="; ".join(_in_words(ratio) for ratio in ratios))
    drawing.text(12, 20, said, kind="strong")
    drawing.text(aim, TOP - 8, "target", anchor="middle", kind="faint")
    for place, ratio in enumerate(ratios):
        y = TOP + ROW * place
        share = _share(ratio)
        length = min(max(share * AT_TARGET, 0.0), 1.0) * BAR
        drawing.text(left - 8, y + 15, ratio.name, anchor="end")
        if ratio.is_met:
            drawing.rect(left, y + 5, length, 12, "f0")
        else:
            drawing.rect(left, y + 5.5, length, 11, "s1 line outline")
        beyond = " \N{RIGHTWARDS ARROW}" if share * AT_TARGET > 1 else ""
        drawing.text(left + BAR + 10, y + 15, f"{written(ratio.value)}{beyond}")
        drawing.text(left + BAR + 62, y + 15, ratio.target, kind="faint")
        drawing.text(
            left + BAR + 108, y + 15, "met" if ratio.is_met else "missed", kind="" if ratio.is_met else "strong"
        )
    drawing.path([(aim, TOP - 2), (aim, TOP + ROW * len(ratios))], "ink")
    words = "share of what the target allows; beyond the line is missed"
    drawing.text(left, height - 8, words, kind="faint")
    return str(drawing)


def _share(ratio: Ratio) -> float:
    """1 is what the target says; less is better."""
    if ratio.at_least is not None:
        return ratio.at_least / ratio.value if ratio.value > 0 else 10.0
    allowed = ratio.at_most or 0.0
    return ratio.value / allowed if allowed > 0 else (0.0 if ratio.is_met else 10.0)


def _in_words(ratio: Ratio) -> str:
    return f"{ratio.name}: {written(ratio.value)}, target {ratio.target}, {'met' if ratio.is_met else 'missed'}"
