from argparse import ArgumentTypeError

import pytest

from runtime.arguments import seconds


@pytest.mark.parametrize("text", ["0.1", "0.5", "60"])
def test_seconds_within_the_bounds(text: str) -> None:
    assert seconds(0.1, 60)(text) == float(text)


@pytest.mark.parametrize("text", ["", "x", "-1", "0", "0.09", "60.1", "nan", "inf", "-inf", "1e400"])
def test_others_are_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"is not a number of seconds from 0\.1 to 60$"):
        seconds(0.1, 60)(text)
