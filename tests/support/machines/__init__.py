"""Hypothesis state machines of homes, the live feed and the recommended feed."""

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{machine}" for machine in ("homes", "live", "recommended")))
