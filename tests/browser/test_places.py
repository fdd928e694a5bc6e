from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import User
from items.actions import publish
from items.models import Item
from live import actions as live
from relations.actions import follow
from tests.support.browsers import Held, Visit, Visitor
from tests.support.factories import UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def posts(author: Any) -> list[Item]:
    return [publish(sender=author, content={"text": f"words {number}"}) for number in range(75)]


@pytest.fixture
def visitor(visit: Visit, author: Any, posts: list[Item], screen: dict[str, Any], settings: Any) -> Visitor:
    settings.HOME_POLL_SECONDS = 1000
    reader = UserFactory.create(username="reader")
    follow(follower=reader, followee=author)
    visitor = visit(**screen)
    visitor.enter(reader)
    # Without HTTP and back-forward cache every page is requested again.
    visitor.page.context.new_cdp_session(visitor.page).send("Network.setCacheDisabled", {"cacheDisabled": True})
    return visitor


def place_of(visitor: Visitor, item: Item) -> float:
    box = visitor.page.locator(f"#item-{item.pk}").bounding_box()
    assert box is not None
    return box["y"]


@pytest.mark.parametrize("address", ["/", "/@author"])
def test_back_after_a_long_scroll_is_where_one_was(
    visitor: Visitor, posts: list[Item], author: Any, address: str
) -> None:
    page = visitor.page
    visitor.goto(address)
    articles = page.locator("#feed > article")
    for count in (40, 60):
        page.locator("#more").scroll_into_view_if_needed()
        expect(articles).to_have_count(count)
    chosen = posts[20]
    page.locator(f"#item-{chosen.pk}").scroll_into_view_if_needed()
    visitor.settle()
    visitor.holds(f"history.state?.place?.seen.length > 0 && history.state.place.count === {articles.count()}")
    place, count = place_of(visitor, chosen), articles.count()
    visitor.go(page.locator(f"#item-{chosen.pk} .time"))
    expect(page.locator("article.whole .text")).to_have_text(chosen.text)
    publish(sender=author, content={"text": "came meanwhile"})
    page.go_back()
    expect(page.locator(f"#item-{chosen.pk}")).to_be_in_viewport()
    visitor.holds(f"Math.abs(document.getElementById('item-{chosen.pk}').getBoundingClientRect().top - {place}) < 3")
    visitor.holds(f"document.querySelectorAll('#feed > article').length >= {count}")
    shown = visitor.shown()
    assert len(shown) == len(set(shown))
    page.reload()
    expect(page.locator(f"#item-{chosen.pk}")).to_be_in_viewport()
    visitor.holds(f"Math.abs(document.getElementById('item-{chosen.pk}').getBoundingClientRect().top - {place}) < 3")


@pytest.mark.parametrize("kind", ["people", "sessions"])
def test_back_to_a_long_list_is_where_one_was(visitor: Visitor, author: Any, kind: str) -> None:
    page, now = visitor.page, timezone.now()
    reader = User.objects.get(username="reader")
    for number in range(45):
        other = UserFactory.create(username=f"other{number}")
        if kind == "people":
            follow(follower=other, followee=author)
        else:
            follow(follower=reader, followee=other)
            live.create(host=other, title=f"Talk {number}", starts_at=now + timedelta(hours=1 + number), now=now)
    if kind == "people":
        address, entry, link = "/@author/followers", "#people > li", "a.name"
    else:
        address, entry, link = "/live", "#feed > article", ".title a"
    visitor.goto(address)
    entries = page.locator(entry)
    expect(entries).to_have_count(20)
    page.locator("#more").scroll_into_view_if_needed()
    expect(entries).to_have_count(40)
    visitor.settle()
    chosen = entries.nth(33)
    chosen.scroll_into_view_if_needed()
    name = chosen.get_attribute("id")
    visitor.holds("history.state?.place?.seen.length > 0 && history.state.place.count >= 40")
    visitor.settle()
    box = chosen.bounding_box()
    assert box
    visitor.go(chosen.locator(link))
    page.go_back()
    visitor.holds(f"Math.abs((document.getElementById('{name}')?.getBoundingClientRect().top ?? 1e6) - {box['y']}) < 3")
    expect(page.locator(f"#{name}")).to_be_in_viewport()
    visitor.holds(f"document.getElementById('{name}').contains(document.activeElement)")


def test_a_new_visit_begins_at_the_top(visitor: Visitor) -> None:
    visitor.goto("/")
    visitor.page.locator("#more").scroll_into_view_if_needed()
    expect(visitor.page.locator("#feed > article")).to_have_count(40)
    visitor.goto("/settings")
    visitor.goto("/")
    expect(visitor.page.locator("#feed > article")).to_have_count(20)
    visitor.is_at_top()


WATCH = """() => {
    const bar = document.getElementById("progress");
    new MutationObserver(() => bar.hidden || console.info("the bar is shown")).observe(bar, { attributes: true });
}"""
SHOWN = "document.getElementById('progress') && !document.getElementById('progress').hidden"


def test_a_bar_says_that_a_page_is_waited_for(visitor: Visitor, posts: list[Item]) -> None:
    visitor.goto("/")
    bar = visitor.page.locator("#progress")
    expect(bar).to_be_hidden()
    held = Held(visitor.page, f"/items/{posts[-1].pk}$")
    visitor.page.evaluate(WATCH)
    # Playwright's queries wait for the navigation, but console messages arrive.
    with visitor.page.expect_console_message(lambda said: said.text == "the bar is shown"):
        visitor.page.locator(f"#item-{posts[-1].pk} .time").click(no_wait_after=True)
    held.let_go()
    expect(visitor.page.locator("article.whole")).to_be_visible()
    expect(bar).to_be_hidden()


def test_a_bar_says_that_an_answer_is_waited_for(visitor: Visitor, posts: list[Item]) -> None:
    visitor.goto("/")
    bar = visitor.page.locator("#progress")
    held = Held(visitor.page, "reply_to")
    visitor.page.locator(f"#item-{posts[-1].pk} [data-act=reply]").click()
    visitor.holds(SHOWN)
    held.let_go()
    expect(visitor.page.locator(".slot textarea")).to_be_focused()
    expect(bar).to_be_hidden()
