"""The axes and labels of drawings."""

import re
from itertools import pairwise

import pytest

from operation.svg import LINE, Drawing, PowersOfTen, number


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ((0.02, 300), [0.01, 0.1, 1, 10, 100, 1000]),
        ((1, 9), [1, 2, 5, 10]),
        ((10, 10), [10, 20, 50, 100]),
    ],
)
def test_axes_end_at_powers_of_ten(values: tuple[float, ...], ticks: list[float]) -> None:
    axis = PowersOfTen(values, 400, 0)
    assert axis.ticks() == pytest.approx(ticks)
    assert axis.at(ticks[0]) == pytest.approx(400)
    assert axis.at(ticks[-1]) == pytest.approx(0)
    assert axis.at(ticks[0] / 1e6) == pytest.approx(400)


def test_an_axis_may_end_where_its_values_do() -> None:
    axis = PowersOfTen((1_000, 40_000), 0, 100, whole=False)
    assert axis.at(1_000) == pytest.approx(0)
    assert axis.at(40_000) == pytest.approx(100)


def test_labels_do_not_overlap_nor_leave_the_drawing() -> None:
    drawing = Drawing(100, 200, title="labels")
    drawing.labels(0, [(195.0, "a", 0), (196.0, "b", None), (50.0, "c", 5), (49.0, "d", 2)], top=20, bottom=190)
    heights = [float(y) for y in re.findall(r'<text x="15" y="([\d.]+)"', str(drawing))]
    assert len(heights) == 4
    assert all(below - above >= LINE for above, below in pairwise(heights))
    assert max(heights) <= 194


@pytest.mark.parametrize(("value", "said"), [(1_000_000, "1,000,000"), (1, "1"), (0.02, "0.02"), (0.001, "0.001")])
def test_numbers_are_written_for_people(value: float, said: str) -> None:
    assert number(value) == said
