"""The scenes of the demo community's pictures: land and sea, the sky at all hours, and things on tables.

A scene paints a canvas whose generator of numbers decides the details, so the same seed paints the same picture.
"""

from collections.abc import Callable
from functools import partial
from math import cos, pi, sin

import numpy as np
from PIL import Image, ImageDraw

from community.demo_canvas import Canvas, gradient

DUSKS = (
    ((0, "#1d2b53"), (0.35, "#7a4a78"), (0.6, "#e8875b"), (0.75, "#ffd08a"), (1, "#ffe3b0")),
    ((0, "#27496d"), (0.4, "#6f86a8"), (0.65, "#f1b6a0"), (0.8, "#fde2c4"), (1, "#fff1dc")),
    ((0, "#3b2f63"), (0.45, "#b0577b"), (0.7, "#f59a6a"), (1, "#ffd9a0")),
)


def _pen(canvas: Canvas, draw: ImageDraw.ImageDraw, fine: int) -> tuple[float, float, ImageDraw.ImageDraw]:
    return canvas.width * fine, canvas.height * fine, draw


# --- Sea and land ----------------------------------------------------------------------------------------
def sea(canvas: Canvas) -> None:
    """A sunset over the sea, and a sailing boat."""
    chance = canvas.chance
    canvas.sky(*DUSKS[chance.integers(len(DUSKS))])
    level, sun = 0.62, chance.uniform(0.25, 0.75)
    canvas.paint(np.clip((canvas.noise(3) - 0.52) * 2.2, 0, 0.55) * (canvas.y < level * canvas.height), "#f7d9c8")
    canvas.glow(sun, level - 0.1, 0.3, "#ff9a4d", 0.45)
    canvas.disc(sun, level - 0.1, 0.065, "#fff3cf")
    canvas.ridge(level - 0.015, 0.05, 3, (0, "#5b4a6b"), (1, "#5b4a6b"))
    boat = chance.uniform(0.2, 0.8)
    canvas.polygon([(boat, level - 0.2), (boat, level - 0.02), (boat + 0.06, level - 0.02)], "#fff7ec")
    canvas.polygon([(boat - 0.005, level - 0.17), (boat - 0.005, level - 0.02), (boat - 0.04, level - 0.02)], "#f0d6c2")
    hull = [(boat - 0.05, level - 0.015), (boat + 0.07, level - 0.015), (boat + 0.05, level), (boat - 0.03, level)]
    canvas.polygon(hull, "#3a2b3f")
    canvas.water(level, "#2b3a5c", 0.25)


def ferry(canvas: Canvas) -> None:
    """A ferry in the morning's fog."""
    canvas.sky((0, "#9fb4c4"), (0.5, "#d9dfe0"), (0.62, "#f3ead8"), (1, "#f3ead8"))
    canvas.glow(0.7, 0.3, 0.22, "#fff0c8", 0.35)
    level, x = 0.64, canvas.chance.uniform(0.3, 0.5)
    canvas.ridge(level - 0.1, 0.12, 3, (0, "#b3c0c6"), (1, "#d5dad8"))
    for left, right, top, bottom, code in (
        (-0.18, 0.2, -0.06, 0.0, "#26435f"),
        (-0.14, 0.16, -0.13, -0.06, "#f4f2ea"),
        (-0.08, 0.08, -0.18, -0.13, "#f4f2ea"),
        (-0.01, 0.03, -0.25, -0.18, "#c4473a"),
    ):
        corners = [(x + left, level + top), (x + right, level + top), (x + right, level + bottom)]
        canvas.polygon([*corners, (x + left + 0.02 * (bottom == 0), level + bottom)], code)
    for window in range(9):
        canvas.disc(x - 0.12 + window * 0.0325, level - 0.095, 0.013, "#43617c")
    canvas.paint(np.clip((canvas.noise(3) - 0.35) * 1.1, 0, 0.6), "#e6e8e4")
    canvas.water(level, "#7c97a6", 0.3)


