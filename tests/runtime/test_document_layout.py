"""The drawing of the house in docs/design.md is that of the real imports, and no arrow runs up or sideways."""

import pytest
from django.conf import settings

from runtime.management.commands.document_layout import PAGE, drawn_into, floors, imported


@pytest.mark.slow
def test_the_page_shows_the_imports_of_now() -> None:
    page = (settings.BASE_DIR / PAGE).read_text()
    assert drawn_into(page) == page, "run `manage.py document_layout`"


@pytest.mark.slow
def test_no_arrow_runs_up_or_sideways() -> None:
    above: set[str] = set()
    for floor in floors():
        above |= set(floor)
        for package in floor:
            assert not imported(package) & above, package


def test_nothing_imports_the_roof() -> None:
    assert {package for floor in floors() for package in floor if "feedsite" in imported(package)} == set()
