"""Faces of the demo community: portraits made of discs, and signs for those who are no people."""

from math import cos, pi, sin

import numpy as np
from PIL import Image, ImageDraw

from community.demo_canvas import FINE, Canvas

SIZE = 320
"""Pixels of a side."""
GROUNDS = (
    ("#f6c177", "#e88b5a"),
    ("#8ec5c0", "#4c8f9b"),
    ("#c9b6e4", "#8b72be"),
    ("#f3b6b6", "#d4787e"),
    ("#b7d59a", "#6fa368"),
    ("#9fc3ec", "#5584c4"),
    ("#f2dd8f", "#d9ab3f"),
    ("#d9c7b0", "#a98c6c"),
)
SKINS = ("#f6d3b8", "#eab98f", "#d79c6d", "#b87a4b", "#8a5636", "#5f3a26")
HAIRS = ("#2b1d17", "#4a2f1f", "#7a4a26", "#b8803f", "#d9b36c", "#8f8f93", "#b5432f", "#1d1d22")
SHIRTS = ("#2f4858", "#8a2f3c", "#35654d", "#5b4b8a", "#c97b2b", "#e9e3d5", "#22426b", "#a33f62")
LONG = (1, 4)
"""The styles of long hair."""
Box = tuple[float, float, float, float]


class Portrait:
    """A canvas on which parts of a face are put, as shares of its side."""

    def __init__(self, seed: int) -> None:
        self.chance = np.random.default_rng(seed)
        self.canvas = Canvas(SIZE, SIZE, self.chance)
        light, dark = GROUNDS[self.chance.integers(len(GROUNDS))]
        self.canvas.sky((0, light), (1, dark))

    def one(self, choices: tuple[str, ...]) -> str:
        """One of these by chance."""
        return choices[self.chance.integers(len(choices))]

    def oval(self, x: float, y: float, wide: float, tall: float, tone: str, opacity: float = 1.0) -> None:
        """An ellipse around a place."""
        self._form("ellipse", (x - wide, y - tall, x + wide, y + tall), tone, opacity)

    def bar(self, box: Box, tone: str, radius: float = 0.03) -> None:
        """A rectangle with round corners."""

        def draw(pen: ImageDraw.ImageDraw, fine: int) -> None:
            pen.rounded_rectangle(_large(box, fine), radius * SIZE * fine, fill=255)

        self.canvas.shape(draw, tone)

    def arc(self, box: Box, begin: float, end: float, tone: str, thick: float) -> None:
        """A line along a part of an ellipse, in degrees."""

        def draw(pen: ImageDraw.ImageDraw, fine: int) -> None:
            pen.arc(_large(box, fine), begin, end, fill=255, width=int(thick * SIZE * fine))

        self.canvas.shape(draw, tone)

    def pie(self, box: Box, begin: float, end: float, tone: str) -> None:
        """A part of an ellipse, in degrees."""

        def draw(pen: ImageDraw.ImageDraw, fine: int) -> None:
            pen.chord(_large(box, fine), begin, end, fill=255)

        self.canvas.shape(draw, tone)

    def _form(self, form: str, box: Box, tone: str, opacity: float) -> None:
        self.canvas.shape(lambda pen, fine: getattr(pen, form)(_large(box, fine), fill=255), tone, opacity)


def _large(box: Box, fine: int = FINE) -> Box:
    left, top, right, bottom = (place * SIZE * fine for place in box)
    return left, top, right, bottom


def face(seed: int) -> Image.Image:
    """A portrait; the same seed draws the same person."""
    portrait = Portrait(seed)
    chance = portrait.chance
    skin, hair, shirt = portrait.one(SKINS), portrait.one(HAIRS), portrait.one(SHIRTS)
    style = int(chance.integers(6))
    if style in LONG:  # it falls behind the shoulders
        portrait.bar((0.25, 0.3, 0.75, 0.8 if style == 1 else 0.66), hair, 0.16)
    portrait.oval(0.5, 1.02, 0.36, 0.3, shirt)
    portrait.bar((0.43, 0.6, 0.57, 0.79), skin, 0.05)
    portrait.oval(0.5, 0.75, 0.11, 0.06, skin)
    portrait.oval(0.5, 0.67, 0.09, 0.035, "#000000", 0.12)
    for side in (-1, 1):
        portrait.oval(0.5 + side * 0.2, 0.48, 0.035, 0.05, skin)
    portrait.oval(0.5, 0.46, 0.2, 0.245, skin)
    _hair(portrait, style, hair)
    _features(portrait, hair, may_have_beard=style not in LONG)
    if chance.random() < 0.3:
        for side in (-1, 1):
            portrait.arc((0.5 + side * 0.09 - 0.06, 0.42, 0.5 + side * 0.09 + 0.06, 0.53), 0, 360, "#2a2a33", 0.011)
        portrait.bar((0.47, 0.465, 0.53, 0.476), "#2a2a33", 0.001)
    if chance.random() < 0.18:
        portrait.pie((0.27, 0.14, 0.73, 0.58), 180, 360, shirt)
        portrait.bar((0.25, 0.33, 0.75, 0.385), portrait.one(SHIRTS), 0.03)
    return portrait.canvas.finished(0.006)


def _hair(portrait: Portrait, style: int, tone: str) -> None:
    if style == 5:  # none but at the sides
        return
    portrait.pie((0.285, 0.17, 0.715, 0.6), 180 - 14, 360 + 14, tone)
    if style in (0, 1):  # a parting
        portrait.pie((0.27, 0.19, 0.6, 0.53), 160, 350, tone)
        portrait.pie((0.45, 0.2, 0.73, 0.5), 190, 20, tone)
    elif style == 2:  # curls
        for turn in np.linspace(-0.1, 1.1, 11):
            angle = pi + turn * pi
            portrait.oval(0.5 + cos(angle) * 0.21, 0.36 + sin(angle) * 0.16, 0.07, 0.07, tone)
    elif style == 3:  # a bun
        portrait.oval(0.5, 0.15, 0.085, 0.08, tone)


