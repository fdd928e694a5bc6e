"""The fixtures of these tests, from tests/support."""

from tests.support.sessions import workers  # noqa: F401
