"""Things that the demo community takes pictures of: bread, maps, games, a spider. Each fills a canvas."""

from math import cos, pi, sin

import numpy as np
from PIL import ImageDraw

from community.demo_canvas import Canvas, gradient


def _wood(canvas: Canvas, dark: str, light: str) -> None:
    fibres = canvas.line(6, 7)[None, :] * 0.25 + canvas.noise(3, 3) * 0.5 + 0.25
    planks = np.sin(canvas.y / canvas.height * 5 * pi) ** 2
    shade = np.clip(fibres + 0.12 * np.sin(canvas.y / 3.1 + canvas.line(3)[None, :] * 6), 0, 1)
    canvas.pixels[:] = gradient([(0, dark), (1, light)], shade)
    canvas.paint((np.clip(0.03 - planks, 0, 0.03) / 0.03 * 0.6).astype(np.float32) + np.zeros_like(canvas.x), "#2a1a10")


def bread(canvas: Canvas) -> None:
    """Three loaves on a board, one of them straight."""
    _wood(canvas, "#5f3f28", "#9a6d45")
    chance = canvas.chance
    for place, turn in enumerate((0.0, chance.uniform(0.15, 0.4), chance.uniform(-0.5, -0.2))):
        middle_x, middle_y = (0.22 + 0.28 * place) * canvas.width, (0.5 + 0.05 * (-1) ** place) * canvas.height
        across, down = canvas.x - middle_x, canvas.y - middle_y
        along = (across * sin(turn) + down * cos(turn)) / (0.34 * canvas.height)
        side = (across * cos(turn) - down * sin(turn)) / (0.115 * canvas.width)
        far = np.sqrt(along**2 + side**2)
        canvas.paint(np.clip((1.16 - far) * 4, 0, 0.45), "#20130b")
        crust = np.clip(1 - far**2.2 + 0.15 * (side < 0), 0, 1)
        canvas.paint(np.clip((1 - far) * 60, 0, 1), gradient([(0, "#6b3413"), (0.5, "#b5722f"), (1, "#e0ab62")], crust))
        cuts = np.exp(-(((along * 4.2 + side * 1.3 + 20) % 1 - 0.5) ** 2) * 60) * (far < 0.8) * (np.abs(side) < 0.62)
        canvas.paint((cuts * 0.8).astype(np.float32), "#f6dfb4")
    flour = np.clip((canvas.noise(60, 2) - 0.74) * 6, 0, 0.7)
    canvas.paint(flour, "#fff8ea")


def tram_map(canvas: Canvas) -> None:
    """A map of trams with seven lines."""
    chance = canvas.chance
    canvas.pixels[:] = gradient([(0, "#e6d7b2"), (1, "#f7efd9")], canvas.noise(3))
    river = [(x, 0.55 + 0.16 * sin(x * 5 + 1)) for x in np.linspace(-0.05, 1.05, 40)]
    canvas.polygon([*river, *[(x, y + 0.09) for x, y in reversed(river)]], "#b4d2d6")
    for tone in ("#c8373b", "#2d6fb0", "#2f8f57", "#e08a25", "#74468f", "#3b3b44", "#c9a227"):
        x, y = 0.04, chance.uniform(0.1, 0.9)
        points, stops = [(x, y)], []
        while x < 0.94:
            step, slope = chance.uniform(0.08, 0.16), chance.choice([-1, 0, 0, 1])
            if not 0.1 < y + slope * step < 0.9:
                slope = -slope
            x, y = x + step, float(np.clip(y + slope * step, 0.06, 0.94))
            points.append((x, y))
            stops.append((x, y))

        def draw(pen: ImageDraw.ImageDraw, fine: int, points: list[tuple[float, float]] = points) -> None:
            whole = [(x * canvas.width * fine, y * canvas.height * fine) for x, y in points]
            pen.line(whole, fill=255, width=int(0.012 * canvas.height * fine), joint="curve")

        canvas.shape(draw, tone)
        for stop in stops:
            canvas.disc(*stop, 0.016, tone)
            canvas.disc(*stop, 0.009, "#fffaf0")
    for fold in (1 / 3, 2 / 3):
        shade = np.exp(-(((canvas.x / canvas.width - fold) / 0.006) ** 2)) * 0.22 + np.zeros_like(canvas.y)
        canvas.paint(shade.astype(np.float32), "#6b5a3a")


