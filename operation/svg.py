"""Drawings as SVG files: text stays text, the same input gives the same bytes, and both light and dark pages can show
them. Colours are told apart by the colour-blind (Okabe and Ito); nothing is said by colour alone.

See docs/decisions.md: Charts are drawn by 300 lines of our own.
See docs/decisions.md: Code written by hand, and why it stays.
"""

import math
from collections.abc import Iterable, Sequence
from html import escape

SERIES = 4
"""Colours and marks there are; what comes after begins with the first again."""
STYLE = """
svg {
  --ink: #222; --faint: #595959; --rule: #ddd; --paper: #fff;
  --c0: #0072b2; --c1: #b34700; --c2: #007a59; --c3: #a3528a;
}
@media (prefers-color-scheme: dark) {
  svg {
    --ink: #e6e6e6; --faint: #a8a8a8; --rule: #3d3d3d; --paper: #16181b;
    --c0: #56b4e9; --c1: #ff9e4a; --c2: #3fc79a; --c3: #e79bc9;
  }
}
text { font: 12px sans-serif; fill: var(--ink) }
.faint { fill: var(--faint) } .strong { font-weight: bold }
.paper { fill: var(--paper) } .rule { stroke: var(--rule) } .axis { stroke: var(--faint) } .ink { stroke: var(--ink) }
path, circle, rect.outline { fill: none }
.s0 { stroke: var(--c0) } .s1 { stroke: var(--c1) } .s2 { stroke: var(--c2) } .s3 { stroke: var(--c3) }
text.t0 { fill: var(--c0) } text.t1 { fill: var(--c1) } text.t2 { fill: var(--c2) } text.t3 { fill: var(--c3) }
.line { stroke-width: 2 } .dashed { stroke-dasharray: 5 4 }
.f0 { fill: var(--c0) } .f1 { fill: var(--c1) }
"""
LINE = 16
"""From one line of text to the next."""
LETTER = 6.3
"""Width of a letter of the usual text, about; more than the mean, so that nothing overlaps."""


class Drawing:
    """A drawing in the making. `title` and `description` are for readers who do not see it."""

    def __init__(self, width: int, height: int, *, title: str, description: str = "") -> None:
        size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        named = f'role="img" aria-label="{escape(title)}"'
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {named}>',
            f"<title>{escape(title)}</title>",
        ]
        if description:
            self.parts.append(f"<desc>{escape(description)}</desc>")
        self.parts.append(f"<style>{STYLE}</style>")
        self.parts.append('<rect class="paper" width="100%" height="100%"/>')

    def __str__(self) -> str:
        return "\n".join([*self.parts, "</svg>\n"])

    def text(
        self, x: float, y: float, words: str, *, anchor: str = "start", kind: str = "", turned: bool = False
    ) -> None:
        """Write; `turned`, from below upwards."""
        more = f' class="{kind}"' if kind else ""
        more += f' transform="rotate(-90 {_n(x)} {_n(y)})"' if turned else ""
        self.parts.append(f'<text x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}"{more}>{escape(words)}</text>')

    def path(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """Draw a line through points; `kind` is its CSS class."""
        line = "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
        self.parts.append(f'<path d="M{line}" class="{kind}"/>')

    def circle(self, x: float, y: float, radius: float, kind: str) -> None:
        """Draw a circle; `kind` is its CSS class."""
        self.parts.append(f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" class="{kind}"/>')

    def rect(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """Draw a rectangle from its upper left corner; `kind` is its CSS class."""
        size = f'width="{_n(width)}" height="{_n(height)}"'
        self.parts.append(f'<rect x="{_n(x)}" y="{_n(y)}" {size} class="{kind}"/>')

    def mark(self, x: float, y: float, series: int) -> None:
        """A point of a series: circle, square, triangle, diamond."""
        kind = f"line s{series % SERIES}"
        match series % SERIES:
            case 0:
                self.circle(x, y, 4, kind)
            case 1:
                self.rect(x - 3.5, y - 3.5, 7, 7, f"{kind} outline")
            case 2:
                self.path([(x, y - 5), (x + 4.5, y + 3.5), (x - 4.5, y + 3.5), (x, y - 5)], kind)
            case _:
                self.path([(x, y - 5), (x + 5, y), (x, y + 5), (x - 5, y), (x, y - 5)], kind)

    def labels(
        self, x: float, wanted: Iterable[tuple[float, str, int | None]], *, top: float = 0, bottom: float = math.inf
    ) -> None:
        """Texts below each other, as near to the wanted heights as none overlaps: (height, words, series), with the
        series' mark and in its colour.
        """
        placed = sorted(wanted, key=lambda one: one[:2])
        heights: list[float] = []
        for at, _, _ in placed:
            heights.append(max(at, heights[-1] + LINE if heights else top))
        limit = bottom
        for place in range(len(heights) - 1, -1, -1):  # labels pushed out at the end move back, and those above
            heights[place] = min(heights[place], limit)
            limit = heights[place] - LINE
        for height, (_, words, series) in zip(heights, placed, strict=True):
            if series is not None:
                self.mark(x + 5, height, series)
            self.text(x + 15, height + 4, words, kind="faint" if series is None else f"t{series % SERIES}")


class PowersOfTen:
    """An axis from the power of ten below the least value to the one above the most, between two places."""

    def __init__(self, values: Iterable[float], start: float, end: float, *, whole: bool = True) -> None:
        known = [math.log10(value) for value in values]
        self.low, self.high = min(known), max(known)
        if whole:
            self.low, self.high = math.floor(self.low + 1e-9), math.ceil(self.high - 1e-9)
        if self.high - self.low < 1e-9:
            self.high = self.low + 1
        self.start, self.end = start, end

    def at(self, value: float) -> float:
        """The place of a value on the scale; values beyond its ends stand at the end."""
        share = (math.log10(max(value, 1e-300)) - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * min(max(share, 0.0), 1.0)

    def ticks(self) -> list[float]:
        """Powers of ten within it, and 2 and 5 times these where they are fewer than three."""
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        factors = (1,) if self.high - self.low > 2 else (1, 2, 5)
        values = [factor * 10.0**power for power in powers for factor in factors]
        return [value for value in values if self.low - 1e-9 <= math.log10(value) <= self.high + 1e-9]


def number(value: float) -> str:
    """A number as people write it: 1,000,000 or 0.002."""
    return f"{value:,.0f}" if value >= 1 else f"{value:.10f}".rstrip("0").rstrip(".")


def _n(value: float) -> str:
    return f"{round(value, 1):g}"
