"""A canvas for pictures that are made by program: light, ridges, water and shapes, from a generator of numbers."""

from collections.abc import Callable, Sequence
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

Pixels = NDArray[np.floating[Any]]
Colour = str
Stops = Sequence[tuple[float, Colour]]
Draw = Callable[[ImageDraw.ImageDraw, int], None]
"""Draws on a mask that is so many times as large as the canvas, in white."""

SHADES = 1024
"""The colours that a gradient has."""
FINE = 2
"""How many times as large shapes are drawn, so that their edges are smooth."""


def colour(code: Colour) -> Pixels:
    """The three parts of #rrggbb, from 0 to 1."""
    return np.array([int(code[place : place + 2], 16) / 255 for place in (1, 3, 5)], np.float32)


def gradient(stops: Stops, places: Pixels) -> Pixels:
    """The colours at these places, from 0 to 1, of a gradient with colours at its stops."""
    at = [place for place, _ in stops]
    parts = np.array([colour(code) for _, code in stops])
    every = np.linspace(0, 1, SHADES)
    table = np.stack([np.interp(every, at, parts[:, part]) for part in range(3)], axis=-1).astype(np.float32)
    return table[(places * (SHADES - 1)).astype(np.intp)]


class Canvas:
    """A picture of `width` by `height` pixels; `chance` decides whatever is left open."""

    def __init__(self, width: int, height: int, chance: np.random.Generator) -> None:
        self.width, self.height, self.chance = width, height, chance
        self.pixels: Pixels = np.zeros((height, width, 3), np.float32)
        self.x = np.arange(width, dtype=np.float32)[None, :]
        self.y = np.arange(height, dtype=np.float32)[:, None]

    def sky(self, *stops: tuple[float, Colour]) -> None:
        """Paint everything from top (0) to bottom (1)."""
        self.pixels[:] = gradient(stops, self.y[:, 0] / self.height)[:, None, :]

    def glow(self, x: float, y: float, radius: float, code: Colour, strength: float = 1.0) -> None:
        """Add light around a place, all as shares of width and height."""
        span = radius * self.height
        distance = ((self.x - x * self.width) ** 2 + (self.y - y * self.height) ** 2) / (span * span)
        self.pixels += (strength * np.exp(-distance))[..., None] * colour(code)

    def line(self, steps: int, octaves: int = 5) -> Pixels:
        """A rough line over the width, from -1 to 1: `steps` swings, and finer ones on them."""
        total = np.zeros(self.width, np.float32)
        for octave in range(octaves):
            knots = self.chance.uniform(-1, 1, steps * 2**octave + 2)
            places = np.linspace(0, len(knots) - 1.001, self.width)
            first = places.astype(int)
            part = places - first
            soft = part * part * (3 - 2 * part)
            total += ((1 - soft) * knots[first] + soft * knots[first + 1]).astype(np.float32) * 0.5**octave
        return total / 2

    def noise(self, steps: int, octaves: int = 5) -> Pixels:
        """Clouds over the whole picture, from 0 to 1."""
        total = np.zeros((self.height, self.width), np.float32)
        for octave in range(octaves):
            across = steps * 2**octave
            down = max(2, across * self.height // self.width)
            knots = Image.fromarray(self.chance.integers(0, 256, (down, across), np.uint8))
            large = knots.resize((self.width, self.height), Image.Resampling.BICUBIC)
            total += np.asarray(large, np.float32) / 255 * 0.5**octave
        return total / (2 - 0.5 ** (octaves - 1))

    def paint(self, mask: Pixels, code: Colour | Pixels) -> None:
        """Cover what the mask, from 0 to 1, says with a colour, or with a picture."""
        new = colour(code) if isinstance(code, str) else code
        self.pixels += mask[..., None] * (new - self.pixels)

    def ridge(self, level: float, swing: float, steps: int, *stops: tuple[float, Colour], octaves: int = 5) -> None:
        """Paint land below a rough line at `level`, as shares of the height."""
        heights = (level + swing * self.line(steps, octaves)) * self.height
        begin = int(np.clip(heights.min(), 0, self.height - 1))
        depth = self.y[begin:] - heights[None, :]
        new = gradient(stops, np.clip(depth / self.height, 0, 1))
        self.pixels[begin:] += np.clip(depth + 0.5, 0, 1)[..., None] * (new - self.pixels[begin:])

    def shape(self, draw: Draw, code: Colour, opacity: float = 1.0) -> None:
        """Paint what `draw` draws."""
        mask = Image.new("L", (self.width * FINE, self.height * FINE))
        draw(ImageDraw.Draw(mask), FINE)
        self._stamp(mask.reduce(FINE), 0, 0, code, opacity)

    def polygon(self, points: Sequence[tuple[float, float]], code: Colour, opacity: float = 1.0) -> None:
        """Paint a polygon; its corners as shares of width and height."""
        whole = [(x * self.width, y * self.height) for x, y in points]
        left, top = (max(0, floor(min(point[axis] for point in whole))) for axis in (0, 1))
        right = min(self.width, ceil(max(x for x, _ in whole)))
        bottom = min(self.height, ceil(max(y for _, y in whole)))
        if right <= left or bottom <= top:
            return
        mask = Image.new("L", ((right - left) * FINE, (bottom - top) * FINE))
        ImageDraw.Draw(mask).polygon([((x - left) * FINE, (y - top) * FINE) for x, y in whole], fill=255)
        self._stamp(mask.reduce(FINE), left, top, code, opacity)

    def _stamp(self, mask: Image.Image, left: int, top: int, code: Colour, opacity: float) -> None:
        part = np.asarray(mask, np.float32)[..., None] / 255 * opacity
        there = self.pixels[top : top + mask.height, left : left + mask.width]
        there += part * (colour(code) - there)

    def disc(self, x: float, y: float, radius: float, code: Colour, opacity: float = 1.0) -> None:
        """Paint a disc; its radius as a share of the height."""
        self._round(x, y, radius, lambda _across, _down: colour(code), opacity)

    def ball(self, x: float, y: float, radius: float, dark: Colour, light: Colour) -> None:
        """Paint a ball that is lit from the upper left."""

        def shade(across: Pixels, down: Pixels) -> Pixels:
            return gradient([(0, dark), (1, light)], np.clip(1.15 - np.hypot(across + 0.35, down + 0.4) / 1.3, 0, 1))

        self._round(x, y, radius, shade, 1.0)

    def _round(
        self, x: float, y: float, radius: float, tone: Callable[[Pixels, Pixels], Pixels], opacity: float
    ) -> None:
        span = radius * self.height
        left, right = max(0, floor(x * self.width - span)), min(self.width, ceil(x * self.width + span) + 1)
        top, bottom = max(0, floor(y * self.height - span)), min(self.height, ceil(y * self.height + span) + 1)
        if right <= left or bottom <= top:
            return
        across = (self.x[:, left:right] - x * self.width) / span
        down = (self.y[top:bottom] - y * self.height) / span
        mask = np.clip((1 - np.hypot(across, down)) * span + 0.5, 0, 1) * opacity
        there = self.pixels[top:bottom, left:right]
        there += mask[..., None] * (tone(across, down) - there)

    def water(self, level: float, code: Colour, opacity: float = 0.35) -> None:
        """Mirror what stands above `level`, a share of the height, below it, with ripples and a colour of its own."""
        begin = int(level * self.height)
        depth = np.arange(self.height - begin)
        rows = np.clip(begin - 1 - depth * 1.15, 0, begin - 1).astype(int)
        near = depth / max(1, self.height - begin)
        waves = np.sin(depth / (1.5 + 9 * near) + self.chance.uniform(0, 6)) * (1 + 14 * near)
        shifts = (waves + self.chance.normal(0, 1 + 2 * near)).astype(int)
        columns = np.clip(np.arange(self.width)[None, :] + shifts[:, None], 0, self.width - 1)
        mirrored = self.pixels[rows[:, None], columns]
        fading = (opacity + 0.35 * near)[:, None, None]
        self.pixels[begin:] = mirrored + fading * (colour(code) - mirrored)

    def finished(self, grain: float = 0.012) -> Image.Image:
        """The picture, with a little grain and darker corners, as film has them."""
        across, down = self.x / self.width - 0.5, self.y / self.height - 0.5
        light = 1.06 - 0.45 * (across**2 + down**2)
        noise = self.chance.standard_normal((self.height, self.width), np.float32) * grain
        whole = self.pixels * light[..., None] + noise[..., None]
        return Image.fromarray((np.clip(whole, 0, 1) * 255).astype(np.uint8))
