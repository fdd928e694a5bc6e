"""Machines of hypothesis, which walk through what people do: of homes, the live feed and the recommended one."""

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{machine}" for machine in ("homes", "live", "recommended")))
