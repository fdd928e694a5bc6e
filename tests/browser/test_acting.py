import re
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from items.actions import like, repost
from items.models import Item, Like
from relations.actions import follow
from tests.support.browsers import CHOICE, Visit, Visitor
from tests.support.factories import UserFactory, say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

FOCUSED = "document.activeElement.dataset.act ?? document.activeElement.className.split(' ').pop()"
WORDS = {
    "en-US": {
        "like": "Like",
        "repost": "Repost",
        "reply": "Reply",
        "one_reply": "1 reply",
        "three_replies": "3 replies",
        "your_reply": "Your reply",
        "you_reposted": "You reposted",
        "folded": "friend and 1 other reposted",
        "undo": "Undo repost",
        "published": "Published.",
    },
    "zh-CN": {
        "like": "赞",
        "repost": "转发",
        "reply": "回复",
        "one_reply": "1 条回复",
        "three_replies": "3 条回复",
        "your_reply": "写下你的回复",
        "you_reposted": "你转发了",
        "folded": "friend 和另外 1 人转发了",
        "undo": "撤销转发",
        "published": "已发布。",
    },
}


@pytest.fixture(params=WORDS)
def locale(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def words(locale: str) -> dict[str, str]:
    return WORDS[locale]


@pytest.fixture
def visitor(visit: Visit, reader: Any, javascript: bool, locale: str) -> Visitor:
    visitor = visit(java_script_enabled=javascript, locale=locale)
    visitor.enter(reader)
    return visitor


def button(card: Locator, name: str, count: str = "") -> Locator:
    return card.get_by_role("button", name=f"{name} {count}".strip(), exact=True)


def test_liking(visitor: Visitor, author: Any, reader: Any, words: dict[str, str], javascript: bool) -> None:
    item = say(author, "likeable")
    like(user=author, item=item)
    for number in range(3):
        say(author, f"above {number}")
    visitor.goto("/")
    card = visitor.page.locator(f"#item-{item.pk}")
    expect(button(card, words["like"], "1")).to_have_attribute("aria-pressed", "false")
    button(card, words["like"], "1").click()
    expect(button(card, words["like"], "2")).to_have_attribute("aria-pressed", "true")
    visitor.settle()
    assert Like.objects.filter(user=reader, item=item).exists()
    if javascript:
        expect(button(card, words["like"], "2")).to_be_focused()
        visitor.page.keyboard.press("Enter")
    else:
        visitor.page.wait_for_url(f"**/#item-{item.pk}")
        button(card, words["like"], "2").click()
    expect(button(card, words["like"], "1")).to_have_attribute("aria-pressed", "false")
    visitor.settle()
    assert not Like.objects.filter(user=reader).exists()


def test_a_double_click_likes_once(visit: Visit, reader: Any, author: Any) -> None:
    item = say(author, "likeable")
    visitor = visit()
    visitor.enter(reader)
    visitor.goto("/")
    asked: list[str] = []
    visitor.page.on("request", lambda request: asked.append(request.url) if request.method == "POST" else None)
    button(visitor.page.locator("article"), "Like").dblclick()
    expect(button(visitor.page.locator("article"), "Like", "1")).to_have_attribute("aria-pressed", "true")
    visitor.settle()
    assert asked == [f"{visitor.site}/items/{item.pk}/like"]
    assert Like.objects.filter(item=item).count() == 1


def test_every_card_of_an_item_says_the_same(visit: Visit, reader: Any, author: Any) -> None:
    item = say(author, "twice here")
    repost(sender=author, item=item)
    visitor = visit()
    visitor.enter(reader)
    visitor.goto("/@author")
    cards = visitor.page.locator("article")
    expect(cards).to_have_count(2)
    button(cards.first, "Like").click()
    for place in range(2):
        expect(button(cards.nth(place), "Like", "1")).to_have_attribute("aria-pressed", "true")
    expect(button(cards.first, "Like", "1")).to_be_focused()


def test_reposting_folds_in_a_followers_home(
    visitor: Visitor, visit: Visit, author: Any, reader: Any, words: dict[str, str], locale: str, javascript: bool
) -> None:
    item = say(author, "worth repeating")
    friend, follower = UserFactory.create(username="friend"), UserFactory.create(username="follower")
    for followee in (reader, friend):
        follow(follower=follower, followee=followee)
    visitor.goto("/@author")
    card = visitor.page.locator("article")
    button(card, words["repost"]).click()
    if javascript:
        card.locator(CHOICE).click()
    expect(button(card, words["repost"], "1")).to_have_attribute("aria-pressed", "true")
    visitor.settle()
    repost(sender=friend, item=item)

    watcher = visit(locale=locale)
    watcher.enter(follower)
    watcher.goto("/")
    expect(watcher.page.locator("article")).to_have_count(1)
    expect(watcher.page.locator(".via")).to_contain_text(words["folded"])
    watcher.shows(["worth repeating"])
    expect(watcher.page.locator("article .byline .name")).to_have_text("author")

    visitor.goto("/@reader")
    expect(visitor.page.locator(".via")).to_contain_text(words["you_reposted"])
    visitor.choose(words["undo"], words["you_reposted"])
    expect(visitor.page.locator(".via")).to_have_count(0)
    visitor.goto("/")
    expect(button(visitor.page.locator("article"), words["repost"], "1")).to_have_attribute("aria-pressed", "false")
    watcher.goto("/")
    expect(watcher.page.locator(".via > span")).to_contain_text("friend")
    expect(watcher.page.locator(".via")).not_to_contain_text(words["folded"])


def test_answering_an_answer(
    visitor: Visitor, author: Any, reader: Any, words: dict[str, str], javascript: bool
) -> None:
    root = say(author, "a question")
    first = say(reader, "an answer", reply_to=root)
    say(author, "another answer", reply_to=root)
    visitor.goto(f"/items/{root.pk}")
    card = visitor.page.locator(f"#item-{first.pk}")
    card.get_by_role("link", name=words["reply"], exact=True).click()
    if javascript:
        composer = card.locator(".slot form")
        expect(composer.get_by_role("textbox", name=words["your_reply"])).to_be_focused()
        visitor.page.keyboard.type("a doubt")
        composer.get_by_role("button", name=words["reply"]).click()
        expect(visitor.page.locator("#feed .under .text")).to_have_text("a doubt")
        expect(card.get_by_role("link", name=words["one_reply"], exact=True)).to_be_visible()
        whole = visitor.page.locator(f"#item-{root.pk}")
        expect(whole.get_by_role("link", name=words["three_replies"], exact=True)).to_be_visible()
        expect(visitor.page.locator("#toast")).to_have_text(words["published"])
        visitor.goto(f"/items/{root.pk}")
    else:
        expect(visitor.page.locator(".above")).to_contain_text("an answer")
        visitor.page.get_by_role("textbox", name=words["your_reply"]).fill("a doubt")
        visitor.page.get_by_role("main").get_by_role("button", name=words["reply"]).click()
        visitor.page.wait_for_url(re.compile(f"/items/{first.pk}#item-"))
        visitor.goto(f"/items/{root.pk}")
    visitor.shows(["an answer", "a doubt", "another answer"])  # the reader's own first, its answer below it
    expect(visitor.page.locator(".under .text")).to_have_text("a doubt")
    doubt = Item.objects.get(reply_to=first)
    visitor.goto(f"/items/{first.pk}")
    expect(visitor.page.locator(".above article")).to_have_count(1)
    expect(visitor.page.locator("article.whole .text")).to_have_text("an answer")
    visitor.shows(["a doubt"])
    visitor.goto(f"/items/{doubt.pk}")
    expect(visitor.page.locator(".above article .text")).to_have_text(["a question", "an answer"])


def test_a_reply_that_was_begun_is_kept_and_closed_by_keys(visit: Visit, reader: Any, author: Any) -> None:
    say(author, "a question")
    visitor = visit()
    visitor.enter(reader)
    visitor.goto("/")
    link = visitor.page.locator("[data-act=reply]")
    area = visitor.page.locator(".slot textarea")
    link.click()
    area.fill("half a thou")
    link.click()
    expect(area).to_be_focused()
    expect(area).to_have_value("half a thou")
    visitor.page.keyboard.press("Escape")
    expect(area).to_have_count(0)
    expect(link).to_be_focused()
    link.press("Enter")
    expect(area).to_have_value("half a thou")  # Escape keeps the text
    visitor.settle()
    area.fill("")
    visitor.page.keyboard.press("Escape")
    expect(area).to_have_count(0)
    expect(link).to_be_focused()
    link.press("Enter")
    visitor.page.get_by_role("button", name="Reply").click()
    expect(visitor.page.locator(".slot .errorlist")).to_have_count(0)  # the browser asks for text
    visitor.page.get_by_role("button", name="Cancel").click()
    expect(area).to_have_count(0)


def test_menus_are_worked_and_closed_by_keys(visit: Visit, reader: Any, author: Any) -> None:
    say(reader, "mine")
    visitor = visit()
    visitor.enter(reader)
    visitor.goto("/")
    summary, menu = visitor.page.locator("article summary"), visitor.page.locator("article .menu-items")
    visitor.page.locator("article").focus()
    order = []
    for _ in range(7):
        visitor.page.keyboard.press("Tab")
        order.append(visitor.page.evaluate(FOCUSED))
    assert order == ["name", "time", "reply", "repost", "like", "bookmark", "opens"]
    visitor.page.keyboard.press("Enter")
    expect(menu).to_be_visible()
    visitor.page.keyboard.press("Tab")
    expect(visitor.page.get_by_role("link", name="Edit")).to_be_focused()
    visitor.page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(summary).to_be_focused()
    summary.click()
    visitor.page.locator("h1").click()
    expect(menu).to_be_hidden()


def test_strangers_are_led_to_the_login_and_back(visit: Visit, author: Any, reader: Any, javascript: bool) -> None:
    item = say(author, "for all")
    visitor = visit(java_script_enabled=javascript)
    visitor.goto("/@author")
    visitor.page.get_by_role("link", name="Like", exact=True).click()
    visitor.page.get_by_label("Username").fill("reader")
    visitor.page.get_by_label("Password").fill("correct horse battery staple")
    visitor.page.get_by_role("main").get_by_role("button", name="Log in", exact=True).click()
    visitor.page.wait_for_url(f"**/items/{item.pk}")
    button(visitor.page.locator("article"), "Like").click()
    expect(button(visitor.page.locator("article"), "Like", "1")).to_have_attribute("aria-pressed", "true")
