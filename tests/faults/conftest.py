from tests.support.sites import star, streams, web, worker  # noqa: F401
