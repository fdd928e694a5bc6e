"""The fixtures of these tests, from tests/support."""

from tests.support.timelines import follow, reader, say, workers  # noqa: F401
