"""Pages are exact without workers, so none run."""

import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.signals import request_finished, request_started
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Route, expect, sync_playwright

from accounts.models import User
from relations.actions import follow
from tests.support.factories import PASSWORD, UserFactory
from tests.support.streams import StreamServer

ARGUMENTS = [
    "--headless",
    "--no-sandbox",  # containers and root have none
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP *.example ~NOTFOUND",  # whatever the machine's resolver does
]
# Milliseconds, enough for a busy machine.
ACTION = 30_000
EXPECTATION = 20_000
# Without windows it takes a third less time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# Logged while the site is down, by the browser and by htmx.
UNREACHABLE = ("net::ERR_", "htmx:sendError", "htmx:sendAbort", "htmx:afterRequest", "htmx:timeout")
OPENER = ".menu > :is(.opens, summary)"
"""A link without JavaScript, a button after its first click with it."""
MENU = ":is(details.menu[open], .acts-page) > .menu-items"
"""Without JavaScript a page replaces the menu."""
CHOICE = "#reposting [data-repost]"
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if not CHROMIUM:
        pytest.skip("no Chromium: install Debian's package chromium to run the browser tests")
    # Playwright's loop runs in this thread.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    expect.set_options(timeout=EXPECTATION)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


class Visitor:
    """A click returns at once: wait for its effect with `go`, `shows` or `expect`.

    Playwright's own reads (`shown`, `evaluate`, `count`, `url`...) show the current state.
    """

    def __init__(self, page: Page, site: str) -> None:
        self.page = page
        self.site = site

    def sign_up(self, username: str) -> None:
        self.page.goto(f"{self.site}/signup")
        self.page.get_by_label("Username").fill(username)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.go(self.page.get_by_role("button", name="Create account"))
        self.go(self.page.get_by_role("link", name="Skip", exact=True))
        self._is_home()

    def log_in(self, user: Any) -> None:
        self.page.goto(f"{self.site}/login")
        self.page.get_by_label("Username").fill(user.username)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.go(self.page.get_by_role("main").get_by_role("button", name="Log in", exact=True))
        self._is_home()

    def enter(self, user: Any) -> None:
        """Sign in."""
        client = Client()
        client.force_login(user)
        name = settings.SESSION_COOKIE_NAME
        self.page.context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": self.site}])

    def find_media(self, folder: Path) -> None:
        """Serve the files as a site does before Django."""

        def answer(route: Route) -> None:
            (found,) = folder.rglob(route.request.url.rsplit("/", 1)[1])
            route.fulfill(path=found)

        self.page.route(re.compile(f"^{re.escape(self.site)}/media/"), answer)

    def _is_home(self) -> None:
        expect(self.page.get_by_role("heading", name="Home")).to_be_visible()

    def goto(self, path: str) -> None:
        self.page.goto(self.site + path)

    def go(self, way: Locator) -> None:
        """Wait until the new page and its scripts are loaded."""
        with self.page.expect_navigation():
            way.click()

    def settle(self) -> None:
        """Wait for htmx's parts. New buttons work without scripts before."""
        underway = ".htmx-request, .htmx-swapping, .htmx-settling, .htmx-added, .underway"
        expect(self.page.locator(underway)).to_have_count(0)

    def publish(self, text: str) -> None:
        self.settle()
        self.page.get_by_label("What's new?").fill(text)
        self.page.get_by_role("button", name="Publish").click()

    def choose(self, name: str, text: str = "") -> None:
        """Use the menu of the first card with `text`."""
        self.settle()
        card = self.page.locator("article").filter(has_text=text).first
        card.locator(OPENER).click()
        self.page.locator(MENU).get_by_text(name).first.click()  # Edit, not Edit history
        self.settle()

    def confirm(self, question: str, *, is_sure: bool = True) -> None:
        dialog = self.page.get_by_role("dialog", name=question)
        dialog.locator('[value="sure"]' if is_sure else '[value=""]').click()
        expect(dialog).to_be_hidden()

    def shows(self, texts: list[str]) -> None:
        """Wait for these texts in the page's feed, from its top. Whitespace does not matter."""
        expect(self._texts()).to_have_text(texts, use_inner_text=True)

    def shown(self) -> list[str]:
        """The feed's texts now: only for pages that no longer change."""
        return [str(text) for text in self._texts().all_inner_texts()]

    def _texts(self) -> Locator:
        return self.page.locator("[role=feed] article .text")

    def is_at_top(self) -> None:
        self.holds("scrollY === 0")

    def holds(self, expression: str) -> None:
        """Playwright's own wait needs eval, which the pages' policy forbids."""
        until = time.monotonic() + EXPECTATION / 1000
        while not self.page.evaluate(expression):
            assert time.monotonic() < until, f"{expression} does not come true"
            self.page.wait_for_timeout(20)


