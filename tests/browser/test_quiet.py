"""`visit` fails on any logged error."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.support.browsers import Visit
from tests.support.factories import UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

PAGES = ["/", "/discover", "/live", "/live/own", "/live/new", "/notifications", "/notifications/mentions", "/people"]
PAGES += ["/search", "/search?q=words", "/tags/words", "/@newcomer", "/@newcomer/replies", "/@newcomer/followers"]
PAGES += ["/welcome", "/items/new", "/history", "/settings", "/settings/preferences", "/settings/notifications"]
PAGES += ["/settings/password", "/settings/data", "/settings/delete"]


def test_the_pages_of_a_newcomer_log_nothing(visit: Visit, screen: dict[str, Any]) -> None:
    visitor = visit(**screen)
    visitor.enter(UserFactory.create(username="newcomer"))
    page = visitor.page
    for address in PAGES:
        answers: list[int] = []
        page.on("response", lambda answer, seen=answers: seen.append(answer.status))
        visitor.goto(address)
        expect(page.locator("main")).to_be_visible()
        asks = page.locator("[data-poll][hx-trigger*='every']")
        if asks.count():
            path = re.compile(re.escape(str(asks.first.get_attribute("hx-get")).partition("?")[0]) + r"\?")
            with page.expect_response(path):
                pass
        visitor.settle()
        assert all(status < 400 for status in answers), (address, answers)