def _features(portrait: Portrait, hair: str, *, may_have_beard: bool) -> None:
    chance = portrait.chance
    for side in (-1, 1):
        x = 0.5 + side * 0.085
        portrait.oval(x, 0.475, 0.03, 0.022, "#ffffff")
        portrait.oval(x + 0.003, 0.477, 0.017, 0.019, "#2b2420")
        portrait.oval(x + 0.008, 0.471, 0.005, 0.005, "#ffffff")
        portrait.arc((x - 0.045, 0.41, x + 0.045, 0.47), 205, 335, hair, 0.014)
        portrait.oval(0.5 + side * 0.12, 0.55, 0.035, 0.024, "#e2574c", 0.16)
    portrait.arc((0.475, 0.47, 0.535, 0.555), 20, 120, "#000000", 0.008)
    if chance.random() < 0.22 and may_have_beard:
        portrait.pie((0.31, 0.36, 0.69, 0.725), 20, 160, hair)
        portrait.oval(0.5, 0.6, 0.075, 0.034, "#f2d2c2")
    if chance.random() < 0.4:
        portrait.pie((0.425, 0.545, 0.575, 0.655), 0, 180, "#8f2f35")
        portrait.pie((0.445, 0.565, 0.555, 0.62), 0, 180, "#ffffff")
    else:
        portrait.arc((0.42, 0.5, 0.58, 0.64), 35, 145, "#8f2f35", 0.014)


# --- Signs -----------------------------------------------------------------------------------------------
def lighthouse_sign(seed: int) -> Image.Image:
    """The sign of a paper of the harbour: a lighthouse over waves."""
    sign = Portrait(seed)
    canvas = sign.canvas
    canvas.sky((0, "#16324f"), (1, "#2a5d84"))
    canvas.polygon([(0.5, 0.3), (0.02, 0.16), (0.02, 0.4)], "#ffe39a", 0.85)
    canvas.polygon([(0.5, 0.3), (0.98, 0.16), (0.98, 0.4)], "#ffe39a", 0.85)
    canvas.polygon([(0.42, 0.38), (0.58, 0.38), (0.63, 0.8), (0.37, 0.8)], "#fdf8ec")
    for y in (0.45, 0.62):
        canvas.polygon([(0.405, y), (0.595, y), (0.605, y + 0.09), (0.395, y + 0.09)], "#d1453b")
    canvas.polygon([(0.43, 0.24), (0.57, 0.24), (0.57, 0.38), (0.43, 0.38)], "#fff3c4")
    canvas.polygon([(0.4, 0.24), (0.6, 0.24), (0.5, 0.13)], "#d1453b")
    for row, tone in enumerate(("#7fc0d8", "#4f9dc0")):
        for wave in range(6):
            sign.oval(0.02 + wave * 0.2 + row * 0.1, 0.85 + row * 0.08, 0.12, 0.07, tone)
    canvas.polygon([(0, 0.95), (1, 0.95), (1, 1), (0, 1)], "#4f9dc0")
    return canvas.finished(0)


def weather_sign(seed: int) -> Image.Image:
    """The sign of a weather desk: the sun behind a cloud."""
    sign = Portrait(seed)
    sign.canvas.sky((0, "#4ea4dd"), (1, "#a9dcf2"))
    for ray in range(12):
        angle = ray * pi / 6
        along, side = (cos(angle), sin(angle)), (-sin(angle) * 0.02, cos(angle) * 0.02)
        ends = [
            (0.6 + along[0] * far + off * side[0], 0.4 + along[1] * far + off * side[1])
            for far, off in ((0.23, 1), (0.34, 1), (0.34, -1), (0.23, -1))
        ]
        sign.canvas.polygon(ends, "#ffcf4a")
    sign.oval(0.6, 0.4, 0.18, 0.18, "#ffd95e")
    for x, y, size in ((0.3, 0.66, 0.14), (0.46, 0.57, 0.18), (0.64, 0.66, 0.14)):
        sign.oval(x, y, size, size, "#ffffff")
    sign.bar((0.24, 0.62, 0.7, 0.8), "#ffffff", 0.09)
    return sign.canvas.finished(0)


def cat_sign(seed: int) -> Image.Image:
    """A cat, for those who show no face."""
    sign = Portrait(seed)
    tone = sign.one(("#2d2a2e", "#d98b45", "#9a938c", "#f3ece0"))
    eyes = sign.one(("#ffd25a", "#9fe08a"))
    for side in (-1, 1):
        x = 0.5 + side * 0.2
        sign.canvas.polygon([(x - 0.13, 0.44), (x + side * 0.08, 0.14), (x + 0.13, 0.44)], tone)
    sign.oval(0.5, 1.0, 0.3, 0.32, tone)
    sign.oval(0.5, 0.52, 0.31, 0.26, tone)
    for side in (-1, 1):
        sign.oval(0.5 + side * 0.13, 0.5, 0.062, 0.07, eyes)
        sign.oval(0.5 + side * 0.13, 0.5, 0.02, 0.06, "#141414")
        for down in (-0.02, 0.03):
            sign.arc(
                (0.5 + side * 0.25 - 0.16, 0.6 + down, 0.5 + side * 0.25 + 0.16, 0.7 + down), 230, 310, "#ffffff", 0.006
            )
    sign.canvas.polygon([(0.465, 0.58), (0.535, 0.58), (0.5, 0.62)], "#e58a8f")
    return sign.canvas.finished(0)
