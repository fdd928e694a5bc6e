from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from accounts.models import User
from items.actions import publish
from relations.actions import follow
from relations.models import Follow
from tests.support.browsers import Visit, Visitor
from tests.support.factories import PASSWORD, UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def visitor(visit: Visit, screen: dict[str, Any], javascript: bool) -> Visitor:
    return visit(java_script_enabled=javascript, **screen)


def begin(visitor: Visitor) -> None:
    visitor.goto("/signup")
    visitor.page.get_by_label("Username").fill("newcomer")
    visitor.page.get_by_label("Password").fill(PASSWORD)
    visitor.go(visitor.page.get_by_role("button", name="Create account"))
    expect(visitor.page.get_by_role("heading", name="Welcome, @newcomer")).to_be_visible()


def test_the_welcome_asks_for_a_name_and_interests(visitor: Visitor, javascript: bool) -> None:
    painter, walker = (UserFactory.create(username=name) for name in ("painter", "walker"))
    for sender in (painter, UserFactory.create()):
        publish(sender=sender, content={"text": "about #colours"})
    for sender in (walker, UserFactory.create()):
        publish(sender=sender, content={"text": "about #hills"})
    publish(sender=painter, content={"text": "more #colours"})
    begin(visitor)
    page = visitor.page
    page.get_by_label("Display name").fill("The New One")
    page.get_by_label("#colours").check()
    visitor.go(page.get_by_role("button", name="Continue"))
    expect(page.get_by_role("heading", name="People to follow")).to_be_visible()
    assert User.objects.get(username="newcomer").display_name == "The New One"
    people = page.locator(".people .handle")
    expect(people.first).to_have_text("@painter")
    page.get_by_role("main").get_by_role("button", name="Follow @painter").click()
    if javascript:
        expect(page.get_by_role("main").get_by_role("button", name="Unfollow @painter")).to_be_visible()
        expect(page.locator(".underway")).to_have_count(0)
    else:
        expect(page.get_by_role("main").get_by_role("button", name="Follow @painter")).to_have_count(0)
    visitor.go(page.get_by_role("link", name="Done").first)
    visitor.shows(["more #colours", "about #colours"])


def test_the_welcome_may_be_skipped(visitor: Visitor) -> None:
    begin(visitor)
    visitor.go(visitor.page.get_by_role("link", name="Skip", exact=True))
    expect(visitor.page.get_by_role("heading", name="Home")).to_be_visible()


def test_a_deceiving_name_is_refused(visitor: Visitor, tolerated: Callable[[str], None]) -> None:
    tolerated("with a status of 422")
    visitor.enter(UserFactory.create(username="newcomer"))
    visitor.goto("/welcome")
    visitor.page.get_by_label("Display name").fill("back\u202ewards")
    visitor.page.get_by_role("button", name="Continue").click()
    expect(visitor.page.locator(".errorlist")).to_be_visible()


def test_the_first_follow_fills_home_at_once(visitor: Visitor, javascript: bool) -> None:
    author = UserFactory.create(username="author")
    for number in range(3):
        publish(sender=author, content={"text": f"words {number}"})
    newcomer: Any = UserFactory.create(username="newcomer")
    visitor.enter(newcomer)
    visitor.goto("/")
    visitor.page.get_by_role("main").get_by_role("button", name="Follow @author").click()
    visitor.shows(["words 2", "words 1", "words 0"])
    if javascript:  # the list stays, so the follow can be undone
        button = visitor.page.get_by_role("main").get_by_role("button", name="Unfollow @author")
        expect(button).to_be_focused()
        expect(visitor.page.locator(".underway")).to_have_count(0)
        button.click()
        expect(visitor.page.locator("[role=feed] article")).to_have_count(0)
        expect(visitor.page.locator(".underway")).to_have_count(0)
        assert not Follow.objects.filter(follower=newcomer).exists()


def test_home_proposes_people_until_five_are_followed(visitor: Visitor) -> None:
    newcomer: Any = UserFactory.create(username="newcomer")
    others = [UserFactory.create() for _ in range(12)]
    visitor.enter(newcomer)
    for number, expected in enumerate([6, 3, 3, 3, 3, 0]):
        visitor.goto("/")
        expect(visitor.page.locator(".welcome .people > li")).to_have_count(expected)
        follow(follower=newcomer, followee=others[number])
    visitor.goto("/search")
    visitor.go(visitor.page.get_by_role("link", name="Find people"))
    expect(visitor.page.get_by_role("heading", name="Find people")).to_be_visible()
    expect(visitor.page.locator(".people > li")).to_have_count(6)
