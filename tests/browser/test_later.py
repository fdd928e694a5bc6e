# ruff: noqa: RUF001 - full-width signs are meant
import contextlib
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from items.models import Item, ScheduledPost
from tests.support.browsers import Visit, Visitor
from tests.support.factories import UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def visitor(visit: Visit, screen: dict[str, Any]) -> Visitor:
    visitor = visit(**screen)
    visitor.enter(UserFactory.create(username="reader"))
    return visitor


def test_a_post_is_scheduled_in_place_and_edited(visitor: Visitor) -> None:
    visitor.goto("/")
    page = visitor.page
    page.get_by_label("What's new?").click()
    page.keyboard.type("see you tomorrow")
    page.locator(".composer .schedule summary").click()
    send = page.locator(".composer button.send")
    expect(send).to_have_text("Publish")
    page.get_by_label("Publish at").fill((timezone.now() + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M"))
    expect(send).to_have_text("Schedule")
    send.click()
    expect(page.locator("#toast")).to_contain_text("Scheduled for")
    expect(page.get_by_label("What's new?")).to_have_value("")
    assert ScheduledPost.objects.get().post["content"] == {"text": "see you tomorrow"}
    assert not Item.objects.exists()
    visitor.goto("/scheduled")
    page.get_by_role("link", name="Edit the post for").click()
    box = page.get_by_label("What's new?")
    expect(box).to_have_value("see you tomorrow")
    box.fill("see you on Friday")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("see you on Friday")).to_be_visible()


def test_emoji_complete_by_name_and_come_from_the_picker(visitor: Visitor) -> None:
    visitor.goto("/items/new")
    page = visitor.page
    box, options = page.get_by_label("What's new?"), page.locator(".completions li")
    box.press_sequentially("off :rocke")
    expect(options.first).to_contain_text("rocket")
    page.keyboard.press("Enter")
    expect(box).to_have_value("off 🚀 ")
    box.press_sequentially("at 12:30")
    expect(options).to_have_count(0)
    page.locator(".composer .emoji summary").click()
    found = page.locator(".emoji-found button")
    expect(found.first).to_be_visible()
    page.get_by_label("Search emoji").fill("zebra")
    expect(found).to_have_count(1)
    found.first.click()
    expect(box).to_have_value("off 🚀 at 12:30🦓")
    expect(found.first).to_be_focused()


def test_undo_takes_back_what_was_inserted(visitor: Visitor) -> None:
    UserFactory.create(username="mira")
    visitor.goto("/items/new")
    page = visitor.page
    box, options = page.get_by_label("What's new?"), page.locator(".completions li")
    box.press_sequentially("to @mir")
    options.first.click()
    expect(box).to_have_value("to @mira ")
    page.keyboard.press("Control+z")
    expect(box).to_have_value("to @mir")
    page.keyboard.press("Control+Shift+z")
    expect(box).to_have_value("to @mira ")
    page.locator(".composer .emoji summary").click()
    page.locator(".emoji-found button").first.click()
    expect(box).to_have_value("to @mira 😀")
    box.focus()
    page.keyboard.press("Control+z")
    expect(box).to_have_value("to @mira ")
    box.fill("a b")
    box.evaluate("(box) => box.setSelectionRange(0, 1)")
    page.locator(".emoji-found button").first.click()
    expect(box).to_have_value("😀 b")
    box.focus()
    page.keyboard.press("Control+z")
    expect(box).to_have_value("a b")


@pytest.mark.parametrize("how", ["isComposing: true", "keyCode: 229"])
def test_keys_of_an_input_method_do_nothing_of_ours(visitor: Visitor, how: str) -> None:
    visitor.goto("/")
    page = visitor.page
    box, options = page.get_by_label("What's new?"), page.locator(".completions li")
    press = f"""(element, [key, ctrlKey]) => {{
        const options = {{ key, ctrlKey, {how}, bubbles: true, cancelable: true }};
        return !element.dispatchEvent(new KeyboardEvent("keydown", options));
    }}"""
    box.press_sequentially("fine：smi")
    expect(options).to_have_count(0)  # words before a wide colon
    box.press_sequentially(" ：smile")
    expect(options.first).to_be_visible()
    for key in ("Enter", "Tab", "ArrowDown", "Escape"):
        assert not box.evaluate(press, [key, False])
    assert not box.evaluate(press, ["Enter", True])
    expect(options.first).to_have_attribute("aria-selected", "true")
    expect(box).to_have_value("fine：smi ：smile")
    page.keyboard.press("Enter")
    expect(box).to_have_value("fine：smi 😄 ")
    page.locator("body").evaluate(press, ["?", False])
    page.locator("body").evaluate(press, ["n", False])
    expect(page.locator("dialog[open]")).to_have_count(0)
    assert not Item.objects.exists()
    box.press("Control+Enter")
    expect(page.locator("#feed article")).to_have_count(1)


def test_what_completes_as_emoji(visitor: Visitor) -> None:
    visitor.goto("/items/new")
    page = visitor.page
    box, options = page.get_by_label("What's new?"), page.locator(".completions li")
    for text, emoji in (("好:赞", "👍"), (":+1", "👍"), (":tada", "🎉"), ("at :100", "💯"), ("：heart", "❤️")):
        box.fill("")
        box.press_sequentially(text)
        expect(options.first).to_contain_text(emoji)
    for text in ("at :30", "12:30", "晚上：30", "他说：好", "注意：ok", "3:pm", "明天:8点", "https://a.example:80"):
        with page.expect_request("**/complete?**") if text in ("at :30", "明天:8点") else contextlib.nullcontext():
            box.fill("")
            box.press_sequentially(text)
        page.wait_for_timeout(300)
        expect(options).to_have_count(0)
