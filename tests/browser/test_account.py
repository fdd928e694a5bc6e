import json
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from accounts import purge
from accounts.models import Deletion, User
from items.actions import like
from items.filters import filters
from items.models import Item, Status
from relations.actions import follow, mute
from tests.support.browsers import Visit, Visitor
from tests.support.factories import PASSWORD, UserFactory, say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

NEW = "sesame-seeds-7"


@pytest.fixture
def author() -> Any:
    return UserFactory.create(username="author", display_name="An Author")


def is_in(visitor: Visitor, tag: str) -> None:
    expect(visitor.page.locator("html")).to_have_attribute("lang", tag)


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
    expect(visitor.page).to_have_url(f"{visitor.site}/@author")
    assert User.objects.get(username="newcomer").display_name == "林美"


def test_changing_the_password(visit: Visit, reader: Any, javascript: bool) -> None:
    here, there = visit(java_script_enabled=javascript), visit(java_script_enabled=javascript)
    here.log_in(reader)
    there.log_in(reader)
    # The home would notice the end of its session and go to the login. A late answer could remove the new session's
    # cookie.
    there.goto("/settings")
    here.goto("/settings/password")
    here.page.get_by_label("Current password").fill(PASSWORD)
    here.page.get_by_label("New password").fill(NEW)
    here.page.get_by_role("button", name="Change password").click()
    expect(here.page.get_by_role("status").get_by_text("Password changed.")).to_be_visible()
    there.goto("/settings")
    expect(there.page.get_by_role("heading", name="Log in")).to_be_visible()
    log_in(there, "reader", NEW)
    there.goto("/settings")
    here.goto("/settings/devices")
    here.page.get_by_role("button", name="Log out on all other devices").click()
    expect(here.page.get_by_role("status").get_by_text("You're logged out on all other devices.")).to_be_visible()
    there.goto("/settings")
    expect(there.page.get_by_role("heading", name="Log in")).to_be_visible()


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


def test_leaving(visit: Visit, reader: Any, author: Any, javascript: bool) -> None:
    other = UserFactory.create(username="other")
    follow(follower=reader, followee=other)
    stays, goes = say(other, "stays"), say(author, "goes")
    like(user=author, item=stays)
    watcher, leaver = visit(java_script_enabled=javascript), visit(java_script_enabled=javascript)
    watcher.log_in(reader)
    watcher.shows(["goes", "stays"])
    leaver.log_in(author)
    leaver.goto("/settings/delete")
    leaver.page.get_by_label("Type your username to confirm").fill("author")
    leaver.page.get_by_label("Password").fill(PASSWORD)
    leaver.page.get_by_role("button", name="Delete my account forever").click()
    expect(leaver.page.get_by_role("status").get_by_text("Your account is deleted.")).to_be_visible()

    watcher.goto("/")
    watcher.shows(["stays"])
    Deletion.objects.update(created_at=timezone.now() - purge.STRAGGLERS - timedelta(seconds=1), tried_at=None)
    assert purge.purge(author.pk)
    assert Item.objects.get(pk=goes.pk).status == Status.DELETED
    watcher.goto("/@reader")
    expect(watcher.page.get_by_role("link", name="1 following")).to_be_visible()
    assert User.objects.get(pk=reader.pk).following_count == 1


def test_a_chinese_browser_is_answered_in_chinese(visit: Visit, reader: Any, author: Any, javascript: bool) -> None:
    say(author, "words")
    visitor = visit(locale="zh-CN", java_script_enabled=javascript)
    visitor.goto("/login")
    is_in(visitor, "zh-Hans")
    expect(visitor.page.get_by_role("heading", name="登录")).to_be_visible()
    log_in(visitor, "reader")
    expect(visitor.page.get_by_role("heading", name="首页")).to_be_visible()
    expect(visitor.page.get_by_label("有什么新鲜事")).to_be_visible()
    expect(visitor.page.get_by_text("刚刚")).to_be_visible()
    visitor.goto("/@author")
    expect(visitor.page.get_by_text("1 粉丝")).to_be_visible()
    if javascript:
        visitor.page.locator("#follow").click()
        expect(visitor.page.get_by_role("button", name="关注", exact=True)).to_be_visible()
        expect(visitor.page.get_by_text("0 粉丝")).to_be_visible()


