"""The fixtures of these tests, from tests/support."""

from tests.support.browsers import author, browser, javascript, reader, screen, streams, tolerated, visit  # noqa: F401
