from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import expect

from accounts.models import User
from items.actions import publish
from moderation.models import WordRule
from tests.support.browsers import Visit, Visitor
from tests.support.factories import UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

TOLD = "Moderators check your post before others see it."


@pytest.fixture(autouse=True)
def rules(settings: Any) -> None:
    settings.MODERATION_LINK_AGE = timedelta(days=3)
    WordRule.objects.create(text="casino")


@pytest.fixture
def author() -> User:
    return UserFactory.create(username="author", display_name="An Author")


def signed_in(visit: Visit, user: User, **options: Any) -> Visitor:
    visitor = visit(**options)
    visitor.log_in(user)
    return visitor


def test_an_edit_that_is_held_says_so_in_place(visit: Visit, author: User, reader: User) -> None:
    publish(sender=author, content={"text": "words"})
    writing = signed_in(visit, author)
    writing.choose("Edit")
    writing.page.get_by_role("main").get_by_label("Text", exact=True).fill("casino")
    writing.page.get_by_role("button", name="Save").click()
    expect(writing.page.get_by_text(TOLD).first).to_be_visible()
    writing.settle()
    expect(writing.page.locator("article").get_by_text("in review")).to_be_visible()
    signed_in(visit, reader).shows([])