def chess(canvas: Canvas) -> None:
    """A game of chess, half played."""
    _wood(canvas, "#3f2b1e", "#6a4a32")
    side = 0.88 * canvas.height / 8
    left, top = (canvas.width - 8 * side) / 2, 0.06 * canvas.height
    columns, rows = np.floor((canvas.x - left) / side), np.floor((canvas.y - top) / side)
    on = ((columns >= 0) & (columns < 8) & (rows >= 0) & (rows < 8)).astype(np.float32)
    dark = (columns + rows) % 2
    canvas.paint(on * (1 - dark), "#e9d3a9")
    canvas.paint(on * dark, "#9b6a3f")
    places = canvas.chance.permutation(64)[:17]
    for number, place in enumerate(places):
        x = (left + (place % 8 + 0.5) * side) / canvas.width
        y = (top + (place // 8 + 0.5) * side) / canvas.height
        canvas.disc(x + 0.006, y + 0.012, 0.041, "#1a0f08", 0.4)
        tones = ("#b9a98a", "#fffbee") if number % 2 else ("#140f0d", "#5d4a40")
        canvas.ball(x, y, 0.041, *tones)
        canvas.ball(x, y, 0.018 if number > 3 else 0.028, *tones)


def doorknob(canvas: Canvas) -> None:
    """A doorknob on a painted door."""
    tones = (("#2f5d5a", "#4f8a80"), ("#7a2f33", "#a9524c"), ("#2c4a78", "#5277ab"), ("#8a6a2a", "#c29b4a"))
    dark, light = tones[canvas.chance.integers(len(tones))]
    fibres = np.clip(canvas.line(30, 4)[None, :] * 0.12 + 0.5 + canvas.noise(4, 3) * 0.3 - 0.1, 0, 1)
    canvas.pixels[:] = gradient([(0, dark), (1, light)], fibres)
    for inset, tone in ((0.12, dark), (0.135, light)):
        canvas.polygon([(inset, -0.1), (1.1, -0.1), (1.1, 0.2), (inset, 0.2)], tone, 0.5)
    metal = (("#4a3413", "#f7dd94"), ("#2d2f33", "#e9edf0"), ("#4b2414", "#eab08c"))[canvas.chance.integers(3)]
    canvas.disc(0.52, 0.57, 0.3, "#000000", 0.25)
    canvas.ball(0.5, 0.52, 0.28, *metal)
    canvas.disc(0.5, 0.52, 0.215, metal[0], 0.6)
    canvas.ball(0.5, 0.52, 0.205, *metal)
    canvas.glow(0.46, 0.45, 0.05, "#ffffff", 0.7)


def apricots(canvas: Canvas) -> None:
    """Apricots in a crate."""
    canvas.sky((0, "#3d2a1c"), (1, "#2c1d13"))
    places = [(column, row) for row in range(6) for column in range(8)]
    for number in canvas.chance.permutation(len(places)):
        column, row = places[number]
        nudge = canvas.chance.uniform(-0.02, 0.02, 2)
        x, y = (column + 0.5 * (row % 2)) / 7.4 + nudge[0], row / 5.2 + nudge[1]
        canvas.disc(x + 0.008, y + 0.02, 0.118, "#1c0f06", 0.5)
        canvas.ball(x, y, 0.115, "#b5481c", ("#ffc163", "#ffb04f", "#ffd07a")[canvas.chance.integers(3)])


def spider(canvas: Canvas) -> None:
    """A garden spider in its web, in the dew."""
    canvas.pixels[:] = gradient([(0, "#1f3b2a"), (0.5, "#3f6b3f"), (1, "#a8c06a")], canvas.noise(4, 3))
    ratio = canvas.height / canvas.width
    turns = [2 * pi * spoke / 18 + canvas.chance.uniform(-0.06, 0.06) for spoke in range(18)]

    def at(turn: float, far: float) -> tuple[float, float]:
        return 0.5 + cos(turn) * far * ratio, 0.48 + sin(turn) * far

    def web(pen: ImageDraw.ImageDraw, fine: int) -> None:
        width, height = canvas.width * fine, canvas.height * fine
        for turn in turns:
            x, y = at(turn, 0.9)
            pen.line((0.5 * width, 0.48 * height, x * width, y * height), fill=200, width=fine)
        for far in np.linspace(0.07, 0.6, 16):
            ring = [at(turn, far * (0.97 + 0.03 * cos(9 * turn))) for turn in [*turns, turns[0]]]
            pen.line([(x * width, y * height) for x, y in ring], fill=190, width=fine)

    canvas.shape(web, "#f1f6ee", 0.8)

    def legs(pen: ImageDraw.ImageDraw, fine: int) -> None:
        width, height = canvas.width * fine, canvas.height * fine
        for place in range(4):
            for side in (-1, 1):
                knee = (0.5 + side * 0.075, 0.4 + 0.05 * place - 0.03)
                foot = (0.5 + side * (0.12 - 0.01 * place), 0.3 + 0.13 * place)
                points = [(0.5, 0.47), knee, foot]
                pen.line([(x * width, y * height) for x, y in points], fill=255, width=4 * fine, joint="curve")

    canvas.shape(legs, "#2c1b10")
    canvas.ball(0.5, 0.53, 0.085, "#3a2112", "#c98b46")
    canvas.ball(0.5, 0.435, 0.045, "#2c1b10", "#8a5a2d")
    for down in (0.5, 0.53, 0.56):
        canvas.disc(0.5, down, 0.011, "#f6e6c4", 0.9)


THINGS = {
    "bread": bread,
    "tram map": tram_map,
    "chess": chess,
    "doorknob": doorknob,
    "apricots": apricots,
    "spider": spider,
}
