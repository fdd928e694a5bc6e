"""The fixtures of these tests, from tests/support, and how many of their settings every run tries."""

from pathlib import Path

import pytest

from tests.support.browsers import author, browser, javascript, reader, screen, streams, tolerated, visit  # noqa: F401
from tests.support.effort import is_usual

HERE = Path(__file__).parent
SETTINGS = {"screen", "javascript", "locale", "width", "half"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A flow runs in part of its settings: on one of two screens, with JavaScript or without, in one language, at the
    narrowest of its widths, with the first of its other values. Under `check_all --all` every flow runs in all of them.
    """
    flows = [
        (item, item.originalname, item.callspec.params)
        for item in items
        # pytest hands over the tests of all folders.
        if HERE in item.path.parents and isinstance(item, pytest.Function) and hasattr(item, "callspec")
    ]
    narrowest: dict[str, int] = {}
    first: dict[str, list[str]] = {}
    for item, flow, given in flows:
        others = [f"{name}={given[name]!r}" for name in sorted(given.keys() - SETTINGS)]
        if others != first.setdefault(f"{item.path}::{flow} {given.get('locale')}", others):
            item.add_marker(pytest.mark.long)
        if "width" in given:
            narrowest[flow] = min(given["width"], narrowest.get(flow, given["width"]))
    for item, flow, given in flows:
        is_narrowest = given["width"] == narrowest[flow] if "width" in given else None
        settings = given.get("screen"), given.get("javascript")
        if not is_usual(flow, *settings, locale=given.get("locale"), is_narrowest=is_narrowest):
            item.add_marker(pytest.mark.long)
