import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, expect

from accounts.models import User
from items.actions import publish
from items.models import Item, ScheduledPost
from media.models import MediaFile, Use
from tests.support.browsers import UNREACHABLE, Held, Visit, Visitor
from tests.support.picture_posts import posted, sent
from tests.support.pictures import jpeg
from tests.support.sites import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

KEPT = '.medium[data-state="kept"]'
COMPOSER = 'form[data-draft="post"]'
FREE = re.compile(r"/items/new/media\?ids=[0-9,]+$")
"""A composer asks here which pictures of its draft can still be published."""


def file(width: int) -> Any:
    return {"name": "a.jpg", "mimeType": "image/jpeg", "buffer": jpeg(width, 60)}


@pytest.fixture
def visitor(visit: Visit, screen: dict[str, Any], reader: User, media_folder: Path) -> Visitor:
    visitor = visit(**screen)
    visitor.find_media(media_folder)
    visitor.enter(reader)
    return visitor


@pytest.fixture
def begun(visitor: Visitor) -> Visitor:
    """Home with a draft of two pictures. The second is described, cropped and moved first."""
    visitor.goto("/")
    pick(visitor, 80, 90)
    entries(visitor).nth(1).get_by_label("Description").fill("A blue corner")
    entries(visitor).nth(1).locator(".medium-focus").press("ArrowRight")
    entries(visitor).nth(1).get_by_role("button", name="Move earlier").click()
    return visitor


def pick(visitor: Visitor, *widths: int) -> None:
    visitor.page.locator(f"{COMPOSER} [data-pick]").set_input_files([file(width) for width in widths])
    expect(visitor.page.locator(f"{COMPOSER} {KEPT}")).to_have_count(len(widths))


def entries(visitor: Visitor, form: str = COMPOSER) -> Locator:
    return visitor.page.locator(f"{form} .medium")


def shows_both(visitor: Visitor) -> None:
    expect(visitor.page.locator(f"{COMPOSER} {KEPT}")).to_have_count(2)
    first, second = entries(visitor).all()
    expect(first.get_by_label("Description")).to_have_value("A blue corner")
    expect(first.locator('[name="focus"]')).to_have_value("0.1,0")
    expect(second.get_by_label("Description")).to_have_value("")
    for entry in (first, second):
        expect(entry.locator("img")).not_to_have_js_property("naturalWidth", 0)
    expect(first.get_by_role("button", name="Move earlier")).to_be_disabled()


def test_pictures_come_back_with_the_page_and_are_published(begun: Visitor) -> None:
    begun.page.locator(f"{COMPOSER} .warns > summary").click()
    begun.page.get_by_label("Sensitive").check()
    for address in (None, "/items/new", "/"):
        begun.page.reload() if address is None else begun.goto(address)
        shows_both(begun)
        expect(begun.page.get_by_label("Sensitive")).to_be_checked()
    expect(begun.page.get_by_label("What's new?")).to_have_js_property("required", False)
    begun.page.get_by_role("button", name="Publish").click()
    expect(begun.page.locator("#feed article .veil")).to_be_visible()
    item = Item.objects.get()
    assert [(one["width"], one.get("x", 0)) for one in item.media] == [(90, 0.1), (80, 0)]
    expect(entries(begun)).to_have_count(0)
    begun.page.reload()
    expect(begun.page.get_by_label("What's new?")).to_be_visible()
    expect(entries(begun)).to_have_count(0)


def test_pictures_wait_for_their_owner(begun: Visitor, reader: User, author: User, tolerated: Any) -> None:
    tolerated("401")  # a poll without a session
    begun.page.context.clear_cookies()
    begun.enter(author)
    begun.goto("/")
    expect(begun.page.get_by_label("What's new?")).to_be_visible()
    expect(entries(begun)).to_have_count(0)
    begun.page.context.clear_cookies()
    begun.log_in(reader)
    shows_both(begun)


def test_a_picture_that_is_gone_is_left_out(begun: Visitor) -> None:
    MediaFile.objects.get(width=90).delete()
    begun.page.reload()
    expect(begun.page.locator("#toast")).to_contain_text("in your draft is gone")
    expect(entries(begun)).to_have_count(1)
    begun.page.reload()
    expect(entries(begun)).to_have_count(1)
    begun.page.get_by_role("button", name="Publish").click()
    expect(begun.page.locator("#feed article .pictures img")).to_have_count(1)


def test_a_discarded_draft_has_its_pictures_again(begun: Visitor) -> None:
    begun.goto("/items/new")
    shows_both(begun)
    begun.go(begun.page.get_by_role("link", name="Cancel"))
    expect(entries(begun)).to_have_count(0)
    begun.page.locator("#toast").get_by_role("button", name="Undo").click()
    shows_both(begun)
    begun.page.reload()
    shows_both(begun)


