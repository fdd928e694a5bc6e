"""Figures between samples, and where they are drawn."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from operation.plots import POINTS, plot, quantile, round_up, stack, steps

BEGAN = datetime(2026, 3, 1, 12, tzinfo=UTC)


def taken(*figures: dict[str, Any]) -> Any:
    samples = [(BEGAN + timedelta(minutes=place), each) for place, each in enumerate(figures)]
    return steps(samples)


def test_growth_survives_a_restart() -> None:
    first, second = taken({"entries": 100, "pages": {"sql": 5}}, {"entries": 160}, {"entries": 20, "pages": {"sql": 2}})
    assert (first.growth("entries"), second.growth("entries")) == (60, 20)
    assert (first.growths("pages"), second.growths("pages")) == ({}, {"sql": 2})
    assert second.seconds == 60


def test_a_long_time_has_no_more_points() -> None:
    samples = [(BEGAN + timedelta(minutes=place), {"entries": place}) for place in range(2880)]
    found = steps(samples)
    assert len(found) <= POINTS
    assert (found[-1].at, found[-1].growth("entries")) == (samples[-1][0], 24)


@pytest.mark.parametrize(
    ("buckets", "share", "expected"),
    [
        ({}, 0.5, None),
        ({"1.0": 0, "+Inf": 0}, 0.5, None),
        ({"1.0": 10, "2.0": 10, "+Inf": 10}, 0.5, 0.5),
        ({"1.0": 0, "2.0": 10, "10.0": 20, "+Inf": 20}, 0.75, 6),
        ({"1.0": 0, "2.0": 0, "+Inf": 4}, 0.99, 2),
    ],
)
def test_quantiles(buckets: dict[str, float], share: float, expected: float | None) -> None:
    assert quantile(buckets, share) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(("value", "top"), [(0, 1), (0.03, 0.05), (1, 1), (1.1, 2), (51, 100), (5000, 5000)])
def test_scales_end_at_round_numbers(value: float, top: float) -> None:
    assert round_up(value) == pytest.approx(top)


def test_lines_break_where_nothing_is_known() -> None:
    found = plot("title", taken({}, {}, {}, {}, {}), [("line", [1.0, 2.0, None, 2.0])], str)
    assert found.lines[0].path == "M44.0 78.0h0L160.0 8.0M392.0 8.0h0"
    assert found.lines[0].last == "2.0"
    assert plot("title", taken({}, {}), [("line", [None])], str).is_empty


def test_layers_lie_on_each_other() -> None:
    found = stack("title", taken({}, {}, {}), [("low", [0.25, None]), ("high", [0.75, None])], str)
    low, high = (line.path for line in found.lines)
    assert low.count("113.0") == 1, "a quarter of the way up"
    assert high.count("113.0") == 1
    assert " 8.0" in high
    assert all(path.endswith("Z") for path in (low, high))
