"""Hypothesis state machines."""

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{machine}" for machine in ("homes", "live", "recommended")))
