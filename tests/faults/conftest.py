"""The fixtures of these tests, from tests/support."""

from tests.support.sites import star, streams, web, worker  # noqa: F401
