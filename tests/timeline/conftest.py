from tests.support.timelines import follow, reader, say, workers  # noqa: F401
