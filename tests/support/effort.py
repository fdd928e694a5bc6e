"""How much a test of chance or of numbers tries: a part in every run, all of it under `check_all --all`."""

import os
from collections.abc import Sequence
from typing import TypeVar
from zlib import crc32

EVERYTHING = bool(os.environ.get("TEST_EVERYTHING"))
"""Whether this is the run before a release, which `check_all --all` sets for its tests."""
Value = TypeVar("Value")


def tries(usual: int, everything: int) -> int:
    """Examples, readers, kills or seconds: `usual` in every run, `everything` before a release."""
    return everything if EVERYTHING else usual


def some(usual: int, every: Sequence[Value]) -> Sequence[Value]:
    """The first `usual` values of a test's parameter in every run, all of them before a release."""
    return every[: tries(usual, len(every))]


def is_usual(
    flow: str,
    screen: str | None,
    javascript: bool | None,
    *,
    locale: str | None = None,
    is_narrowest: bool | None = None,
) -> bool:
    """Whether every run tries a flow of the browser tests in this setting: half of the flows do on a phone what the
    others do on a desktop, with JavaScript what the others do without, or in English what the others do in Chinese;
    and all at their narrowest width. None where the flow has no such choice.
    """
    is_even = crc32(flow.encode()) % 2 == 0
    if is_narrowest is False or (locale is not None and (locale == "en-US") != is_even):
        return False
    if screen is None:
        return javascript is None or javascript == is_even
    return (screen == ("desktop" if is_even else "phone")) == (javascript is not False)
