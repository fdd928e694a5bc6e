from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import expect

from accounts.models import User
from items.actions import publish_past
from items.filters import filters
from items.models import Item
from relations.actions import mute
from tests.support.browsers import Visit, Visitor
from tests.support.factories import PASSWORD, UserFactory, say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def author() -> Any:
    return UserFactory.create(username="author", display_name="An Author")


def log_in(visitor: Visitor, username: str, password: str = PASSWORD) -> None:
    """Finds the fields in any language."""
    visitor.goto("/login")
    visitor.page.locator("#id_username").fill(username)
    visitor.page.locator("#id_password").fill(password)
    visitor.go(visitor.page.locator("main form button:not([type])"))
    expect(visitor.page.locator("#timeline")).to_be_visible()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_signing_up_from_a_page_leads_back_to_it(
    visit: Visit, author: Any, javascript: bool, width: int, locale: str
) -> None:
    visitor = visit(java_script_enabled=javascript, viewport={"width": width, "height": 800}, locale=locale)
    visitor.goto("/@author")
    visitor.go(visitor.page.locator(".strangers a[href^='/signup']"))
    visitor.page.locator("#id_username").fill("newcomer")
    visitor.page.locator("#id_display_name").fill("林美")
    visitor.page.locator("#id_password").fill(PASSWORD)
    if javascript:
        reveal = visitor.page.locator("[data-reveal]")
        reveal.click()
        expect(visitor.page.locator("#id_password")).to_have_attribute("type", "text")
        expect(visitor.page.locator("#id_password")).to_have_value(PASSWORD)
        expect(reveal).to_have_attribute("aria-pressed", "true")
        reveal.click()
        expect(visitor.page.locator("#id_password")).to_have_attribute("type", "password")
        reveal.click()
    visitor.go(visitor.page.locator("main form button:not([type])"))
    expect(visitor.page).to_have_url(f"{visitor.site}/welcome/people?next=%2F%40author")
    visitor.go(visitor.page.locator("main p a[href='/@author']").last)
    expect(visitor.page).to_have_url(f"{visitor.site}/@author")
    assert User.objects.get(username="newcomer").display_name == "林美"


@pytest.mark.parametrize(
    ("locale", "words"), [("en-US", "Wrong username or password."), ("zh-CN", "用户名或密码不对。")]
)
def test_a_login_that_fails_says_so_and_keeps_the_way(
    visit: Visit, reader: Any, tolerated: Any, locale: str, words: str, javascript: bool
) -> None:
    tolerated("with a status of 422")
    visitor = visit(java_script_enabled=javascript, locale=locale, viewport={"width": 390, "height": 800})
    visitor.goto("/login?next=%2Fsettings")
    for password in ("wrong", PASSWORD):
        visitor.page.locator("#id_username").fill("READER")
        visitor.page.locator("#id_password").fill(password)
        visitor.go(visitor.page.locator("main form button:not([type])"))
        if password == "wrong":
            expect(visitor.page.locator("ul.errorlist")).to_contain_text(words)
    expect(visitor.page).to_have_url(f"{visitor.site}/settings")


def test_times_are_those_of_the_browser(visit: Visit, author: Any) -> None:
    item = say(author, "words")
    visitor = visit(timezone_id="Asia/Shanghai")
    visitor.goto("/login")  # tells the server the time zone
    visitor.goto(f"/items/{item.pk}")
    local = item.created_at.astimezone(ZoneInfo("Asia/Shanghai"))
    expect(visitor.page.locator(".full-time")).to_contain_text(f"{local:%H:%M} UTC+8")
    elsewhere = visit(timezone_id="America/St_Johns")
    elsewhere.goto("/login")
    elsewhere.goto(f"/items/{item.pk}")
    local = item.created_at.astimezone(ZoneInfo("America/St_Johns"))
    expect(elsewhere.page.locator(".full-time")).to_contain_text(f"{local:%H:%M} UTC")


@pytest.mark.parametrize("width", [390, 1280])
def test_a_name_reorders_nothing_around_it(visit: Visit, reader: Any, author: Any, width: int) -> None:
    User.objects.filter(pk=author.pk).update(display_name="\u202eשרה 12")  # stored by an older version
    say(author, "words")
    visitor = visit(viewport={"width": width, "height": 800})
    visitor.enter(reader)
    visitor.goto("/")
    byline = visitor.page.locator(".byline")
    places = [byline.locator(part).bounding_box() for part in (".name", ".handle", ".time")]
    assert [place["x"] for place in places if place] == sorted(place["x"] for place in places if place)
    expect(byline.locator(".name > bdi")).to_have_count(1)
    visitor.goto(f"/items/{Item.objects.get().pk}/report")
    expect(visitor.page.locator(".helptext bdi")).to_have_count(1)


LETTERS_OF_THE_LINK = """Array.from([0, 5], (place) => {
    const range = document.createRange();
    range.setStart(document.querySelector(".text a").firstChild, place);
    range.setEnd(document.querySelector(".text a").firstChild, place + 1);
    return range.getBoundingClientRect().x;
})"""


def test_a_control_in_a_text_turns_no_link_round(visit: Visit, reader: Any, author: Any) -> None:
    item = say(author, "\u202esee https://good.example/ab")
    visitor = visit()
    visitor.enter(reader)
    visitor.goto(f"/items/{item.pk}")
    first, later = visitor.page.evaluate(LETTERS_OF_THE_LINK)
    assert first < later


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_no_page_of_the_settings_is_wider_than_the_screen(visit: Visit, reader: Any, locale: str, width: int) -> None:
    visitor = visit(viewport={"width": width, "height": 800}, locale=locale)
    visitor.goto("/login")
    names = [
        "profile",
        "account",
        "factors",
        "preferences",
        "notifications",
        "filters",
        "mutes",
        "blocks",
        "password",
        "email",
        "devices",
        "data",
        "import-export",
        "import-archive",
        "delete",
    ]
    mute(muter=reader, muted=UserFactory.create(username="w" * 30, display_name="W" * 50))
    filters.create(owner=reader, phrase="w" * 50, whole_word=True)
    for path in ("/login", "/settings", *(f"/settings/{name}" for name in names), "/lists", "/bookmarks"):
        visitor.goto(path)
        wide: int = visitor.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, path
        if path == "/login":
            log_in(visitor, "reader")


@pytest.mark.parametrize(
    ("locale", "full", "day"),
    [
        ("en-US", "2 March 2020, 07:30 UTC+8", "2 Mar 2020"),
        ("zh-CN", "2020年3月2日 07:30 UTC+8", "2020年3月2日"),
    ],
)
def test_the_first_page_of_a_stranger_has_local_times(
    visit: Visit, author: Any, locale: str, full: str, day: str
) -> None:
    written = datetime(2020, 3, 1, 23, 30, tzinfo=UTC)
    item = publish_past(sender=author, content={"text": "words"}, written_at=written)
    for address, place, words in (("/@author", ".byline .time > time", day), (f"/items/{item.pk}", ".full-time", full)):
        visitor = visit(timezone_id="Asia/Shanghai", locale=locale)
        visitor.goto(address)
        time = visitor.page.locator(place).first
        for _ in range(2):  # the second page comes with them
            expect(time).to_have_text(words)
            expect(visitor.page.locator(".time > time[title]").first).to_have_attribute("title", full)
            visitor.page.reload()
