from tests.support.sessions import workers  # noqa: F401