def test_removed_pictures_stay_removed(begun: Visitor) -> None:
    entries(begun).first.get_by_role("button", name="Remove").click()
    entries(begun).first.get_by_role("button", name="Remove").click()
    begun.page.reload()
    expect(begun.page.get_by_label("What's new?")).to_be_visible()
    expect(entries(begun)).to_have_count(0)
    begun.holds("!Object.keys(localStorage).some((key) => key.startsWith('draft '))")


def test_another_tab_shows_the_pictures_and_loses_them_when_they_are_published(
    begun: Visitor, media_folder: Path
) -> None:
    other = Visitor(begun.page.context.new_page(), begun.site)
    other.find_media(media_folder)
    with other.page.expect_response(FREE):  # this tab knows that both exist
        other.goto("/")
    expect(entries(other)).to_have_count(2)
    other.page.evaluate("addEventListener('storage', (event) => (window.heard ??= []).push(event.newValue))")
    begun.page.bring_to_front()
    entries(begun).nth(1).get_by_label("Description").fill("Second")
    expect(entries(other).nth(1).get_by_label("Description")).to_have_value("Second")
    assert all(other.page.evaluate("heard")), "a change is told as an end"
    begun.page.get_by_role("button", name="Publish").click()
    expect(begun.page.locator("#feed article .pictures img")).to_have_count(2)
    expect(entries(other)).to_have_count(0)


def test_an_answer_that_comes_after_the_form_was_sent_changes_nothing(begun: Visitor) -> None:
    """The check starts before publishing and answers after it, when the pictures are used."""
    checks, sending = Held(begun.page, FREE.pattern), Held(begun.page, "/items/new$")
    begun.page.reload()
    shows_both(begun)
    begun.page.evaluate(
        "new MutationObserver(() => (window.toasts ??= []).push(toast.textContent)).observe(toast, { childList: true })"
    )
    begun.page.get_by_label("What's new?").fill("words")
    until(lambda: bool(begun.page.title()) and len(checks.asked) == 1, 20)
    begun.page.get_by_role("button", name="Publish").click()
    expect(begun.page.get_by_label("What's new?")).not_to_be_editable()
    MediaFile.objects.update(use=Use.AVATAR)  # as publishing does
    with begun.page.expect_response(FREE):
        checks.let_go()
    expect(entries(begun)).to_have_count(2)
    MediaFile.objects.update(use=Use.NONE)
    sending.let_go()
    expect(begun.page.locator("#feed article .pictures img")).to_have_count(2)
    begun.holds("window.toasts?.length")
    assert begun.page.evaluate("toasts") == ["Published."]
    begun.holds("!Object.keys(localStorage).some((key) => key.startsWith('draft '))")


def test_an_answer_brings_no_draft_back_that_another_tab_published(begun: Visitor, media_folder: Path) -> None:
    other = Visitor(begun.page.context.new_page(), begun.site)
    other.find_media(media_folder)
    other.page.add_init_script("addEventListener('storage', (event) => event.stopImmediatePropagation())")  # it is late
    checks = Held(other.page, FREE.pattern)
    other.goto("/")
    shows_both(other)
    until(lambda: bool(other.page.title()) and len(checks.asked) == 1, 20)
    begun.page.get_by_role("button", name="Publish").click()
    expect(begun.page.locator("#feed article .pictures img")).to_have_count(2)
    checks.let_go()
    other.page.evaluate(f"fetch('{other.site}/items/new/media?ids=1').then((answer) => answer.text())")  # later
    expect(entries(other)).to_have_count(2)
    begun.holds("!Object.keys(localStorage).some((key) => key.startsWith('draft '))")


def test_pictures_that_come_after_a_slow_script(begun: Visitor) -> None:
    """While the script is delayed, writing loses no picture and publishing waits."""
    held = Held(begun.page, r"/attaching\.")
    begun.page.reload()
    begun.page.get_by_label("What's new?").fill("words")
    begun.page.get_by_role("button", name="Publish").click()
    assert not Item.objects.exists()
    held.let_go()
    expect(begun.page.locator("#feed article .pictures img")).to_have_count(2)
    assert Item.objects.get().text == "words"


def test_an_edit_that_was_begun_keeps_its_pictures(visitor: Visitor, reader: User) -> None:
    ids = [sent(reader, jpeg(80 + number, 60)) for number in range(2)]
    item = posted(reader, *ids, text="look")
    visitor.goto(f"/items/{item.pk}/edit")
    visitor.page.get_by_role("button", name="Move earlier").last.click()
    visitor.page.get_by_label("Description").first.fill("Two first")
    visitor.page.reload()
    expect(visitor.page.get_by_label("Description").first).to_have_value("Two first")
    visitor.go(visitor.page.get_by_role("button", name="Save"))
    item.refresh_from_db()
    assert [one["id"] for one in item.media] == [ids[1], ids[0]]
    visitor.goto(f"/items/{item.pk}/edit")
    expect(visitor.page.get_by_label("Description").first).to_have_value("Two first")
    visitor.holds("!Object.keys(localStorage).some((key) => key.startsWith('draft '))")


