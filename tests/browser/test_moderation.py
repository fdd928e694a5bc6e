from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from playwright.sync_api import expect

from accounts.models import User
from items.actions import publish
from items.models import Item, Status
from moderation.models import Case, Report, WordRule
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


@pytest.fixture
def moderator() -> User:
    moderator = UserFactory.create(username="moderator", is_staff=True)
    moderator.user_permissions.set(Permission.objects.filter(codename__in=["view_case", "decide_case", "view_item"]))
    return moderator


def signed_in(visit: Visit, user: User, **options: Any) -> Visitor:
    visitor = visit(**options)
    visitor.log_in(user)
    return visitor


@pytest.mark.long
def test_held_approved_and_read(visit: Visit, author: User, reader: User, moderator: User, javascript: bool) -> None:
    publish(sender=author, content={"text": "Before"})
    writing = signed_in(visit, author, java_script_enabled=javascript)
    writing.publish("See the old CASINO, a fine building")
    expect(writing.page.get_by_text(TOLD).first).to_be_visible()
    writing.goto("/@author")
    held = writing.page.locator("article").filter(has_text="CASINO")
    expect(held.get_by_text("in review")).to_be_visible()

    reading = signed_in(visit, reader, java_script_enabled=javascript)
    reading.shows(["Before"])

    # By keyboard alone.
    desk = signed_in(visit, moderator, java_script_enabled=javascript)
    desk.goto("/admin/moderation/case/")
    case = desk.page.get_by_role("link", name="See the old CASINO, a fine building")
    case.focus()
    desk.page.keyboard.press("Enter")
    expect(desk.page.locator("mark")).to_have_text("CASINO")
    desk.page.get_by_label("Note for the log").focus()
    desk.page.keyboard.type("a building")
    desk.page.keyboard.press("Tab")
    expect(desk.page.get_by_role("button", name="Approve")).to_be_focused()
    desk.page.keyboard.press("Enter")
    expect(desk.page.get_by_text("Approved.")).to_be_visible()

    reading.goto("/")
    reading.shows(["See the old CASINO, a fine building", "Before"])
    writing.goto("/@author")
    expect(held.get_by_text("in review")).to_have_count(0)


def test_reported_rejected_and_banned(
    visit: Visit, author: User, reader: User, moderator: User, javascript: bool
) -> None:
    item = publish(sender=author, content={"text": "Something rude"})
    publish(sender=author, content={"text": "Something else"})
    reading = signed_in(visit, reader, java_script_enabled=javascript)
    reading.choose("Report", "Something rude")
    reading.page.get_by_label("Harassment or hate").check()
    reading.page.get_by_label("Anything to add?").fill("to my cat")
    reading.page.get_by_role("button", name="Report").click()
    expect(reading.page.get_by_role("heading", name="Thanks for letting us know")).to_be_visible()
    reading.go(reading.page.get_by_role("link", name="Go on reading"))
    expect(reading.page.get_by_role("heading", name="Home")).to_be_visible()
    reading.shows(["Something else", "Something rude"])
    assert Report.objects.get().item == item

    banned = signed_in(visit, author, java_script_enabled=javascript)
    banned.goto("/settings")  # the home would redirect to the login by itself
    desk = signed_in(visit, moderator, java_script_enabled=javascript)
    desk.goto(f"/admin/moderation/case/{Case.objects.get().pk}/change/")
    expect(desk.page.get_by_text("to my cat")).to_be_visible()
    desk.go(desk.page.get_by_role("button", name="Reject and suspend author"))
    assert User.objects.get(pk=author.pk).is_active
    desk.page.get_by_role("button", name="Reject and suspend").click()
    expect(desk.page.get_by_text("Rejected. @author is suspended.")).to_be_visible()

    reading.goto("/")
    reading.shows([])
    banned.goto("/settings")
    expect(banned.page.get_by_role("main").get_by_role("button", name="Log in", exact=True)).to_be_visible()
    assert Item.objects.get(pk=item.pk).status == Status.REJECTED


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
