"""The laws that growth is fitted to."""

import pytest

from benchmarks.fits import Chart, fitted, written


@pytest.mark.parametrize("exponent", [-0.5, 0.0, 1.0, 2.0])
def test_a_law_is_found_again(exponent: float) -> None:
    law = fitted([(x, 3 * x**exponent) for x in (1_000, 10_000, 100_000, 1_000_000)])
    assert law.exponent == pytest.approx(exponent, abs=1e-9)
    assert law.factor == pytest.approx(3)
    assert law.low == pytest.approx(exponent, abs=1e-6)
    assert law.high == pytest.approx(exponent, abs=1e-6)
    assert law.at(20_000) == pytest.approx(3 * 20_000**exponent)


def test_the_interval_is_that_of_student() -> None:
    """Checked by hand: slope 0.45, squares left over 0.675 of 1.6875, two degrees of freedom."""
    law = fitted([(10**x, 10**y) for x, y in ((0, 1), (1, 1), (2, 1), (3, 2.5))])
    assert law.exponent == pytest.approx(0.45)
    assert law.r2 == pytest.approx(0.6)
    assert law.low == pytest.approx(0.45 - 4.30 * (0.675 / 2 / 5) ** 0.5)
    assert str(law) == "0.45 (-0.67 to 1.57)"


def test_of_two_points_no_confidence_is_claimed() -> None:
    law = Chart("page", "A page", "users", "ms").add("page", [(10, 1.0), (1_000, 2.0)])
    assert (law.low, law.high) == (None, None)
    assert str(law) == "0.15"


@pytest.mark.parametrize(("value", "said"), [(-0.001, "0.00"), (-0.006, "-0.01"), (1.005, "1.00"), (12.5, "12.50")])
def test_a_nought_has_no_minus(value: float, said: str) -> None:
    assert written(value) == said
