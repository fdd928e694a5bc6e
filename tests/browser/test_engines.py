"""The core of the site in each engine: Chromium every time, Firefox and WebKit in the long run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from accounts.models import User
from items.models import Like
from tests.support.browsers import Underway
from tests.support.engines import FirefoxTab, Line, PlaywrightTab, Tab, WebKitTab, missing
from tests.support.factories import PASSWORD, say
from tests.support.picture_posts import posted, sent
from tests.support.pictures import jpeg

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

OTHERS = {"firefox": FirefoxTab, "webkit": WebKitTab}
ENGINES = ["chromium", *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)]


@pytest.fixture
def line(live_server: Any) -> Iterator[Line]:
    line = Line(int(live_server.url.rsplit(":", 1)[1]))
    yield line
    line.cut()


@pytest.fixture(params=ENGINES)
def tab(request: pytest.FixtureRequest, line: Line, settings: Any) -> Iterator[Tab]:
    settings.HOME_POLL_SECONDS = 1000
    settings.STREAM = False
    settings.RATE_SCALE = 1000.0
    if absent := missing(request.param):
        pytest.skip(f"install Debian's packages {absent} to try {request.param}")
    underway = Underway()
    tab: Tab
    if request.param == "chromium":
        browser = request.getfixturevalue("browser")
        tab = PlaywrightTab(browser.new_context(viewport={"width": 1280, "height": 900}).new_page())
    else:
        tab = OTHERS[request.param]()
    tab.site = line.address
    yield tab
    tab.end()
    line.cut()
    underway.end()


def enter(tab: Tab, user: User) -> None:
    client = Client()
    client.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    tab.goto("/health/live")
    tab.add_cookie(name, client.cookies[name].value)


@pytest.fixture
def home(tab: Tab, reader: User, author: User) -> Tab:
    for number in range(45):
        say(author, f"words {number}")
    enter(tab, reader)
    tab.goto("/")
    return tab


def pick(tab: Tab, tmp_path: Path, found: str, width: int, height: int) -> None:
    path = tmp_path / f"{width}x{height}.jpg"
    path.write_bytes(jpeg(width, height))
    tab.choose(found, path)


CARDS = "document.querySelectorAll('#feed > article')"


def test_a_member_logs_in_writes_likes_and_deletes(tab: Tab, reader: User) -> None:
    tab.goto("/login")
    tab.type("[name=username]", reader.username)
    tab.type("[name=password]", PASSWORD)
    tab.js("document.querySelector('[name=password]').form.requestSubmit()")
    tab.shows("form.composer > textarea")
    tab.until("return document.readyState === 'complete'")
    tab.click("form.composer > textarea")
    tab.type("form.composer > textarea", "my own words")
    tab.click("form.composer .send")
    tab.until("return document.querySelector('#feed > article .text')?.textContent.includes('my own words')")
    tab.until("return !document.querySelector('.htmx-request, .htmx-swapping, .htmx-settling, .htmx-added')")
    tab.click("#feed > article [data-act=like]")
    tab.until("return document.querySelector('#feed > article [data-act=like][aria-pressed=true]')")
    tab.until("return !document.querySelector('.underway')")
    assert Like.objects.count() == 1
    tab.click("#feed > article .menu > :is(.opens, summary)")
    tab.until("return [...document.querySelectorAll('#feed details.menu[open] *')].some(e => e.matches('.dangerous'))")
    tab.click("#feed details.menu[open] .dangerous")
    tab.shows("#question[open]")
    tab.click('#question [value="sure"]')
    tab.until(f"return {CARDS}.length === 0")
    tab.goto("/")
    assert tab.js(f"return {CARDS}.length") == 0


@pytest.mark.parametrize("place", [15, 31])
def test_back_and_reload_are_exactly_where_one_was(home: Tab, place: int) -> None:
    home.js("document.getElementById('more').scrollIntoView()")
    home.until(f"return {CARDS}.length >= 40")
    home.js(f"{CARDS}[arguments[0]].scrollIntoView({{ block: 'center' }})", place)
    name = home.js(f"return {CARDS}[arguments[0]].id", place)
    before = home.box(f"#{name}")[1]
    home.js("document.querySelector(arguments[0]).click()", f"#{name} .time")
    home.until("return document.querySelector('article.whole') && document.readyState === 'complete'")
    home.js("setTimeout(() => history.back())")
    there = "const top = document.getElementById(arguments[0])?.getBoundingClientRect().top;"
    home.until(f"{there} return Math.abs(top - arguments[1]) < 1", name, before)
    home.js("setTimeout(() => location.reload())")
    home.until(f"{there} return Math.abs(top - arguments[1]) < 1 && document.readyState === 'complete'", name, before)


def test_pictures_in_a_composer_stay_seen_in_their_order(home: Tab, tmp_path: Path, media_folder: Path) -> None:
    home.click("form.composer > textarea")
    for count, size in ((1, (600, 400)), (2, (400, 400))):
        pick(home, tmp_path, "form.composer [data-pick]", *size)
        home.until("return document.querySelectorAll('.medium[data-state=kept] canvas').length === arguments[0]", count)
    seen = [home.colour(f".medium:nth-child({place}) canvas", 0.1, 0.1) for place in (1, 2)]
    home.click(".medium:nth-child(1) [data-medium-act=after]")
    home.until("return document.querySelector('.medium:nth-child(2) canvas').width === 320")
    moved = [home.colour(f".medium:nth-child({place}) canvas", 0.1, 0.1) for place in (2, 1)]
    assert all(abs(a - b) < 40 for one, other in zip(seen, moved, strict=True) for a, b in zip(one, other, strict=True))


def test_a_poll_is_written(home: Tab) -> None:
    home.click("form.composer > textarea")
    home.type("form.composer > textarea", "which one")
    home.click("form.composer .polled > summary")
    home.shows("form.composer [name=option_1]")
    for number in (1, 2):
        home.type(f"form.composer [name=option_{number}]", f"answer {number}")
    home.click("form.composer .send")
    home.until("return document.querySelector('#feed > article .poll')?.textContent.includes('answer 2')")


def test_a_text_grows_with_what_is_written(home: Tab) -> None:
    home.click("form.composer > textarea")
    before = home.box("form.composer > textarea")[3]
    fill = "const area = document.querySelector('form.composer > textarea'); area.value = arguments[0];"
    fill += "area.dispatchEvent(new Event('input', { bubbles: true }))"
    home.js(fill, "line\n" * 9)
    assert home.box("form.composer > textarea")[3] > 2 * before
    home.js(fill, "line")
    assert home.box("form.composer > textarea")[3] == pytest.approx(before, abs=2)


@pytest.mark.parametrize(("field", "ratio"), [("avatar", 1), ("banner", 3)])
def test_the_crop_dialog_keeps_its_shape(
    tab: Tab, reader: User, tmp_path: Path, media_folder: Path, field: str, ratio: float
) -> None:
    enter(tab, reader)
    tab.goto("/settings/profile")
    pick(tab, tmp_path, f"[name={field}]", 1200, 900)
    tab.shows("#cropper[open] .crop-stage")
    for found in (".crop-view", ".crop-stage"):
        _, _, width, height = tab.box(found)
        assert width / height == pytest.approx(ratio, abs=0.02)
    tab.click("#cropper [data-use]")
    tab.until("return !document.getElementById('cropper').open")
    tab.until("return document.querySelector('[data-crop-shown] canvas') !== null")


def test_a_picture_opens_in_the_viewer_and_closes(tab: Tab, reader: User, author: User, media_folder: Path) -> None:
    posted(author, sent(author, jpeg(800, 600), description="red and blue"))
    enter(tab, reader)
    tab.goto("/")
    tab.click("#feed .picture a, #feed a.picture")
    tab.shows("dialog.lightbox[open]")
    tab.js("setTimeout(() => history.back())")
    tab.until("return !document.querySelector('dialog.lightbox')?.open")


def test_keys_go_through_posts(home: Tab) -> None:
    home.type("body", "jj")
    home.until(f"return document.activeElement === {CARDS}[1]")
    home.type(f"#{home.js('return document.activeElement.id')}", "k")
    home.until(f"return document.activeElement === {CARDS}[0]")
    home.type(f"#{home.js('return document.activeElement.id')}", "l")
    home.until("return document.querySelector('#feed > article [data-act=like][aria-pressed=true]')")


def test_the_last_home_is_shown_offline(home: Tab, line: Line) -> None:
    """The worker keeps the first home that a member reads, which came before it."""
    ready = "(async () => { for (const name of await caches.keys()) if (name.startsWith('home ')) "
    ready += "window.kept = (await (await caches.open(name)).keys()).length; })(); return window.kept"
    home.until(ready)
    line.cut()
    home.js("setTimeout(() => location.assign('/'))")
    home.until("return document.querySelector('.last-home') && document.body.innerText.includes('words 44')")


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_dark_and_chinese_pages(tab: Tab, reader: User, author: User, language: str) -> None:
    say(author, "words")
    User.objects.filter(pk=reader.pk).update(language=language)
    enter(tab, reader)
    tab.add_cookie("theme", "dark")
    tab.goto("/")
    tab.shows("#feed > article")
    assert max(tab.colour("#feed > article", 0.99, 0.9)) < 80
    assert tab.js("return document.documentElement.lang").startswith(language[:2])
    assert tab.js("return document.documentElement.scrollWidth <= innerWidth")
