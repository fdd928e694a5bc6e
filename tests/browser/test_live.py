"""Live updates in two real browsers from a real stream process."""

import re
from typing import Any

import pytest
from playwright.sync_api import Response, expect

from items.actions import change_repliable, delete, edit
from items.models import Item
from items.threads.hiding import hide_reply, show_reply
from relations.actions import follow
from runtime.embedded import wait_for
from storage import events
from tests.support.browsers import OPENER, Visit, Visitor, is_live
from tests.support.factories import UserFactory, say
from tests.support.streams import StreamServer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def author() -> Any:
    return UserFactory.create(username="author", display_name="An Author")


def open_home(visit: Visit, user: Any, **options: Any) -> Visitor:
    visitor = visit(**options)
    visitor.log_in(user)
    is_live(visitor.page)
    return visitor


def is_stream(answer: Response) -> bool:
    """The open stream, not the redirect to it."""
    return "/stream" in answer.url and answer.status == 200


def pill(visitor: Visitor, count: int) -> None:
    name = "1 new post" if count == 1 else f"{count} new posts"
    expect(visitor.page.get_by_role("link", name=name, exact=True)).to_be_visible()


def test_posts_edits_and_deletions_reach_another_browser(
    visit: Visit, streams: StreamServer, author: Any, reader: Any, tolerated: Any
) -> None:
    tolerated("404 (Not Found)")  # the edited post may be deleted when the page asks for it
    for number in range(30):
        say(author, f"old {number}")
    listening, writing = open_home(visit, reader), open_home(visit, author)
    article = listening.page.get_by_text("old 15", exact=True)
    article.scroll_into_view_if_needed()
    place = article.bounding_box()

    writing.publish("fresh words")
    pill(listening, 1)
    writing.publish("more words")
    pill(listening, 2)
    assert article.bounding_box() == place

    item = Item.objects.get(content__text="old 14")
    writing.choose("Edit", "old 14")
    writing.page.locator(f"#item-{item.pk} textarea").fill("changed words")
    writing.page.get_by_role("button", name="Save").click()
    expect(listening.page.get_by_text("changed words")).to_be_visible()
    expect(listening.page.get_by_text("old 14", exact=True)).to_have_count(0)

    writing.choose("Delete", "changed words")
    writing.confirm("Delete this post?")
    expect(listening.page.locator(f"#item-{item.pk}")).to_have_count(0)
    expect(listening.page.get_by_text("old 13", exact=True)).to_be_visible()

    gone = Item.objects.get(content__text="more words")
    delete(item=gone)
    pill(listening, 1)
    listening.page.get_by_role("link", name="1 new post").click()
    expect(listening.page.get_by_text("fresh words")).to_be_visible()
    expect(listening.page.locator(".pill")).to_have_count(0)


def test_notifications_reach_the_page(visit: Visit, streams: StreamServer, author: Any) -> None:
    visitor = open_home(visit, author)
    visitor.page.evaluate(
        """() => {
            window.told = [];
            document.body.addEventListener("notification", (event) => window.told.push(event.detail));
        }"""
    )
    events.announce(events.Notified(author.pk, {"unread": 3, "text": "中文"}))
    visitor.holds("window.told.length > 0")
    assert visitor.page.evaluate("window.told") == [{"unread": 3, "text": "中文"}]


def test_without_the_stream_pages_poll_and_come_back(
    visit: Visit, streams: StreamServer, author: Any, reader: Any, settings: Any, tolerated: Any
) -> None:
    tolerated("net::ERR_")
    settings.HOME_POLL_SECONDS = 0.5
    visitor = open_home(visit, reader)
    asked: list[str] = []
    visitor.page.on("request", lambda request: asked.append(request.url) if "/new" in request.url else None)

    def asks() -> bool:
        asked.clear()
        visitor.page.wait_for_timeout(1_200)  # more than two polls long
        return bool(asked)

    say(author, "heard")
    pill(visitor, 1)
    streams.kill()
    say(author, "polled")
    pill(visitor, 2)
    assert wait_for(asks, 30)
    with visitor.page.expect_response(is_stream, timeout=90_000):  # pauses between retries grow
        streams.start()
    assert wait_for(lambda: not asks(), 30)
    say(author, "heard again")
    pill(visitor, 3)


