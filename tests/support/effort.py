"""How much a test of chance or of numbers tries: a part in every run, all of it under `check_all --all`."""

import os
from zlib import crc32

EVERYTHING = bool(os.environ.get("TEST_EVERYTHING"))
"""Whether this is the run before a release, which `check_all --all` sets for its tests."""


def tries(usual: int, everything: int) -> int:
    """Examples, readers, kills or seconds: `usual` in every run, `everything` before a release."""
    return everything if EVERYTHING else usual


def is_usual(flow: str, screen: str, javascript: bool) -> bool:
    """Whether every run tries a flow of the browser tests in this setting: half of the flows do on a phone what the
    others do on a desktop.
    """
    first = "phone" if crc32(flow.encode()) % 2 else "desktop"
    return (screen == first) == javascript
