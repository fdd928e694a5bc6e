import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from live import actions, reminders
from live.models import KeptSnapshot, LiveSession, State
from relations.actions import follow, unfollow
from storage import connections
from tests.support.browsers import Visit, Visitor, is_live
from tests.support.factories import UserFactory
from tests.support.streams import StreamServer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def host() -> Any:
    return UserFactory.create(username="host", display_name="The Host")


@pytest.fixture
def fan(host: Any) -> Any:
    fan = UserFactory.create(username="fan")
    follow(follower=fan, followee=host)
    return fan


def plan(host: Any, title: str, minutes: float = 60, state: State = State.UPCOMING) -> LiveSession:
    now = timezone.now()
    made = actions.create(host=host, title=title, starts_at=now + timedelta(minutes=minutes), now=now)
    if state != State.UPCOMING:
        made = actions.start(session=made, now=now)
    return actions.end(session=made, now=now) if state == State.REPLAY else made


def enter(visit: Visit, user: Any, path: str, **options: Any) -> Visitor:
    visitor = visit(**options)
    visitor.enter(user)
    visitor.goto(path)
    return visitor


def card(page: Page, title: str) -> Locator:
    return page.locator("article.session").filter(has_text=title)


def titles(page: Page) -> Locator:
    return page.locator("[role=feed] article .title")


def shows(one: Locator, *words: str) -> None:
    for word in words:
        expect(one).to_contain_text(word)


def scroll_down(page: Page) -> None:
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")


def test_a_host_and_who_watches(visit: Visit, streams: StreamServer, host: Any, fan: Any) -> None:
    earlier = plan(host, "earlier", state=State.LIVE)
    host_visitor = enter(visit, host, "/live/own")
    hosting = host_visitor.page
    host_visitor.go(hosting.get_by_role("link", name="Schedule a session").first)
    hosting.get_by_label("Title").fill("Bread")
    hosting.get_by_label("Link to watch").fill("https://watch.example/bread")
    host_visitor.go(hosting.get_by_role("button", name="Schedule"))
    expect(hosting.get_by_text("Scheduled. Your followers can see it now.")).to_be_visible()
    expect(hosting.get_by_role("heading", name="Bread")).to_be_visible()
    session = LiveSession.objects.get(title="Bread")

    viewer = enter(visit, fan, "/live")
    is_live(viewer.page)
    stranger = enter(visit, UserFactory.create(username="stranger"), f"/live/{session.pk}")
    is_live(stranger.page)
    bread = card(viewer.page, "Bread")
    shows(bread, "Upcoming", "Starts in ")
    bread.get_by_role("button", name="Notify me").click()
    expect(bread.get_by_role("button", name="Reminder set")).to_be_focused()
    order = ["earlier", "Bread"]
    expect(titles(viewer.page)).to_have_text(order)

    hosting.get_by_role("button", name="Go live").click()
    expect(hosting.locator("#question .danger")).to_have_count(0)
    host_visitor.confirm("Go live now?")
    shows(card(hosting, "Bread"), "Live")
    expect(hosting.get_by_role("status").get_by_text("You're live.")).to_be_visible()
    expect(card(hosting, "Bread").locator(".doing .danger")).to_have_text("End session")
    shows(bread, "Live", "has started")
    expect(bread.get_by_role("link", name="Watch")).to_have_attribute("href", "https://watch.example/bread")
    expect(viewer.page.get_by_role("link", name="1 session went live")).to_be_visible()
    expect(titles(viewer.page)).to_have_text(order)
    shows(card(stranger.page, "Bread"), "Live", "has started", "Watch")
    told(session, viewer)

    expect(hosting.get_by_label("Keep the replay")).to_have_count(0)
    hosting.get_by_role("button", name="End session").click()
    hosting.locator("#question").get_by_label("Keep the replay").check()
    expect(hosting.locator("#question .danger")).to_have_text("End session")
    host_visitor.confirm("End this session?")
    shows(card(hosting, "Bread"), "Replay")
    expect(hosting.get_by_text("The session has ended.")).to_be_visible()
    expect(hosting.get_by_text("You're live.")).to_have_count(0)
    shows(bread, "Replay", "has ended", "Watch the replay")
    shows(card(stranger.page, "Bread"), "Replay", "has ended")
    expect(viewer.page.locator(".pill")).to_have_count(0)
    hosting.get_by_role("button", name="Remove replay").click()
    host_visitor.confirm("Remove this replay? After that, only you can see it.")
    shows(card(hosting, "Bread"), "Ended", "no replay")
    expect(bread).to_have_count(0)
    expect(stranger.page.get_by_role("status").get_by_text("This is no longer available.")).to_be_visible()
    assert LiveSession.objects.get(pk=earlier.pk).state == State.LIVE