def test_news_without_end_put_a_page_off_no_further(
    visit: Visit, streams: StreamServer, author: Any, reader: Any
) -> None:
    visitor = watching(visit, reader, 0.9)
    visitor.page.wait_for_timeout(BEGINNING)
    visitor.page.evaluate("told.length = asked.length = 0")
    for number in range(80):
        say(author, f"words {number}")
        visitor.page.wait_for_timeout(50)
    first, last, asked = visitor.page.evaluate("[told[0][1], told.at(-1)[1], asked[0]?.[1] ?? 0]")
    assert last - first > NEVER_LATER * 1000, "they came for long enough"
    assert 0 < asked < last


WATCH = """
    Math.random = () => %s;
    window.told = [];
    window.asked = [];
    const listen = EventSource.prototype.addEventListener;
    EventSource.prototype.addEventListener = function (kind, ...more) {
      listen.call(this, kind, () => told.push([kind, Date.now()]));
      return listen.call(this, kind, ...more);
    };
    const open = XMLHttpRequest.prototype.open;
    XMLHttpRequest.prototype.open = function (method, place, ...more) {
      asked.push([String(place), Date.now()]);
      return open.call(this, method, place, ...more);
    };
    const take = window.fetch;
    window.fetch = (place, ...more) => {
      asked.push([String(place), Date.now()]);
      return take.call(window, place, ...more);
    };
"""
"""Records news and requests. Random delays are fixed."""
NEVER_LATER = 0.2 + 1 + 2
"""Most seconds from the first news to the request, however much news follows (live.js)."""
BEGINNING = 6_000
"""All requests of a starting page are over by now, in milliseconds. The last comes after 5.2 s and would be mistaken
for a tested one.
"""


def watching(visit: Visit, user: Any, chance: float) -> Visitor:
    visitor = visit()
    visitor.page.add_init_script(WATCH % chance)
    visitor.log_in(user)
    is_live(visitor.page)
    return visitor


def waits(visitor: Visitor, kind: str, place: str) -> float:
    asked_later = f"asked.find(([place, at]) => place.includes('{place}') && at >= told.at(-1)[1])"
    visitor.holds(f"told.at(-1)?.[0] === '{kind}' && {asked_later}")
    return float(visitor.page.evaluate(f"{asked_later}[1] - told.at(-1)[1]")) / 1000


@pytest.mark.long
def test_pages_do_not_all_ask_at_the_same_moment(visit: Visit, streams: StreamServer, author: Any, reader: Any) -> None:
    """Each page waits a random, bounded time."""
    item = say(author, "words")
    for chance in (0.0, 0.9):
        visitor = watching(visit, reader, chance)
        visitor.page.wait_for_timeout(BEGINNING)
        edit(item=item, content={"text": f"other words {chance}"})
        assert chance <= waits(visitor, "edit", f"/items/{item.pk}")
        expect(visitor.page.get_by_text(f"other words {chance}")).to_be_visible()
        events.announce(events.Gap())
        assert 5 * chance <= waits(visitor, "reset", "new")
        with visitor.page.expect_response(is_stream):
            visitor.goto(f"/items/{item.pk}")
        visitor.page.wait_for_timeout(BEGINNING)
        reply = say(reader, f"an answer {chance}", reply_to=item)
        assert chance <= waits(visitor, "item", f"/items/{reply.pk}")
        expect(visitor.page.get_by_text(f"an answer {chance}")).to_be_visible()
        visitor.page.close()


def test_the_focus_moves_on_when_its_item_goes(visit: Visit, streams: StreamServer, author: Any, reader: Any) -> None:
    items = [say(author, f"words {number}") for number in range(3)]
    visitor = open_home(visit, reader)
    visitor.page.locator(f"#item-{items[1].pk}").focus()
    edit(item=items[1], content={"text": "other words"})
    expect(visitor.page.get_by_text("other words")).to_be_visible()
    expect(visitor.page.locator(f"#item-{items[1].pk}")).to_be_focused()
    delete(item=items[1])
    expect(visitor.page.locator(f"#item-{items[0].pk}")).to_be_focused()
    expect(visitor.page.locator("[role=feed] article")).to_have_count(2)