Visit = Callable[..., Visitor]


class Held:
    """Requests wait, so that the test sees the page meanwhile."""

    def __init__(self, page: Page, pattern: str) -> None:
        self._page = page
        self.asked: list[str] = []
        self._waiting: list[Route] = []
        self._holds = True
        page.route(re.compile(pattern), self._hold)

    def _hold(self, route: Route) -> None:
        self.asked.append(route.request.url)
        if self._holds:
            self._waiting.append(route)
        else:
            route.continue_()

    def let_go(self) -> None:
        """Answer all that wait, and later ones at once."""
        self._holds = False
        while self._waiting:
            self._waiting.pop(0).continue_()

    def answer(self, status: int = 500) -> None:
        """Fail all that wait, one at least. Later ones are not held."""
        until = time.monotonic() + EXPECTATION / 1000
        while not self._waiting:
            assert time.monotonic() < until, "nothing was asked"
            self._page.wait_for_timeout(20)
        self._holds = False
        while self._waiting:
            self._waiting.pop(0).fulfill(status=status, body="")


class Underway:
    """A request that outlives its test deadlocks with the flush of the tables."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()
        request_started.connect(self._start)
        request_finished.connect(self._finish)

    def _start(self, **kwargs: Any) -> None:
        with self._changed:
            self._count += 1

    def _finish(self, **kwargs: Any) -> None:
        with self._changed:
            self._count -= 1
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._count <= 0, timeout=60)
        request_started.disconnect(self._start)
        request_finished.disconnect(self._finish)


@pytest.fixture
def tolerated() -> Callable[..., None]:
    """Allow errors of a server that the test stops."""
    words: list[str] = []

    def tolerate(*some: str) -> None:
        words.extend(some)

    tolerate.words = words  # type: ignore[attr-defined]
    return tolerate


@pytest.fixture
def visit(browser: Browser, live_server: Any, settings: Any, tolerated: Any) -> Iterator[Visit]:
    """An error logged by a page fails the test."""
    settings.HOME_POLL_SECONDS = 0.3
    settings.STREAM = False  # tests that want it start one (test_live.py)
    settings.RATE_SCALE = 1000.0
    contexts: list[BrowserContext] = []
    errors: list[str] = []
    underway = Underway()

    def new(**options: Any) -> Visitor:
        # Playwright does not see a service worker's requests.
        usual = {"viewport": {"width": 1280, "height": 900}, "service_workers": "block"}
        context = browser.new_context(**usual | options)
        context.set_default_timeout(ACTION)
        contexts.append(context)
        context.on("weberror", lambda failure: errors.append(str(failure.error)))
        context.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        return Visitor(context.new_page(), live_server.url)

    def close() -> None:
        while contexts:
            contexts.pop().close()

    new.close = close  # type: ignore[attr-defined]
    yield new
    close()
    underway.end()
    logged = [error for error in errors if not any(word in error for word in tolerated.words)]
    assert not logged, logged


@pytest.fixture(params=[True, False], ids=["javascript", "no javascript"])
def javascript(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


SCREENS: dict[str, dict[str, Any]] = {
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
    "desktop": {"viewport": {"width": 1280, "height": 900}},
}


@pytest.fixture(params=SCREENS)
def screen(request: pytest.FixtureRequest) -> dict[str, Any]:
    return SCREENS[request.param]


@pytest.fixture
def streams(tmp_path: Path, visit: Visit, settings: Any) -> Iterator[StreamServer]:
    """The site redirects to it. News must come from the stream: polling is slow."""
    server = StreamServer(tmp_path)
    server.start()
    settings.STREAM = True
    settings.STREAM_PORT = server.port
    settings.HOME_POLL_SECONDS = 1000
    yield server
    visit.close()  # type: ignore[attr-defined]  # before pages can complain that it is gone
    server.end()


def is_live(page: Page) -> None:
    """Wait for its first request. It leaves the page first, so that an old one cannot count."""
    address = page.url
    page.goto("about:blank")
    with page.expect_response(re.compile("/new")):
        page.goto(address)


@pytest.fixture
def reader(author: User) -> User:
    reader = UserFactory.create(username="reader")
    follow(follower=reader, followee=author)
    return reader