def told(session: LiveSession, viewer: Visitor) -> None:
    """Creates the notification that workers would, and waits for the badge."""
    reminders.send(session.pk)
    expect(viewer.page.locator("#unread")).to_contain_text("1 unread notification")
    viewer.page.context.new_page().goto(f"{viewer.site}/notifications")
    notifications = viewer.page.context.pages[-1]
    Visitor(notifications, viewer.site).go(notifications.get_by_role("main").get_by_role("link", name="Bread"))
    expect(notifications.get_by_role("heading", name="Bread")).to_be_visible()
    notifications.close()


def test_what_changes_while_one_scrolls(visit: Visit, host: Any, fan: Any) -> None:
    """Without the stream. Order stays and changes are marked in place, also on later pages."""
    other = UserFactory.create(username="other")
    follow(follower=fan, followee=other)
    live = [plan(host, f"live {number}", state=State.LIVE) for number in range(3)][::-1]
    upcoming = [
        plan(other if number % 10 == 5 else host, f"soon {number:02}", minutes=60 + number) for number in range(40)
    ]
    replays = [plan(host, f"replay {number}", state=State.REPLAY) for number in range(4)][::-1]
    visitor = enter(visit, fan, "/live")
    page = visitor.page
    expect(page.locator("article.session")).to_have_count(20)
    reading = card(page, "soon 01")
    reading.scroll_into_view_if_needed()
    place = reading.bounding_box()

    now = timezone.now()
    actions.end(session=live[0], now=now)
    actions.start(session=upcoming[3], now=now)
    actions.start(session=upcoming[30], now=now)
    actions.cancel(session=upcoming[31], now=now)
    actions.cancel(session=upcoming[4], now=now)
    unfollow(follower=fan, followee=other)
    shows(card(page, live[0].title), "Replay", "has ended")
    shows(card(page, "soon 03"), "Live", "has started")
    shows(card(page, "soon 04"), "Cancelled", "was cancelled")
    expect(page.get_by_role("link", name="2 sessions went live")).to_be_visible()
    assert place
    # The page corrects its scroll position in the next frame.
    visitor.holds(
        f"Math.abs(document.getElementById('session-{upcoming[1].pk}').getBoundingClientRect().y - {place['y']}) < 2"
    )

    for count in (40, 44):
        scroll_down(page)
        expect(page.locator("article.session")).to_have_count(count)
    scroll_down(page)
    expect(page.get_by_text("You've reached the end.")).to_be_visible()
    shows(card(page, "soon 30"), "Live", "has started")
    # Cards on the page stay. Later pages leave out planned sessions of unfollowed hosts.
    gone = {"soon 25", "soon 31", "soon 35"}
    shown = [one.title for one in [*live, *upcoming, *replays] if one.title not in gone]
    expect(titles(page)).to_have_text(shown)
    expect(page.locator("article.session").last).to_have_attribute("aria-posinset", str(len(shown)))

    page.get_by_role("link", name="2 sessions went live").click()
    expect(page.locator("article.session .title").first).to_have_text("soon 30")
    expect(page.locator(".changed")).to_have_count(0)


def forget_walks() -> None:
    client = connections.feeds()
    for key in client.scan_iter(match="live:snapshot:*"):
        client.delete(key)
    KeptSnapshot.objects.all().delete()


def test_a_list_that_was_left_alone_begins_anew(
    visit: Visit, host: Any, fan: Any, javascript: bool, tolerated: Any
) -> None:
    for number in range(25):
        plan(host, f"soon {number:02}", minutes=60 + number)
    visitor = enter(visit, fan, "/live", java_script_enabled=javascript)
    page = visitor.page
    expect(page.locator("article.session")).to_have_count(20)
    actions.start(session=LiveSession.objects.get(title="soon 20"), now=timezone.now())
    forget_walks()
    if javascript:
        scroll_down(page)
    else:
        visitor.go(page.get_by_role("link", name="Load more"))
    expect(page.get_by_text("This list has changed. You're back at the top.")).to_be_visible()
    expect(page.locator("article.session .title").first).to_have_text("soon 20")
    if javascript:
        visitor.is_at_top()
        scroll_down(page)
    else:
        visitor.go(page.get_by_role("link", name="Load more"))
    expect(page.get_by_text("You've reached the end.")).to_be_visible()
    expect(titles(page).last).to_have_text("soon 24")


def test_countdowns_tick_in_the_readers_zone(visit: Visit, host: Any, fan: Any) -> None:
    session = plan(host, "Bread", minutes=11)
    visitor = visit(timezone_id="Asia/Shanghai", locale="zh-CN")
    visitor.enter(fan)
    visitor.page.clock.install(time=session.starts_at - timedelta(seconds=659))
    visitor.goto("/live")
    visitor.goto("/live")  # the first visit sets the time zone
    clock, when = visitor.page.locator(".clock"), visitor.page.locator(".when time")
    expect(clock).to_have_text("10 分钟后开播")
    local = (session.starts_at + timedelta(hours=8)).strftime("%H:%M")
    expect(when).to_contain_text(local)
    visitor.page.clock.run_for(120_000)
    expect(clock).to_have_text(re.compile(r"^8 分 \d+ 秒后开播$"))
    visitor.page.clock.run_for(600_000)
    expect(clock).to_have_text("即将开播")