def hills(canvas: Canvas) -> None:
    """Hills behind hills in the haze of the morning, and birds."""
    chance = canvas.chance
    canvas.sky((0, "#6fa3c7"), (0.4, "#c9dfe6"), (0.6, "#fbe9cf"), (1, "#fbe9cf"))
    canvas.glow(chance.uniform(0.2, 0.8), 0.35, 0.3, "#ffdf9e", 0.5)
    tones = ("#a9bcc4", "#86a2a4", "#648a80", "#47705f", "#2f5546", "#1f3d33")
    for place, tone in enumerate(tones):
        canvas.ridge(0.42 + 0.1 * place, 0.16 - 0.012 * place, 2 + place, (0, tone), (0.25, tones[max(0, place - 1)]))
    _birds(canvas, 7, "#33454d")


def coast(canvas: Canvas) -> None:
    """A coast road above the sea."""
    canvas.sky((0, "#3f8fca"), (0.45, "#bfe0ee"), (0.5, "#e8f3f2"), (1, "#e8f3f2"))
    canvas.paint(np.clip((canvas.noise(4) - 0.55) * 3, 0, 0.9) * (canvas.y < 0.45 * canvas.height), "#ffffff")
    begin = 0.47 * canvas.height
    places = np.clip((canvas.y - begin) / (canvas.height - begin), 0, 1)
    sea_colours = gradient([(0, "#2f7fae"), (0.5, "#2aa0b0"), (1, "#7fd6c8")], np.repeat(places, canvas.width, 1))
    canvas.paint(np.repeat((canvas.y > begin).astype(np.float32), canvas.width, 1), sea_colours)
    foam = np.clip((canvas.noise(10, 3) - 0.6) * 5, 0, 0.6) * np.clip(places * 2, 0, 1)
    canvas.paint(foam, "#ffffff")
    slope = canvas.chance.uniform(0.9, 1.2)
    edge = (0.5 + slope * (1 - canvas.x / canvas.width - 0.55)) * canvas.height
    depth = canvas.y - (canvas.height - np.clip(edge, 0, None)) + canvas.line(6)[None, :] * 0.04 * canvas.height
    canvas.paint(
        np.clip(depth + 0.5, 0, 1),
        gradient([(0, "#7d9a4f"), (0.4, "#4f7a3d"), (1, "#33582f")], np.clip(depth / canvas.height * 1.6, 0, 1)),
    )
    road = np.exp(-(((depth / canvas.height - 0.17) / 0.045) ** 4))
    canvas.paint(road.astype(np.float32), "#6d6f78")
    dashes = np.exp(-(((depth / canvas.height - 0.17) / 0.004) ** 2)) * (np.sin(canvas.x / 9) > 0)
    canvas.paint(dashes.astype(np.float32), "#f4f0dc")


