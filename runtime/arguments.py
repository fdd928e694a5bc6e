"""Types of what commands are given: a value that cannot be is refused with a line, before anything is done."""

from argparse import ArgumentTypeError
from collections.abc import Callable


def seconds(least: float, most: float) -> Callable[[str], float]:
    """A type of argparse: seconds within these bounds."""

    def parsed(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value <= most:  # true of what is no number, too
            raise ArgumentTypeError(f"{text!r} is no number of seconds from {least:g} to {most:,.0f}")
        return value

    return parsed
