"""Which browser flows every run tries, and in which settings."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from tests.support.effort import is_usual

FOLDER = Path(settings.BASE_DIR) / "tests" / "browser"
SETTINGS = {"screen", "javascript", "locale", "width", "half"}
WHOLE = {"test_engines.py", "test_site.py"}
"""All their flows run every time."""
FIRST = {
    "test_accessibility.py",
    "test_account.py",
    "test_acts.py",
    "test_apps.py",
    "test_discover.py",
    "test_moderation.py",
    "test_notifications.py",
    "test_pictures.py",
    "test_search.py",
    "test_writing.py",
}
"""Their first and most important flow runs every time."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every run tries some flows in some settings, `check_all --all` tries all in all. One takes as long as thirty
    other tests.
    """
    flows = [item for item in items if FOLDER in item.path.parents and isinstance(item, pytest.Function)]
    unusual = {*_other_flows(flows), *_in_other_settings(flows)}
    for item in flows:
        if item in unusual:
            item.add_marker(pytest.mark.long)


def _other_flows(flows: list[pytest.Function]) -> Iterator[pytest.Function]:
    firsts: dict[str, str] = {}
    for item in flows:
        file = item.path.name
        if file not in WHOLE and not (
            file in FIRST and firsts.setdefault(file, item.originalname) == item.originalname
        ):
            yield item


def _in_other_settings(flows: list[pytest.Function]) -> Iterator[pytest.Function]:
    given = {item: item.callspec.params for item in flows if hasattr(item, "callspec")}
    narrowest: dict[str, int] = {}
    first: dict[str, list[str]] = {}
    for item, values in given.items():
        others = [f"{name}={values[name]!r}" for name in sorted(values.keys() - SETTINGS)]
        if others != first.setdefault(f"{item.path}::{item.originalname} {values.get('locale')}", others):
            yield item
        if "width" in values:
            flow = item.originalname
            narrowest[flow] = min(values["width"], narrowest.get(flow, values["width"]))
    for item, values in given.items():
        is_narrowest = values["width"] == narrowest[item.originalname] if "width" in values else None
        devices = values.get("screen"), values.get("javascript")
        if not is_usual(item.originalname, *devices, locale=values.get("locale"), is_narrowest=is_narrowest):
            yield item