def bridge(canvas: Canvas) -> None:
    """A bridge of two towers at dawn."""
    canvas.sky(*DUSKS[1])
    level = 0.68
    canvas.glow(0.5, level, 0.35, "#ffc48a", 0.4)
    canvas.ridge(level - 0.06, 0.14, 4, (0, "#8b93ad"), (1, "#b5a9b5"))
    deck, top = level - 0.1, 0.22
    towers = (0.27, 0.73)

    def draw(draw: ImageDraw.ImageDraw, fine: int) -> None:
        width, height, pen = _pen(canvas, draw, fine)
        thick = max(2, int(0.006 * height))
        pen.rectangle((0, deck * height, width, (deck + 0.018) * height), fill=255)
        for x in towers:
            pen.rectangle(((x - 0.011) * width, top * height, (x + 0.011) * width, level * height), fill=255)
        spans = ((-0.19, towers[0]), towers, (towers[1], 1.19))
        for left, right in spans:
            middle, half = (left + right) / 2, (right - left) / 2
            points = []
            for step in range(61):
                x = left + (right - left) * step / 60
                sag = 1 - ((x - middle) / half) ** 2
                y = top + (deck - 0.02 - top) * sag
                points.append((x * width, y * height))
                if step % 3 == 0:
                    pen.line((x * width, y * height, x * width, deck * height), fill=200, width=max(1, thick // 3))
            pen.line(points, fill=255, width=thick)

    canvas.shape(draw, "#5a2f38")
    canvas.water(level, "#5f7596", 0.2)


def lighthouse(canvas: Canvas, turn: float = 0.15) -> None:
    """A lighthouse on its rock at night; `turn` of its light is from 0 to 1."""
    canvas.sky((0, "#0b1533"), (0.6, "#27406b"), (0.75, "#56719a"), (1, "#56719a"))
    _stars(canvas, 0.6)
    x, lamp, level = 0.62, 0.28, 0.78
    reach = cos(turn * 2 * pi) * 1.3
    width = 0.1 + 0.06 * abs(sin(turn * 2 * pi))
    ends = [(x + reach, lamp - width), (x + reach, lamp + width)]
    canvas.polygon([(x, lamp), *ends], "#ffe9a8", 0.34)
    canvas.glow(x, lamp, 0.12 + 0.1 * abs(sin(turn * 2 * pi)), "#ffdf8a", 0.8)
    canvas.polygon([(x - 0.035, 0.34), (x + 0.035, 0.34), (x + 0.05, level), (x - 0.05, level)], "#f2efe6")
    for band in range(3):
        y, wide = 0.4 + band * 0.14, 0.037 + band * 0.005
        canvas.polygon(
            [(x - wide, y), (x + wide, y), (x + wide + 0.002, y + 0.06), (x - wide - 0.002, y + 0.06)], "#c23b33"
        )
    canvas.polygon([(x - 0.028, 0.24), (x + 0.028, 0.24), (x + 0.028, 0.34), (x - 0.028, 0.34)], "#3a3f52")
    canvas.disc(x, lamp + 0.01, 0.03, "#fff6cf")
    canvas.polygon([(x - 0.04, 0.24), (x + 0.04, 0.24), (x, 0.17)], "#8f2a2a")
    canvas.ridge(level, 0.1, 3, (0, "#1c2740"), (0.3, "#0d1426"))


def rainbow(canvas: Canvas, arcs: int = 1) -> None:
    """A rainbow, or two, over fields."""
    canvas.sky((0, "#5c7288"), (0.5, "#93a8b5"), (0.7, "#d5d9cf"), (1, "#d5d9cf"))
    canvas.paint(np.clip((canvas.noise(3) - 0.4) * 1.2, 0, 0.5), "#44586b")
    middle = canvas.chance.uniform(0.35, 0.65) * canvas.width
    distance = np.hypot(canvas.x - middle, canvas.y - 0.95 * canvas.height) / canvas.height
    hues = ((0, "#7a4fc0"), (0.25, "#3f7fe0"), (0.5, "#45c46a"), (0.75, "#ffe04a"), (1, "#ff4a3d"))
    for place in range(arcs):
        part = (distance - (0.62 + 0.17 * place)) / 0.055
        inside = np.clip(1 - np.abs(part - 0.5) * 2, 0, 1) ** 0.6
        canvas.paint(
            (inside * (0.55 - 0.25 * place)).astype(np.float32),
            gradient(hues, np.clip(part if place == 0 else 1 - part, 0, 1)),
        )
    for level, tone, end in ((0.72, "#6f8f52", "#8fae63"), (0.8, "#8aa84a", "#5f7f3a"), (0.9, "#4d6f35", "#35522a")):
        canvas.ridge(level, 0.06, 2, (0, tone), (0.2, end), octaves=3)
    house = canvas.chance.uniform(0.15, 0.8)
    canvas.polygon([(house, 0.74), (house + 0.06, 0.74), (house + 0.06, 0.81), (house, 0.81)], "#f0e2d0")
    canvas.polygon([(house - 0.01, 0.745), (house + 0.03, 0.69), (house + 0.07, 0.745)], "#a9483a")


def clouds(canvas: Canvas) -> None:
    """White clouds in a blue sky, as slow as sheep."""
    canvas.sky((0, "#2f7cc4"), (0.7, "#a9d3ec"), (1, "#dbeef2"))
    heaps = np.clip((canvas.noise(4) - 0.5) * 5, 0, 1)
    canvas.paint(heaps, gradient([(0, "#b9cbdb"), (0.6, "#ffffff"), (1, "#ffffff")], np.roll(heaps, 12, 0)))
    canvas.ridge(0.88, 0.05, 2, (0, "#5f9a4c"), (0.2, "#3f7638"), octaves=2)


def storm(canvas: Canvas) -> None:
    """Rain over the roofs of the harbour."""
    canvas.sky((0, "#2f3b4a"), (0.6, "#6f7f8b"), (1, "#98a3a6"))
    canvas.paint(np.clip((canvas.noise(3) - 0.35) * 1.6, 0, 0.8), "#3c4856")
    skyline(canvas, night=False)

    def rain(draw: ImageDraw.ImageDraw, fine: int) -> None:
        width, height, pen = _pen(canvas, draw, fine)
        for x, y, long in canvas.chance.uniform(0, 1, (420, 3)):
            end = 0.03 + 0.04 * long
            line = (x * width, y * height, (x - end * 0.25) * width, (y + end) * height)
            pen.line(line, fill=160, width=fine)

    canvas.shape(rain, "#dfe9ef", 0.55)


# --- Night and town --------------------------------------------------------------------------------------
def moon(canvas: Canvas) -> None:
    """A full moon over pines."""
    chance = canvas.chance
    canvas.sky((0, "#070d22"), (0.6, "#1a2b52"), (1, "#40547f"))
    _stars(canvas, 0.8)
    x, y, radius = chance.uniform(0.35, 0.65), 0.36, 0.16
    canvas.glow(x, y, 0.36, "#8fa6d6", 0.4)
    canvas.ball(x, y, radius, "#a8a493", "#fffbe8")
    for turn, far, size in chance.uniform(0, 1, (16, 3)):
        reach = radius * 0.8 * far**0.5
        place = x + cos(turn * 2 * pi) * reach * canvas.height / canvas.width, y + sin(turn * 2 * pi) * reach
        canvas.disc(*place, 0.006 + 0.024 * size, "#8f8b7c", 0.28)
    canvas.ridge(0.8, 0.1, 3, (0, "#1a2647"), (0.2, "#101a33"))
    _pines(canvas, 0.98, "#070c1a")


def skyline(canvas: Canvas, *, night: bool = True) -> None:
    """A town by the water, with its windows lit."""
    chance = canvas.chance
    level = 0.72
    if night:
        canvas.sky((0, "#141b3d"), (0.5, "#4a3f73"), (0.75, "#d0788a"), (1, "#f3b48e"))
        _stars(canvas, 0.4)
    for layer, tone in enumerate(("#3b3a63", "#23244a") if night else ("#566270", "#3d4853")):
        x = -0.02
        while x < 1:
            wide, tall = chance.uniform(0.04, 0.1), chance.uniform(0.12, 0.42 - 0.12 * layer)
            top = level - tall
            canvas.polygon([(x, top), (x + wide, top), (x + wide, level), (x, level)], tone)
            if chance.random() < 0.4:
                canvas.polygon([(x, top), (x + wide / 2, top - 0.05), (x + wide, top)], tone)
            _windows(canvas, x, top, wide, tall)
            x += wide
    canvas.water(level, "#1c2145" if night else "#56626c", 0.3)


def _windows(canvas: Canvas, x: float, top: float, wide: float, tall: float) -> None:
    columns, rows = max(1, int(wide / 0.018)), max(1, int(tall / 0.035))
    lit = canvas.chance.random((rows, columns)) < 0.38
    for row, column in zip(*np.nonzero(lit), strict=True):
        left = int((x + (column + 0.3) * wide / columns) * canvas.width)
        up = int((top + (row + 0.35) * tall / rows) * canvas.height)
        span = max(2, int(0.008 * canvas.width))
        if left >= 0:
            canvas.pixels[up : up + span + 1, left : left + span] = (1.0, 0.83, 0.5)


def mill(canvas: Canvas) -> None:
    """Swifts over an old mill in the evening."""
    canvas.sky(*DUSKS[2])
    canvas.glow(0.3, 0.72, 0.35, "#ffbb66", 0.45)
    canvas.ridge(0.82, 0.07, 2, (0, "#4a3350"), (0.2, "#2c2038"), octaves=3)
    x, tone = 0.66, "#2a1d33"
    canvas.polygon([(x - 0.06, 0.86), (x + 0.06, 0.86), (x + 0.035, 0.48), (x - 0.035, 0.48)], tone)
    canvas.polygon([(x - 0.045, 0.49), (x + 0.045, 0.49), (x, 0.4)], tone)
    turn = canvas.chance.uniform(0, pi / 2)
    ratio = canvas.height / canvas.width
    for blade in range(4):
        angle = turn + blade * pi / 2
        along, side = (cos(angle), sin(angle)), (-sin(angle), cos(angle))
        corners = [(-0.02, -0.008), (0.3, -0.008), (0.3, 0.05), (0.05, 0.05), (0, 0.008)]
        points = [(far * along[0] + off * side[0], far * along[1] + off * side[1]) for far, off in corners]
        canvas.polygon([(x + across * ratio, 0.46 + down) for across, down in points], tone, 0.92)
    _birds(canvas, 11, "#2a1d33")


def _stars(canvas: Canvas, until: float) -> None:
    rows = canvas.chance.integers(0, int(until * canvas.height), 260)
    columns = canvas.chance.integers(0, canvas.width, 260)
    canvas.pixels[rows, columns] += canvas.chance.uniform(0.2, 0.9, (260, 1)).astype(np.float32)


def _birds(canvas: Canvas, count: int, tone: str) -> None:
    def draw(draw: ImageDraw.ImageDraw, fine: int) -> None:
        width, height, pen = _pen(canvas, draw, fine)
        for across, down, size in canvas.chance.uniform(0, 1, (count, 3)):
            x, y, span = (0.08 + 0.84 * across) * width, (0.08 + 0.3 * down) * height, (0.012 + 0.02 * size) * height
            for side in (-1, 1):
                wing = [(x, y), (x + side * span, y - span * 0.8), (x + side * span * 2.2, y - span * 0.3)]
                pen.line(wing, fill=255, width=max(2, int(span / 5)), joint="curve")

    canvas.shape(draw, tone)


def _pines(canvas: Canvas, level: float, tone: str) -> None:
    for x, size in sorted(zip(canvas.chance.uniform(0, 1, 18), canvas.chance.uniform(0.1, 0.26, 18), strict=True)):
        for storey in range(4):
            top = level - size * (1 - storey * 0.2)
            wide = size * (0.1 + 0.07 * storey) * canvas.height / canvas.width
            canvas.polygon([(x, top), (x - wide, top + size * 0.36), (x + wide, top + size * 0.36)], tone)


SCENES: dict[str, Callable[[Canvas], None]] = {
    "sea": sea,
    "ferry": ferry,
    "hills": hills,
    "coast": coast,
    "bridge": bridge,
    "lighthouse": lighthouse,
    "rainbow": rainbow,
    "two rainbows": partial(rainbow, arcs=2),
    "clouds": clouds,
    "storm": storm,
    "moon": moon,
    "town": skyline,
    "mill": mill,
}


def animation(width: int, height: int, seed: int, frames: int = 20) -> list[Image.Image]:
    """The light of a lighthouse that turns once."""
    shown = []
    for frame in range(frames):
        canvas = Canvas(width, height, np.random.default_rng(seed))
        lighthouse(canvas, frame / frames)
        shown.append(canvas.finished(0))
    return shown
