import pytest
from playwright.sync_api import expect

from accounts.models import User
from discover.models import NotInterested
from items.actions import publish
from items.models import Item
from tests.support.browsers import Visit, Visitor
from tests.support.factories import UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def author() -> User:
    return UserFactory.create(username="author", display_name="An Author")


@pytest.fixture
def made(author: User) -> list[Item]:
    return [publish(sender=author, content={"text": f"zebra {number}"}) for number in range(3)]


@pytest.fixture
def visitor(visit: Visit, javascript: bool) -> Visitor:
    visitor = visit(java_script_enabled=javascript)
    visitor.enter(UserFactory.create(username="reader"))
    return visitor


def test_opened_items_are_there_until_they_are_cleared(visitor: Visitor, made: list[Item], javascript: bool) -> None:
    page = visitor.page
    visitor.goto("/history")
    expect(page.get_by_text("Nothing here.")).to_be_visible()
    expect(page.get_by_role("button", name="Clear")).to_have_count(0)
    for item in (made[0], made[2]):
        visitor.goto(f"/items/{item.pk}")
    visitor.goto("/settings")
    settings = page.get_by_role("navigation", name="Settings")
    visitor.go(settings.get_by_role("link", name="History"))
    expect(page.locator(".parts a[aria-current=page]")).to_contain_text("History")
    expect(page.get_by_role("feed", name="Posts you opened").locator("article")).to_have_count(2)
    visitor.shows(["zebra 2", "zebra 0"])

    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("History is paused.")).to_be_visible()
    if javascript:
        expect(page.locator("#toast")).to_contain_text("We no longer remember posts you open.")
    visitor.goto(f"/items/{made[1].pk}")
    visitor.goto("/history")
    visitor.shows(["zebra 2", "zebra 0"])
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("History is on.")).to_be_visible()
    visitor.goto(f"/items/{made[1].pk}")
    visitor.goto("/history")
    visitor.shows(["zebra 1", "zebra 2", "zebra 0"])

    page.get_by_role("button", name="Clear").click()
    if javascript:
        visitor.confirm("Clear your whole history?")
    expect(page.get_by_text("History cleared.")).to_be_visible()
    expect(page.get_by_text("Nothing here.")).to_be_visible()
    expect(page.locator("article")).to_have_count(0)
    page.reload()
    expect(page.get_by_text("Nothing here.")).to_be_visible()


def test_what_one_does_not_want_and_wants_again(visitor: Visitor, made: list[Item], javascript: bool) -> None:
    page = visitor.page
    for item in made:
        visitor.goto(f"/items/{item.pk}")
        visitor.choose("Not interested")
        expect(page.get_by_text("You'll see less like this.")).to_be_visible()
        expect(page.get_by_text(item.text)).to_be_visible()
    visitor.goto("/history")
    visitor.go(page.get_by_role("link", name="Not interested"))
    visitor.shows(["zebra 2", "zebra 1", "zebra 0"])

    page.get_by_role("button", name="Undo: post by An Author").nth(1).click()
    expect(page.get_by_text("Undone. We'll recommend posts like this again.")).to_be_visible()
    expect(page.locator("article")).to_have_count(2)
    visitor.shows(["zebra 2", "zebra 0"])
    if javascript:
        expect(page.locator(f"#item-{made[0].pk}")).to_be_focused()
    page.reload()
    visitor.shows(["zebra 2", "zebra 0"])
    assert list(NotInterested.objects.order_by("id").values_list("item", flat=True)) == [made[0].pk, made[2].pk]