def test_fields_being_edited_are_left_alone(visit: Visit, streams: StreamServer, author: Any, reader: Any) -> None:
    follow(follower=author, followee=reader)
    item = say(author, "words")
    visitor = open_home(visit, author)
    visitor.choose("Edit")
    area = visitor.page.locator(f"#item-{item.pk} textarea")
    area.fill("half a sentence")
    edit(item=item, content={"text": "from another device"})
    say(reader, "later")
    pill(visitor, 1)
    expect(area).to_have_value("half a sentence")


def test_the_page_of_an_item_hears_of_it_and_of_its_replies(
    visit: Visit, streams: StreamServer, author: Any, reader: Any
) -> None:
    stranger = UserFactory.create(username="stranger")
    item = say(author, "a question")
    visitor = visit()
    visitor.enter(stranger)  # the only page with a stream
    with visitor.page.expect_response(is_stream):
        visitor.goto(f"/items/{item.pk}")
    expect(visitor.page.get_by_text("No replies yet.")).to_be_visible()
    reply = say(reader, "an answer", reply_to=item)
    expect(visitor.page.locator(f"#feed #item-{reply.pk}")).to_be_visible()
    expect(visitor.page.get_by_text("No replies yet.")).to_have_count(0)
    edit(item=item, content={"text": "a better question"})
    expect(visitor.page.locator("article.whole").get_by_text("a better question")).to_be_visible()
    edit(item=reply, content={"text": "a better answer"})
    expect(visitor.page.get_by_text("a better answer")).to_be_visible()
    hide_reply(user=author, root_id=item.pk, reply_id=reply.pk)
    expect(visitor.page.locator(f"#item-{reply.pk}")).to_have_count(0)
    show_reply(user=author, root_id=item.pk, reply_id=reply.pk)
    expect(visitor.page.locator(f"#feed #item-{reply.pk}")).to_be_visible()
    change_repliable(item=item, repliable_by="nobody")
    expect(visitor.page.locator("article.whole .acts .closed")).to_be_visible()
    delete(item=reply)
    expect(visitor.page.locator(f"#item-{reply.pk}")).to_have_count(0)
    delete(item=item)
    expect(visitor.page.get_by_role("status").get_by_text("This is no longer available.")).to_be_visible()
    expect(visitor.page.locator("article.whole")).to_have_count(0)


def test_recommended_posts_are_edited_and_deleted_in_place(
    visit: Visit, streams: StreamServer, author: Any, reader: Any
) -> None:
    items = [say(author, f"words {number}") for number in range(2)]
    visitor = visit()
    visitor.enter(reader)
    with visitor.page.expect_response(is_stream):
        visitor.goto("/discover")
    card = visitor.page.locator(f"#item-{items[0].pk}")
    why = card.locator(".why").inner_text()
    card.locator(OPENER).click()
    expect(card.get_by_role("link", name="Report")).to_be_visible()
    edit(item=items[0], content={"text": "other words"})
    expect(card.get_by_text("other words")).to_be_visible()
    expect(card.locator(".why")).to_have_text(why)
    expect(card.get_by_role("link", name="Report")).to_be_visible()
    say(author, "for the other tab")
    delete(item=items[1])
    expect(visitor.page.locator(f"#item-{items[1].pk}")).to_have_count(0)
    expect(visitor.page.locator(".pill")).to_have_count(0)


def test_tabs_share_one_stream(visit: Visit, streams: StreamServer, author: Any, reader: Any) -> None:
    opened: list[str] = []
    visitor = visit()
    visitor.page.context.on(
        "request", lambda request: opened.append(request.url) if "/api/v1/stream" in request.url else None
    )
    asks = re.compile("/new")  # a page asks once it is connected
    with visitor.page.expect_response(asks):
        visitor.log_in(reader)
    second = Visitor(visitor.page.context.new_page(), visitor.site)
    with second.page.expect_response(asks):
        second.goto("/")
    say(author, "for both")
    for one in (visitor, second):
        pill(one, 1)
    assert len([url for url in opened if "/api/v1/stream" in url and "ticket" not in url]) == 1
    visitor.page.close()  # the other page takes over the stream
    say(author, "for the other")
    pill(second, 2)
