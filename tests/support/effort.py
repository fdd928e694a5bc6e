"""How much a test tries: a part in every run, all of it under `check_all --all`."""

import os
from collections.abc import Sequence
from typing import TypeVar
from zlib import crc32

EVERYTHING = bool(os.environ.get("TEST_EVERYTHING"))
"""The run before a release, set by `check_all --all`."""
Value = TypeVar("Value")


def tries(usual: int, everything: int) -> int:
    """Examples, readers, kills or seconds: `usual` in every run, `everything` before a release."""
    return everything if EVERYTHING else usual


def some(usual: int, every: Sequence[Value]) -> Sequence[Value]:
    """The first `usual` of these parameters in every run, all before a release."""
    return every[: tries(usual, len(every))]


def is_usual(
    flow: str,
    screen: str | None,
    javascript: bool | None,
    *,
    locale: str | None = None,
    is_narrowest: bool | None = None,
) -> bool:
    """Whether every run tries a flow of the browser tests in this setting.

    Half of the flows run on a phone, half on a desktop. The same holds for JavaScript and language. All run at their
    narrowest width. None means that the flow has no such choice.
    """
    is_even = crc32(flow.encode()) % 2 == 0
    if is_narrowest is False or (locale is not None and (locale == "en-US") != is_even):
        return False
    if screen is None:
        return javascript is None or javascript == is_even
    return (screen == ("desktop" if is_even else "phone")) == (javascript is not False)
