import json
from typing import Any

import pytest
from playwright.sync_api import expect

from accounts.models import User
from feedsite.public import installing
from items.actions import publish
from notifications.models import PushSubscription
from tests.support.browsers import Visit, Visitor
from tests.support.factories import say
from tests.support.far_servers import FarServer
from tests.support.push_services import Device

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

KEPT = """async () => {
    const kept = {};
    for (const name of await caches.keys()) {
        const cache = await caches.open(name);
        kept[name] = (await cache.keys()).map((request) => new URL(request.url).pathname);
    }
    return kept;
}"""
HOME_TEXT = """async () => {
    const name = (await caches.keys()).find((each) => each.startsWith("home"));
    const kept = name && await (await caches.open(name)).match("/", { ignoreVary: true });
    return kept ? await kept.text() : null;
}"""


@pytest.fixture
def visitor(visit: Visit, reader: Any, author: Any, tolerated: Any) -> Visitor:
    """A reader whose service worker has stored a home with a post."""
    tolerated("net::ERR_INTERNET_DISCONNECTED", "Failed to fetch", "Content Security Policy", "401", "ERR_FAILED")
    publish(sender=author, content={"text": "kept words"})
    visitor = visit(service_workers="allow")
    visitor.log_in(reader)
    ready(visitor)
    visitor.goto("/")
    keeps(visitor, True)
    return visitor


def ready(visitor: Visitor) -> None:
    visitor.page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    visitor.holds("navigator.serviceWorker.controller !== null")


def keeps(visitor: Visitor, is_kept: bool) -> None:
    for _ in range(200):
        if (visitor.page.evaluate(HOME_TEXT) is not None) == is_kept:
            return
        visitor.page.wait_for_timeout(50)
    raise AssertionError(visitor.page.evaluate(KEPT))


def offline(visitor: Visitor, is_offline: bool = True) -> None:
    visitor.page.context.set_offline(is_offline)


def test_the_last_home_is_shown_offline(visitor: Visitor) -> None:
    offline(visitor)
    visitor.goto("/")
    expect(visitor.page.get_by_text("kept words")).to_be_visible()
    expect(visitor.page.get_by_text("You're offline. This is your home as you last saw it.")).to_be_visible()
    color = visitor.page.evaluate("getComputedStyle(document.querySelector('.shell')).display")
    assert color != "block"  # site.css is loaded
    visitor.goto("/notifications")
    for words in ("You're offline", "Connect to the internet to see this page."):
        expect(visitor.page.get_by_text(words, exact=True).first).to_be_visible()
    expect(visitor.page.get_by_text("the site doesn't answer")).to_be_hidden()
    visitor.go(visitor.page.get_by_role("link", name="Go home"))
    expect(visitor.page.get_by_text("kept words")).to_be_visible()
    assert visitor.page.locator("[inert] [data-act=like]").count() == 1
    assert visitor.page.locator("form.composer:not([inert])").count() == 0
    offline(visitor, False)
    visitor.go(visitor.page.get_by_role("link", name="Try again"))
    expect(visitor.page.get_by_text("as you last saw it")).to_have_count(0)


def test_nobody_votes_in_the_last_home(visitor: Visitor, author: Any) -> None:
    publish(sender=author, type="poll", content={"poll": {"options": ["tea", "milk"], "closes_in": 600}})
    visitor.goto("/")
    vote = visitor.page.locator(".poll button")
    expect(vote).not_to_have_attribute("inert", "")
    visitor.holds(f"({HOME_TEXT})().then((home) => home.includes('tea'))")
    offline(visitor)
    visitor.goto("/")
    expect(visitor.page.get_by_text("as you last saw it")).to_be_visible()
    expect(vote).to_have_attribute("inert", "")


