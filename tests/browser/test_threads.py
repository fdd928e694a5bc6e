from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from accounts.models import User
from items.models import Item
from tests.support.browsers import Visit, Visitor
from tests.support.pictures import jpeg

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
COMPOSER = 'form[data-draft="post"]'


@pytest.fixture
def visitor(visit: Visit, screen: dict[str, Any], reader: User, media_folder: Path) -> Visitor:
    visitor = visit(**screen)
    visitor.find_media(media_folder)
    visitor.enter(reader)
    visitor.goto("/")
    return visitor


def parts(visitor: Visitor) -> Locator:
    return visitor.page.locator("form.part")


def write(visitor: Visitor, *texts: str) -> None:
    first, *rest = texts
    visitor.page.locator(f'{COMPOSER} [name="text"]').fill(first)
    for at, text in enumerate(rest):
        plus = parts(visitor).last if at else visitor.page.locator(COMPOSER)
        plus.get_by_role("button", name="Add another post").click()
        expect(parts(visitor)).to_have_count(at + 1)
        parts(visitor).nth(at).locator('[name="text"]').fill(text)


def texts_of(visitor: Visitor) -> list[str]:
    return [one.input_value() for one in visitor.page.locator('form.composer [name="text"]').all()]


def test_a_thread_is_kept_and_published(visitor: Visitor) -> None:
    write(visitor, "one", "two", "three")
    second = parts(visitor).nth(0)
    second.locator("[data-pick]").set_input_files([{"name": "a.jpg", "mimeType": "image/jpeg", "buffer": jpeg(60, 40)}])
    expect(second.locator('.medium[data-state="kept"]')).to_have_count(1)
    third = parts(visitor).nth(1)
    third.locator(".polled > summary").click()
    third.get_by_placeholder("Option 1").fill("yes")
    third.get_by_placeholder("Option 2").fill("no")
    visitor.page.reload()
    expect(parts(visitor)).to_have_count(2)
    expect(parts(visitor).nth(1).get_by_placeholder("Option 2")).to_have_value("no")
    expect(parts(visitor).nth(0).locator('.medium[data-state="kept"]')).to_have_count(1)
    assert texts_of(visitor) == ["one", "two", "three"]
    visitor.page.get_by_role("button", name="Publish all").click()
    expect(visitor.page.locator("#feed article").first).to_contain_text("Show thread")
    expect(parts(visitor)).to_have_count(0)
    first, image, poll = Item.objects.order_by("pk")
    assert [one.type for one in (first, image, poll)] == ["text", "image", "poll"]
    assert (image.reply_to_id, poll.reply_to_id) == (first.pk, image.pk)
    visitor.page.reload()
    expect(parts(visitor)).to_have_count(0)
    visitor.page.get_by_role("link", name="Show thread").click()
    expect(visitor.page.locator(".chain article")).to_have_count(2)


def test_posts_are_removed_and_refused_in_their_places(visitor: Visitor, tolerated: Any) -> None:
    tolerated("422")
    write(visitor, "one", "two", "three", "x" * 5_001)
    parts(visitor).nth(0).get_by_role("button", name="Remove this post").click()
    assert texts_of(visitor)[:2] == ["one", "three"]
    visitor.page.get_by_role("button", name="Publish all").click()
    expect(parts(visitor).nth(1).locator(".errorlist")).to_contain_text("5000")
    assert texts_of(visitor)[:2] == ["one", "three"]
    parts(visitor).nth(1).locator('[name="text"]').fill("four")
    parts(visitor).last.get_by_role("button", name="Publish all").click()
    expect(parts(visitor)).to_have_count(0)
    assert [item.text for item in Item.objects.order_by("pk")] == ["one", "three", "four"]


def test_the_list_of_drafts_keeps_a_thread(visitor: Visitor) -> None:
    write(visitor, "one", "two")
    drafts = visitor.page.locator(f"{COMPOSER} .drafts")
    drafts.locator("summary").click()
    drafts.get_by_role("button", name="Save draft").click()
    expect(parts(visitor)).to_have_count(0)
    expect(drafts.locator("li")).to_have_count(1)
    drafts.locator('[data-draft-act="open"]').first.click()
    expect(parts(visitor)).to_have_count(1)
    expect(parts(visitor).first.locator('[name="text"]')).to_have_value("two")
    assert texts_of(visitor) == ["one", "two"]


def test_a_thread_has_no_time(visitor: Visitor) -> None:
    visitor.page.locator(f'{COMPOSER} [name="text"]').fill("one")
    visitor.page.locator(f"{COMPOSER} .schedule > summary").click()
    visitor.page.locator(f'{COMPOSER} [name="publish_at"]').fill("2030-01-01T10:00")
    visitor.page.locator(COMPOSER).get_by_role("button", name="Add another post").click()
    expect(visitor.page.locator("#toast")).to_contain_text("can't be scheduled")
    expect(parts(visitor)).to_have_count(0)
