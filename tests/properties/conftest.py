from tests.support.machines.homes import tiny_homes  # noqa: F401
from tests.support.machines.live import tiny_live  # noqa: F401