def test_a_page_comes_by_itself_when_the_network_is_back(visitor: Visitor) -> None:
    offline(visitor)
    visitor.goto("/settings")
    expect(visitor.page.get_by_role("heading", name="You're offline")).to_be_visible()
    with visitor.page.expect_navigation():
        offline(visitor, False)
    expect(visitor.page.get_by_role("heading", name="Settings")).to_be_visible()


def test_a_site_that_is_away_is_told_from_a_network(visitor: Visitor, tolerated: Any) -> None:
    tolerated("ERR_CONNECTION")
    visitor.page.context.route("**/*", lambda route: route.abort("connectionrefused"))
    offline(visitor)
    visitor.goto("/settings")
    offline(visitor, False)
    expect(visitor.page.get_by_role("heading", name="Can't reach")).to_be_visible()


def test_a_kept_page_acts_on_nothing(visitor: Visitor) -> None:
    token = next(c["value"] for c in visitor.page.context.cookies() if c["name"] == "csrftoken")
    text = visitor.page.evaluate(HOME_TEXT)
    assert '"X-CSRFToken": ""' in text
    assert 'name="csrfmiddlewaretoken" value=""' in text
    assert token not in text
    offline(visitor)
    visitor.goto("/")
    assert visitor.page.evaluate("typeof htmx") == "undefined"
    offline(visitor, False)
    visitor.page.evaluate("document.querySelector('article [data-act=like]').click()")
    visitor.page.wait_for_timeout(300)
    assert visitor.page.url == f"{visitor.site}/"
    from items.models import Like

    assert not Like.objects.exists()


def test_nothing_of_a_member_is_left_after_the_log_out(visitor: Visitor) -> None:
    visitor.goto("/settings")
    visitor.go(visitor.page.get_by_role("button", name="Log out").locator("visible=true"))
    keeps(visitor, False)
    offline(visitor)
    visitor.goto("/")
    expect(visitor.page.get_by_text("You're offline", exact=True).first).to_be_visible()
    expect(visitor.page.get_by_text("kept words")).to_have_count(0)
    assert "kept words" not in json.dumps(visitor.page.evaluate(KEPT))


def test_a_session_that_ended_elsewhere(visitor: Visitor) -> None:
    visitor.page.context.clear_cookies()
    visitor.goto("/about")
    keeps(visitor, False)


def test_another_member_of_the_browser(visitor: Visitor, author: User) -> None:
    visitor.enter(author)
    visitor.goto("/settings")
    keeps(visitor, False)


