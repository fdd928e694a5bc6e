"""The fixtures of these tests, from tests/support, and how many of their settings every run tries."""

import pytest

from tests.support.browsers import author, browser, javascript, reader, screen, streams, tolerated, visit  # noqa: F401
from tests.support.effort import is_usual


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A flow runs in half of its settings: on one of two screens, or with JavaScript or without. Under
    `check_all --all` every flow runs in all of them.
    """
    for item in items:
        given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        if given and not is_usual(item.originalname, given.get("screen"), given.get("javascript")):
            item.add_marker(pytest.mark.long)