def choose(visitor: Visitor, tool: str) -> None:
    visitor.page.locator(f"{COMPOSER} .{tool} > summary").click()


def write_everything(visitor: Visitor) -> str:
    """A poll with all that a post can have. Returns when it is to be published."""
    page = visitor.page
    page.get_by_label("What's new?").fill("Which one?")
    choose(visitor, "polled")
    page.get_by_label("Option 1").fill("tea")
    page.get_by_label("Option 2").fill("coffee")
    page.get_by_label("Poll length").select_option("3 days")
    page.get_by_label("Several answers").check()
    choose(visitor, "warns")
    page.get_by_label("Content warning").fill("hot drinks")
    choose(visitor, "schedule")
    at = (timezone.now() + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M")
    page.get_by_label("Publish at").fill(at)
    choose(visitor, "audience")
    page.get_by_label("Who can quote it").select_option("nobody")
    page.locator(f'{COMPOSER} [name="visibility"][value="mutuals"]').check()
    return at


def has_everything(visitor: Visitor, at: str) -> None:
    page, poll = visitor.page, visitor.page.locator(f"{COMPOSER} .polled")
    expect(poll.get_by_label("Option 2")).to_have_value("coffee")
    expect(poll.get_by_label("Option 1")).to_have_value("tea")
    expect(poll.get_by_label("Poll length")).to_have_value("259200")
    expect(poll.get_by_label("Several answers")).to_be_checked()
    expect(page.get_by_label("What's new?")).to_have_value("Which one?")
    expect(page.get_by_label("Content warning")).to_have_value("hot drinks")
    expect(page.get_by_label("Publish at")).to_have_value(at)
    expect(page.locator(f"{COMPOSER} .send")).to_have_text("Schedule")
    expect(page.locator(f'{COMPOSER} [name="quotable_by"]')).to_have_value("nobody")
    expect(page.locator(f'{COMPOSER} [value="mutuals"]')).to_be_checked()


def test_a_draft_keeps_everything(visitor: Visitor) -> None:
    visitor.goto("/")
    at = write_everything(visitor)
    for address in ("/", "/items/new", "/"):
        visitor.goto(address)
        has_everything(visitor, at)
    visitor.page.locator(f"{COMPOSER} .send").click()
    expect(visitor.page.locator("#toast")).to_contain_text("Scheduled for")
    post = ScheduledPost.objects.get().post
    assert post["content"]["poll"]["options"] == ["tea", "coffee"]
    assert (post["visibility"], post["quotable_by"], post["content"]["warning"]) == ("mutuals", "nobody", "hot drinks")
    visitor.goto("/")
    expect(visitor.page.get_by_label("What's new?")).to_have_value("")
    expect(visitor.page.locator(f"{COMPOSER} .polled")).not_to_have_attribute("open", "")


def test_a_draft_keeps_its_language(visitor: Visitor, reader: User) -> None:
    """The default may change before it is published. The next post has the new one."""
    for language in ("de", "fr"):
        User.objects.filter(pk=reader.pk).update(post_language=language)
        visitor.goto("/items/new")
        visitor.page.get_by_label("What's new?").press_sequentially(f"from {language}")
        choose(visitor, "drafts")
        visitor.page.get_by_role("button", name="Save draft").click()
    User.objects.filter(pk=reader.pk).update(post_language="")
    visitor.goto("/items/new")
    for name in ("from de", "from fr"):
        choose(visitor, "drafts")
        visitor.page.locator(".drafts li bdi").get_by_text(name).click()
        expect(visitor.page.get_by_label("What's new?")).to_have_value(name)
        visitor.go(visitor.page.get_by_role("button", name="Publish"))
        visitor.goto("/items/new")
    visitor.page.get_by_label("What's new?").fill("from none")
    visitor.go(visitor.page.get_by_role("button", name="Publish"))
    found = dict(Item.objects.values_list("content__text", "content__language"))
    assert found == {"from de": "de", "from fr": "fr", "from none": None}


def test_a_poll_is_kept_while_its_fields_do_not_come(visitor: Visitor, tolerated: Any) -> None:
    tolerated(*UNREACHABLE)
    visitor.goto("/")
    at = write_everything(visitor)
    visitor.page.route("**/poll-form", lambda route: route.abort())
    visitor.page.reload()
    expect(visitor.page.get_by_label("What's new?")).to_have_value("Which one?")
    visitor.page.get_by_label("Content warning").press_sequentially("!")
    visitor.page.locator(f"{COMPOSER} .send").click()
    expect(visitor.page.locator("#toast")).to_contain_text("No connection")
    assert not ScheduledPost.objects.exists()
    visitor.page.unroute("**/poll-form")
    visitor.page.reload()
    visitor.page.get_by_label("Content warning").fill("hot drinks")
    has_everything(visitor, at)


def test_a_draft_that_lost_a_part_says_so_once(visitor: Visitor, reader: User) -> None:
    visitor.goto("/")
    key, draft = f"draft {reader.pk} post", {"text": "words", "visibility": "circle", "topic": "tea", "at": 9e12}
    visitor.page.evaluate("([key, draft]) => localStorage.setItem(key, draft)", [key, json.dumps(draft)])
    visitor.page.reload()
    expect(visitor.page.locator("#toast")).to_have_text("Part of your draft is gone. Check it before you publish.")
    expect(visitor.page.locator(f'{COMPOSER} [value="public"]')).to_be_checked()
    visitor.page.reload()
    expect(visitor.page.get_by_label("What's new?")).to_have_value("words")
    expect(visitor.page.locator("#toast")).to_be_empty()


def lines(visitor: Visitor) -> Locator:
    return visitor.page.locator(".drafts li bdi")


def test_drafts_are_listed_taken_up_and_deleted(visitor: Visitor, author: User) -> None:
    question = publish(sender=author, content={"text": "a question"})
    visitor.goto(f"/items/new?reply_to={question.pk}")
    visitor.page.get_by_label("Your reply").fill("half an answer")
    visitor.goto("/")
    at = write_everything(visitor)
    choose(visitor, "drafts")
    expect(lines(visitor)).to_have_text(["half an answer"])
    save = visitor.page.get_by_role("button", name="Save draft")
    save.click()
    expect(lines(visitor)).to_have_text(["Which one?", "half an answer"])
    box = visitor.page.get_by_label("What's new?")
    expect(box).to_have_value("")
    expect(visitor.page.locator(f"{COMPOSER} .send")).to_have_text("Publish")
    box.fill("second")
    visitor.goto("/items/new")
    choose(visitor, "drafts")
    lines(visitor).first.click()
    has_everything(visitor, at)
    expect(lines(visitor)).to_have_text(["second", "half an answer"])
    lines(visitor).first.click()
    expect(box).to_have_value("second")
    expect(visitor.page.locator(f'{COMPOSER} [value="public"]')).to_be_checked()
    visitor.go(visitor.page.get_by_role("button", name="Publish"))
    assert Item.objects.filter(content__text="second").exists()
    visitor.goto("/")
    visitor.page.get_by_label("What's new?").click()
    choose(visitor, "drafts")
    visitor.page.get_by_role("button", name="Delete: Which one?").click()
    expect(lines(visitor)).to_have_text(["half an answer"])
    visitor.page.locator("#toast").get_by_role("button", name="Undo").click()
    expect(lines(visitor)).to_have_text(["Which one?", "half an answer"])
    lines(visitor).first.click()
    has_everything(visitor, at)
    lines(visitor).last.click()
    expect(visitor.page.get_by_label("Your reply")).to_have_value("half an answer")


def test_the_list_says_where_a_long_draft_goes_on(visitor: Visitor) -> None:
    visitor.goto("/items/new")
    visitor.page.get_by_label("What's new?").fill("绿" * 81)
    choose(visitor, "drafts")
    visitor.page.get_by_role("button", name="Save draft").click()
    expect(lines(visitor)).to_have_text("绿" * 80 + "…")


def test_posts_from_the_list_are_published_once_each(visitor: Visitor) -> None:
    visitor.goto("/")
    box = visitor.page.get_by_label("What's new?")
    box.click()
    choose(visitor, "drafts")
    for number in range(21):
        box.fill(f"draft {number}")
        visitor.page.get_by_role("button", name="Save draft").click()
    expect(visitor.page.locator("#toast")).to_have_text("You can keep up to 20 drafts. Delete one first.")
    expect(box).to_have_value("draft 20")
    expect(lines(visitor)).to_have_count(20)
    for count in (1, 2, 3):
        visitor.page.get_by_role("button", name="Publish").click()
        until(lambda: Item.objects.count() == count, 20)  # noqa: B023 (at once)
        expect(box).to_have_value("")
        box.click()
        choose(visitor, "drafts")
        lines(visitor).nth(0).click()
    assert list(Item.objects.order_by("pk").values_list("content__text", flat=True)) == [
        "draft 20",
        "draft 19",
        "draft 18",
    ]
