"""The fixtures of these tests, from tests/support."""

from tests.support.browsers import browser, javascript, screen, streams, tolerated, visit  # noqa: F401