def test_a_new_version_drops_what_the_old_one_kept(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(visitor.page.evaluate(KEPT))
    assert len(before) == 2
    monkeypatch.setattr(installing, "FRAME", installing.FRAME[:2])
    visitor.page.evaluate("navigator.serviceWorker.getRegistration().then((each) => each.update()).then(() => true)")
    for _ in range(200):
        if not before & set(visitor.page.evaluate(KEPT)):
            break
        visitor.page.wait_for_timeout(50)
    (name,) = visitor.page.evaluate(KEPT)
    assert name.startswith("frame ")
    assert name not in before


def test_strangers_get_no_worker(visit: Visit) -> None:
    visitor = visit(service_workers="allow")
    visitor.goto("/about")
    visitor.page.wait_for_timeout(300)
    assert visitor.page.evaluate("navigator.serviceWorker.getRegistration().then((each) => each === undefined)")


def test_without_javascript_the_page_says_so(visit: Visit, reader: User) -> None:
    visitor = visit(java_script_enabled=False)
    visitor.enter(reader)
    visitor.goto("/settings/notifications/push")
    expect(visitor.page.get_by_text("you need JavaScript")).to_be_visible()
    expect(visitor.page.get_by_role("button", name="Turn on in this browser")).to_be_hidden()


def test_without_support_the_page_says_so(visit: Visit, reader: User) -> None:
    visitor = visit(service_workers="allow")
    visitor.page.add_init_script("delete window.PushManager")
    visitor.enter(reader)
    visitor.goto("/settings/notifications/push")
    expect(visitor.page.get_by_text("you need JavaScript")).to_be_visible()
    expect(visitor.page.get_by_role("button", name="Turn on in this browser")).to_be_hidden()


SUBSCRIBE = """(() => {
    window.asked = 0;
    // Chromium without a window says "denied", whatever is permitted.
    Object.defineProperty(Notification, "permission", { get: () => "granted" });
    const ask = Notification.requestPermission.bind(Notification);
    Notification.requestPermission = (...all) => { window.asked += 1; return ask(...all); };
    PushManager.prototype.getSubscription = async () => null;
    PushManager.prototype.subscribe = async (options) => {
        window.options = options;
        return { toJSON: () => (BODY) };
    };
})();"""


@pytest.fixture
def device(service: FarServer) -> Device:
    return Device(service)


def test_push_is_turned_on_tried_and_turned_off(
    visit: Visit, reader: User, author: User, device: Device, prompt: None
) -> None:
    visitor = visit(service_workers="allow", permissions=["notifications"])
    page = visitor.page
    page.add_init_script(SUBSCRIBE.replace("BODY", json.dumps(device.body)))
    visitor.enter(reader)
    visitor.goto("/settings/notifications")
    visitor.go(page.get_by_role("link", name="Devices and quiet hours"))
    assert page.evaluate("window.asked") == 0
    with page.expect_navigation():
        page.get_by_role("button", name="Turn on in this browser").click()
    expect(page.get_by_role("heading", name="this device")).to_be_visible()
    expect(page.get_by_role("button", name="Turn on in this browser")).to_have_count(0)
    row = PushSubscription.objects.get()
    assert row.endpoint == device.endpoint
    say(author, "hello @reader")
    assert [message["body"] for message in device.messages] == ["hello @reader"]
    page.get_by_label("Replies").uncheck()
    page.get_by_label("What they show").select_option("none")
    visitor.go(page.locator(".push-device").get_by_role("button", name="Save"))
    row.refresh_from_db()
    assert "reply" not in row.kinds
    assert row.words == "none"
    visitor.go(page.get_by_role("button", name="Send test"))
    assert device.messages[-1]["body"] == "Push notifications work on this device."
    visitor.go(page.get_by_role("button", name="Turn off"))
    assert not PushSubscription.objects.exists()
    visitor.goto("/")
    page.wait_for_timeout(300)
    assert not PushSubscription.objects.exists()


def test_the_next_log_in_of_the_same_member_goes_on(visit: Visit, reader: User, author: User, device: Device) -> None:
    visitor = visit(service_workers="allow", permissions=["notifications"])
    page = visitor.page
    page.add_init_script(SUBSCRIBE.replace("BODY", json.dumps(device.body)))
    visitor.log_in(reader)
    visitor.goto("/settings/notifications/push")
    with page.expect_navigation():
        page.get_by_role("button", name="Turn on in this browser").click()
    visitor.goto("/settings")
    visitor.go(page.get_by_role("button", name="Log out").locator("visible=true"))
    assert not PushSubscription.objects.exists()
    visitor.log_in(author)
    page.wait_for_timeout(500)
    assert not PushSubscription.objects.exists()
    visitor.goto("/settings")
    visitor.go(page.get_by_role("button", name="Log out").locator("visible=true"))
    visitor.log_in(reader)
    for _ in range(100):
        if PushSubscription.objects.filter(user=reader).exists():
            break
        page.wait_for_timeout(50)
    assert PushSubscription.objects.get().user == reader


def test_a_browser_that_refuses(visit: Visit, reader: User) -> None:
    visitor = visit(service_workers="allow")
    visitor.page.add_init_script("Notification.requestPermission = async () => 'denied'")
    visitor.enter(reader)
    visitor.goto("/settings/notifications/push")
    visitor.page.get_by_role("button", name="Turn on in this browser").click()
    expect(visitor.page.get_by_text("Your browser blocks notifications from this site.")).to_be_visible()
    assert not PushSubscription.objects.exists()
