"""How much a test of chance or of numbers tries: a part in every run, all of it under `check_all --all`."""

import os

EVERYTHING = bool(os.environ.get("TEST_EVERYTHING"))
"""Whether this is the run before a release, which `check_all --all` sets for its tests."""


def tries(usual: int, everything: int) -> int:
    """Examples, readers, kills or seconds: `usual` in every run, `everything` before a release."""
    return everything if EVERYTHING else usual
