from pathlib import Path

import pytest
from django.conf import LazySettings
from playwright.sync_api import Page, expect

from accounts.models import User
from items.actions import like
from relations.actions import follow
from tests.support.browsers import OPENER, Visit
from tests.support.factories import UserFactory, say
from tests.support.languages import offer_arabic

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

WIDTHS = [320, 390, 768, 1024, 1440, 1920]
BEYOND = """
    () => [...document.querySelectorAll("body *")].filter((element) => {
        const box = element.getBoundingClientRect();
        const isShown = box.width > 1 && getComputedStyle(element).visibility === "visible";
        const isCut = element.closest(".tabs, .filters, #beside-narrow, .hidden, bdi, details:not([open]) > *");
        return isShown && !isCut && (box.left < -1 || box.right > innerWidth + 1);
    }).map((element) => `${element.tagName}.${element.className}`)
"""
PATHS = (
    "/",
    "/discover",
    "/live",
    "/lists",
    "/@author",
    "/items/{item}",
    "/items/new",
    "/notifications",
    "/search?q=words",
    "/settings",
    "/settings/profile",
    "/settings/account",
    "/settings/devices",
    "/settings/preferences",
    "/settings/filters",
    "/settings/delete",
    "/about",
)


@pytest.fixture
def author() -> User:
    user: User = UserFactory.create(username="author", display_name="المؤلف")
    item = say(user, "كلمات words #وسم https://example.org/a/long/address")
    say(UserFactory.create(username="w" * 30), "an answer in English.", reply_to=item)
    return user


@pytest.fixture
def arabic(settings: LazySettings, tmp_path: Path) -> None:
    offer_arabic(settings, tmp_path)


def beginning(page: Page, selector: str) -> float:
    """Distance from the page's right edge."""
    box = page.locator(selector).first.bounding_box()
    size = page.viewport_size
    assert box
    assert size
    return size["width"] - box["x"] - box["width"]


def test_pages_fit(visit: Visit, arabic: None, author: User, reader: User) -> None:
    follow(follower=reader, followee=author)
    visitor = visit(locale="ar")
    visitor.enter(reader)
    wrong = []
    for width in WIDTHS:
        visitor.page.set_viewport_size({"width": width, "height": 900})
        for path in PATHS:
            visitor.goto(path.format(item=author.items.get().pk))
            assert visitor.page.evaluate("document.dir") == "rtl"
            wide = visitor.page.evaluate("document.documentElement.scrollWidth > innerWidth")
            beyond = visitor.page.evaluate(BEYOND)
            if wide or beyond:
                wrong.append((width, path, wide, beyond[:5]))
    assert not wrong


def test_the_frame_and_a_card_are_mirrored(visit: Visit, arabic: None, author: User, reader: User) -> None:
    follow(follower=reader, followee=author)
    visitor = visit(locale="ar", viewport={"width": 1440, "height": 900})
    visitor.enter(reader)
    visitor.goto("/")
    page = visitor.page
    side, column, aside = (beginning(page, one) for one in (".side", "main", ".aside"))
    assert side < column < aside
    card = "article.item:has(.menu)"
    assert beginning(page, f"{card} .face") < beginning(page, f"{card} .name") < beginning(page, f"{card} .menu")
    page.locator(card).first.locator(OPENER).click()
    menu = page.locator("details.menu[open] > .menu-items")
    expect(menu).to_be_visible()
    assert beginning(page, "details.menu[open] > .menu-items") > beginning(page, f"{card} .name")
    visitor.goto("/settings/account")
    assert beginning(page, ".parts") < beginning(page, ".part")
    visitor.goto(f"/items/{author.items.get().pk}")
    turned = page.locator(".head .back .icon").evaluate("(icon) => getComputedStyle(icon).scale")
    assert turned.startswith("-1")


def test_lines_of_other_letters_begin_beside_the_words_of_the_page(
    visit: Visit, arabic: None, author: User, reader: User
) -> None:
    like(user=author, item=say(reader, "An answer."))
    visitor = visit(locale="ar", viewport={"width": 1440, "height": 900})
    visitor.enter(reader)
    visitor.goto("/notifications")
    first, stop = visitor.page.locator(".notice .excerpt a").evaluate(
        """(link) => [0, link.textContent.indexOf(".")].map((at) => {
            const letter = document.createRange();
            letter.setStart(link.firstChild, at);
            letter.setEnd(link.firstChild, at + 1);
            return letter.getBoundingClientRect().left;
        })"""
    )
    assert first < stop
    assert abs(beginning(visitor.page, ".me .names b bdi") - beginning(visitor.page, ".me .names .quiet bdi")) < 2
