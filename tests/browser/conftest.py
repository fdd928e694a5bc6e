from tests.support.browsers import browser, javascript, reader, screen, streams, tolerated, visit  # noqa: F401
from tests.support.flows import pytest_collection_modifyitems  # noqa: F401
