from argparse import ArgumentTypeError
from collections.abc import Callable


def seconds(least: float, most: float) -> Callable[[str], float]:
    """An argparse type: seconds within bounds."""

    def parsed(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value <= most:  # also true of NaN
            raise ArgumentTypeError(f"{text!r} is not a number of seconds from {least:g} to {most:,.0f}")
        return value

    return parsed
