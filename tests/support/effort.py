"""A part in every run, all under `check_all --all`."""

import os
from collections.abc import Sequence
from typing import TypeVar
from zlib import crc32

EVERYTHING = bool(os.environ.get("TEST_EVERYTHING"))
"""Set by `check_all --all`."""
Value = TypeVar("Value")


def tries(usual: int, everything: int) -> int:
    """`everything` only before a release."""
    return everything if EVERYTHING else usual


def some(usual: int, every: Sequence[Value]) -> Sequence[Value]:
    """The first `usual`, or all before a release."""
    return every[: tries(usual, len(every))]


def is_usual(
    flow: str,
    screen: str | None,
    javascript: bool | None,
    *,
    locale: str | None = None,
    is_narrowest: bool | None = None,
) -> bool:
    """Whether every run tries a browser flow in this setting.

    One of two values of each choice (phone or desktop, JavaScript or not, language), at the narrowest width. None: no
    such choice.
    """
    is_even = crc32(flow.encode()) % 2 == 0
    if is_narrowest is False or (locale is not None and (locale == "en-US") != is_even):
        return False
    if screen is None:
        return javascript is None or javascript == is_even
    return (screen == ("desktop" if is_even else "phone")) == (javascript is not False)