def test_a_stranger_switches_the_language_and_back(visit: Visit, javascript: bool) -> None:
    visitor = visit(java_script_enabled=javascript)
    visitor.goto("/signup?next=%2Fsettings")
    is_in(visitor, "en")
    visitor.page.get_by_role("button", name="中文").click()
    is_in(visitor, "zh-Hans")
    expect(visitor.page).to_have_url(f"{visitor.site}/signup?next=%2Fsettings")
    visitor.goto("/login")
    is_in(visitor, "zh-Hans")
    visitor.page.get_by_role("button", name="English").click()
    is_in(visitor, "en")


@pytest.mark.parametrize("width", [390, 1280])
def test_signing_up_ends_at_the_welcome_where_next_is_no_address(visit: Visit, width: int, javascript: bool) -> None:
    visitor = visit(java_script_enabled=javascript, viewport={"width": width, "height": 800})
    visitor.goto("/signup?next=foo")
    visitor.page.locator("#id_username").fill("newcomer")
    visitor.page.locator("#id_password").fill(PASSWORD)
    visitor.go(visitor.page.get_by_role("button", name="Create account"))
    expect(visitor.page.get_by_role("heading", name="Welcome, @newcomer")).to_be_visible()
    expect(visitor.page).to_have_url(f"{visitor.site}/welcome")
    assert User.objects.filter(username="newcomer").exists()


def test_the_language_of_the_settings_holds_everywhere(visit: Visit, reader: Any, javascript: bool) -> None:
    visitor = visit(java_script_enabled=javascript)
    visitor.log_in(reader)
    visitor.goto("/settings")
    visitor.page.get_by_role("link", name="Privacy, language, appearance").click()
    visitor.page.get_by_label("Language").select_option("zh-hans")
    visitor.page.get_by_label("Time zone").select_option("Asia/Tokyo")
    visitor.page.get_by_role("button", name="Save").click()
    is_in(visitor, "zh-Hans")
    expect(visitor.page.get_by_role("status").get_by_text("已保存。")).to_be_visible()
    other = visit()
    log_in(other, "reader")
    is_in(other, "zh-Hans")


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


def test_taking_ones_data_along(visit: Visit, reader: Any, author: Any, tmp_path: Path, javascript: bool) -> None:
    said = [say(reader, f"words {number}") for number in range(3)]
    liked = say(author, "liked")
    like(user=reader, item=liked)
    visitor = visit(java_script_enabled=javascript, accept_downloads=True)
    visitor.log_in(reader)
    visitor.goto("/settings/data")
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("button", name="Download my data").click()
    assert download.value.suggested_filename.startswith("feedsite-reader-")
    download.value.save_as(tmp_path / "data.zip")
    with zipfile.ZipFile(tmp_path / "data.zip") as archive:
        assert archive.testzip() is None
        rows = {name: archive.read(name).decode().splitlines() for name in archive.namelist()}
    assert [json.loads(row)["id"] for row in rows["items.jsonl"]] == [str(item.pk) for item in said]
    assert [json.loads(row)["item_id"] for row in rows["likes.jsonl"]] == [str(liked.pk)]
    assert [json.loads(row)["username"] for row in rows["follows.jsonl"]] == ["author"]
    assert "@reader" in rows["README.txt"][0]


@pytest.mark.parametrize("width", [390, 1280])
def test_a_name_that_deceives_is_refused_where_it_is_typed(
    visit: Visit, reader: Any, tolerated: Any, width: int
) -> None:
    tolerated("with a status of 422")
    visitor = visit(viewport={"width": width, "height": 800})
    visitor.enter(reader)
    visitor.goto("/settings/profile")
    name = visitor.page.get_by_label("Display name")
    name.fill("Ann\u202enimdA")
    visitor.page.get_by_role("button", name="Save").click()
    expect(visitor.page.locator(".errorlist")).to_contain_text("change the writing direction")
    name.fill("שרה")
    visitor.page.get_by_role("button", name="Save").click()
    expect(visitor.page.get_by_role("status").get_by_text("Saved.")).to_be_visible()
    assert User.objects.get(pk=reader.pk).display_name == "שרה"


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
