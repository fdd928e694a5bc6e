from typing import Any

import pytest
from playwright.sync_api import expect

from tests.support.browsers import Visit
from tests.support.factories import UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

GROUND = "getComputedStyle(document.body).backgroundColor"
LIGHT, DARK = "rgb(244, 245, 248)", "rgb(14, 16, 21)"


@pytest.mark.parametrize("system", ["light", "dark"])
def test_a_theme_goes_before_the_systems(visit: Visit, screen: dict[str, Any], system: str) -> None:
    visitor = visit(**screen, color_scheme=system)
    visitor.enter(UserFactory.create(username="reader"))
    page = visitor.page
    for theme, ground in (("Dark", DARK), ("Light", LIGHT), ("Same as my device", DARK if system == "dark" else LIGHT)):
        visitor.goto("/settings/preferences")
        page.get_by_label("Theme").select_option(theme)
        visitor.go(page.get_by_role("button", name="Save"))
        expect(page.get_by_role("status").get_by_text("Saved.")).to_be_visible()
        visitor.goto("/")
        visitor.holds(f"{GROUND} === '{ground}'")
