import base64
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Route, expect

from accounts.models import User
from items import scheduling
from items.models import Item
from media.models import MediaFile, VideoConversion
from media.processing import convert_waiting
from media.store import store
from moderation.models import PictureAction, PictureRule
from tests.support.browsers import OPENER, UNREACHABLE, Held, Visit, Visitor
from tests.support.picture_posts import posted, sent
from tests.support.pictures import jpeg, mp4
from tests.support.sites import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

UPLOAD = "/api/v1/me/media$"


def file(name: str = "a.jpg", width: int = 80) -> Any:
    return {"name": name, "mimeType": "image/jpeg", "buffer": jpeg(width, 60)}


@pytest.fixture
def home(visit: Visit, screen: dict[str, Any], reader: Any, media_folder: Path) -> Visitor:
    visitor = visit(**screen)
    visitor.find_media(media_folder)
    visitor.enter(reader)
    visitor.goto("/")
    return visitor


def pick(visitor: Visitor, *files: Any) -> None:
    visitor.page.locator(".composer [data-pick]").first.set_input_files(list(files))


def entries(visitor: Visitor) -> Locator:
    return visitor.page.locator(".composer .medium")


def kept(visitor: Visitor, count: int) -> None:
    """Wait until exactly this many pictures are uploaded."""
    expect(visitor.page.locator('.composer .medium[data-state="kept"]')).to_have_count(count)
    expect(entries(visitor)).to_have_count(count)


def ids(visitor: Visitor) -> list[str]:
    return [
        str(one.input_value()) for one in visitor.page.locator('.composer [name="media"]').all() if one.input_value()
    ]


GIVE = """([kind, data]) => {
    const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
    const files = new DataTransfer();
    files.items.add(new File([bytes], "given.jpg", { type: "image/jpeg" }));
    const area = document.querySelector(".composer textarea");
    const options = { bubbles: true, cancelable: true };
    area.dispatchEvent(
        kind === "paste" ? new ClipboardEvent(kind, { ...options, clipboardData: files })
        : new DragEvent(kind, { ...options, dataTransfer: files }));
}"""


@pytest.mark.parametrize("way", ["drop", "paste"])
def test_pictures_are_dropped_and_pasted(home: Visitor, way: str) -> None:
    home.page.evaluate(GIVE, [way, base64.b64encode(jpeg()).decode()])
    kept(home, 1)


PASTE = """([data, name, type, text]) => {
    const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
    const pasted = new DataTransfer();
    pasted.items.add(new File([bytes], name, { type }));
    pasted.setData("text/plain", text);
    const options = { bubbles: true, cancelable: true, clipboardData: pasted };
    return !document.querySelector(".composer textarea").dispatchEvent(new ClipboardEvent("paste", options));
}"""


def test_a_picture_of_a_file_manager_is_pasted_though_its_name_comes_along(home: Visitor) -> None:
    def is_taken(text: str, name: str = "été 1%.jpg", kind: str = "image/jpeg") -> bool:
        return bool(home.page.evaluate(PASTE, [base64.b64encode(jpeg()).decode(), name, kind, text]))

    assert is_taken("x-special/nautilus-clipboard\ncopy\nfile:///home/me/%C3%A9t%C3%A9%201%25.jpg\n")
    kept(home, 1)
    for text in ("été 1%.jpg", "été 1%", "e\u0301te\u0301 1%.jpg", "C:\\Users\\me\\été 1%.jpg", "/home/été 1%.jpg\r\n"):
        entries(home).get_by_role("button", name="Remove").click()
        assert is_taken(text), text
        kept(home, 1)
    for text in ("A1\tB1", "words of a page", "été 1%.jpg and words", "été 1%.jpg\nother.jpg", "jpg", "1"):
        assert not is_taken(text), text
    assert not is_taken("report.pdf", "report.pdf", "application/pdf")
    kept(home, 1)


def test_pictures_are_ordered_described_and_removed(home: Visitor, reader: Any) -> None:
    pick(home, file("a.jpg", 80), file("b.jpg", 90), file("c.jpg", 100))
    kept(home, 3)
    assert MediaFile.objects.filter(owner_id=reader.pk, use="").count() == 3
    first, second, third = ids(home)
    reminder = home.page.get_by_text("Describe pictures and videos")
    expect(reminder).to_be_visible()
    expect(entries(home).first.get_by_role("button", name="Move earlier")).to_be_disabled()
    entries(home).nth(0).get_by_role("button", name="Move later").press("Enter")
    assert ids(home) == [second, first, third]
    expect(entries(home).nth(1).get_by_role("button", name="Move later")).to_be_focused()
    entries(home).nth(2).drag_to(entries(home).nth(0))
    home.holds(f"document.querySelector('.composer [name=media]').value === '{third}'")
    for place in range(3):
        entries(home).nth(place).get_by_label("Description").fill("x" * (1400 if place else 3))
    expect(reminder).to_be_hidden()
    expect(entries(home).nth(1)).to_contain_text("Characters left: 100")
    entries(home).nth(2).get_by_role("button", name="Remove").press("Enter")
    assert third in ids(home)
    kept(home, 2)


def test_the_focus_is_set_by_press_and_keys(home: Visitor) -> None:
    pick(home, file())
    kept(home, 1)
    focus = entries(home).locator(".medium-focus")
    value = home.page.locator('.composer [name="focus"]').first
    expect(value).to_have_value("0,0")
    size = focus.bounding_box()
    assert size is not None
    focus.click(position={"x": size["width"] * 0.75, "y": size["height"] * 0.25})
    x, y = map(float, value.input_value().split(","))
    assert abs(x - 0.5) < 0.05
    assert abs(y - 0.5) < 0.05
    focus.press("ArrowLeft")
    assert float(value.input_value().split(",")[0]) == pytest.approx(x - 0.1, abs=0.02)


def test_a_fifth_picture_is_refused(home: Visitor) -> None:
    pick(home, *(file(f"{number}.jpg", 60 + number) for number in range(5)))
    kept(home, 4)
    expect(home.page.locator("#toast")).to_have_text("A post can have up to 4 pictures, or one video.")


def test_a_failed_upload_keeps_the_text_and_is_sent_again(home: Visitor, tolerated: Callable[..., None]) -> None:
    tolerated(*UNREACHABLE, "with a status of 503")
    home.page.get_by_label("What's new?").fill("words that stay")
    held = Held(home.page, UPLOAD)
    pick(home, file())
    expect(entries(home).locator("progress")).to_be_visible()
    held.answer(503)
    expect(entries(home).get_by_text("Upload failed.")).to_be_visible()
    home.page.get_by_role("button", name="Publish").click()
    expect(home.page.locator("#toast")).to_contain_text("Something didn't upload")
    expect(home.page.get_by_label("What's new?")).to_have_value("words that stay")
    assert not Item.objects.exists()
    entries(home).get_by_role("button", name="Try again").click()
    kept(home, 1)


def test_pictures_are_sent_one_after_another(home: Visitor) -> None:
    held = Held(home.page, UPLOAD)
    pick(home, *(file(f"{number}.jpg", 60 + number) for number in range(3)))
    expect(entries(home)).to_have_count(3)
    until(lambda: bool(home.page.title()) and bool(held.asked), 20)
    entries(home).nth(1).get_by_role("button", name="Remove").click()
    assert len(held.asked) == 1
    held.let_go()
    kept(home, 2)
    assert len(held.asked) == MediaFile.objects.count() == 2


def test_a_picture_waits_for_a_place_where_the_server_takes_it(home: Visitor, tolerated: Callable[..., None]) -> None:
    tolerated("with a status of 503")
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) == 1:  # a busy web process
            route.fulfill(status=503, headers={"Retry-After": "1"}, json={"detail": "Service Unavailable."})
        else:
            route.continue_()

    home.page.route(re.compile(UPLOAD), answer)
    pick(home, file(), file("b.jpg", 90))
    kept(home, 2)
    assert len(asked) == 3


def test_a_refusal_says_why(home: Visitor, reader: User, tolerated: Callable[..., None]) -> None:
    tolerated("with a status of 400")
    picture = jpeg(90, 60)
    PictureRule.objects.create(sha256=hashlib.sha256(picture).hexdigest(), action=PictureAction.REJECT)
    pick(home, {"name": "a.jpg", "mimeType": "image/jpeg", "buffer": picture})
    expect(entries(home).locator(".medium-problem")).to_have_text(
        "This site's rules don't allow this picture or video."
    )


def test_a_file_that_is_no_picture(home: Visitor, tolerated: Callable[..., None]) -> None:
    tolerated("with a status of 415")
    pick(home, {"name": "a.jpg", "mimeType": "image/jpeg", "buffer": b"<svg onload=alert(1)>"})
    expect(entries(home).locator(".medium-problem")).to_have_text(re.compile("Use a picture"))
    expect(entries(home).get_by_role("button", name="Try again")).to_be_hidden()


def test_a_post_goes_as_soon_as_its_pictures_are_sent(home: Visitor) -> None:
    held = Held(home.page, UPLOAD)
    pick(home, file("a.jpg", 80), file("b.jpg", 90))
    entries(home).nth(1).get_by_label("Description").fill("A blue corner")
    home.page.locator(".warns > summary").first.click()
    home.page.get_by_label("Sensitive").check()
    home.page.get_by_role("button", name="Publish").click()
    held.let_go()
    card = home.page.locator("#feed article").first
    expect(card.locator(".veil")).to_be_visible()
    card.locator(".veil > summary").click()
    expect(card.locator(".pictures img")).to_have_count(2)
    expect(card.get_by_alt_text("A blue corner")).to_be_visible()
    item = Item.objects.get()
    assert item.type == "image"
    assert item.content["sensitive"] is True
    assert [one.get("description", "") for one in item.media] == ["", "A blue corner"]
    expect(entries(home)).to_have_count(0)


def test_pictures_stay_unveiled_where_the_timeline_comes_anew(home: Visitor) -> None:
    home.page.get_by_label("What's new?").click()
    home.page.locator(".warns > summary").first.click()
    home.page.get_by_label("Sensitive").check()
    pick(home, file())
    kept(home, 1)
    held = Held(home.page, f"^{re.escape(home.site)}/$")
    home.page.get_by_role("button", name="Publish").click()
    veil = home.page.locator("#feed article .veil").first
    veil.locator("summary").click()
    veil.evaluate("one => one.mark = 'of before'")
    held.let_go()
    home.holds("!document.querySelector('#feed article .veil').mark")
    expect(veil.locator(".pictures img")).to_be_visible()
    veil.locator("summary").click()
    expect(veil.locator(".pictures img")).to_be_hidden()


def test_pictures_of_a_post_are_ordered_and_described_where_it_is_edited(home: Visitor, reader: User) -> None:
    first, second = (sent(reader, jpeg(80 + 10 * number), description=f"number {number}") for number in (1, 2))
    item = posted(reader, first, second, text="look")
    home.goto("/")
    card = home.page.locator(f"#item-{item.pk}")
    card.locator(OPENER).click()
    card.locator(".menu").get_by_role("link", name="Edit", exact=True).click()
    editor = card.locator(".editor")
    expect(editor.locator(".medium")).to_have_count(2)
    expect(card.locator(".pictures")).to_be_hidden()
    expect(editor.get_by_role("button", name="Remove")).to_have_count(0)
    home.holds("performance.getEntriesByType('resource').some(({ name }) => name.includes('attaching'))")
    editor.get_by_role("button", name="Move earlier").last.click()
    expect(editor.get_by_label("Description").first).to_have_value("number 2")
    editor.get_by_label("Description").first.fill("Two first")
    editor.locator(".medium-focus").first.focus()
    home.page.keyboard.press("ArrowRight")
    editor.locator(".warns > summary").click()
    editor.get_by_label("Warning").fill("Spiders")
    editor.get_by_role("button", name="Save").click()
    card.locator(".warned > summary").click()
    expect(card.get_by_alt_text("Two first")).to_be_visible()
    item.refresh_from_db()
    assert [entry["id"] for entry in item.media] == [second, first]
    assert (item.media[0]["description"], item.media[0]["x"]) == ("Two first", 0.1)
    assert item.content == {"text": "look", "media": [second, first], "warning": "Spiders"}


def test_an_article_is_written_with_a_title(home: Visitor) -> None:
    home.page.get_by_label("What's new?").click()
    home.page.locator(".titled > summary").first.click()
    home.page.get_by_label("Title").fill("On bread")
    home.page.get_by_label("What's new?").fill("crumbs " * 1000)
    home.page.get_by_role("button", name="Publish").click()
    card = home.page.locator("#feed article").first
    expect(card.get_by_text("On bread")).to_be_visible()
    expect(card.get_by_role("link", name="Show more")).to_be_visible()
    assert Item.objects.get().type == "article"


@pytest.fixture
def plain(visit: Visit, screen: dict[str, Any], reader: Any, media_folder: Path) -> Visitor:
    visitor = visit(**screen, java_script_enabled=False)
    visitor.find_media(media_folder)
    visitor.enter(reader)
    visitor.goto("/items/new")
    return visitor


def test_home_without_scripts_asks_who_may_see_a_post(plain: Visitor) -> None:
    plain.goto("/")
    plain.page.get_by_label("What's new?").fill("for few")
    plain.page.get_by_label("Who can see it").select_option("Followers")
    plain.go(plain.page.get_by_role("button", name="Publish"))
    assert Item.objects.get().visibility == "followers"
    plain.goto("/")
    choice = plain.page.get_by_label("Who can see it")
    more = plain.page.locator(".composer").get_by_role("link", name="More")
    assert choice.evaluate("(one) => one.offsetTop") == more.evaluate("(one) => one.offsetTop"), "in one row"
    plain.go(more)
    expect(plain.page.locator(".titled")).to_be_visible()


def test_plain_file_fields(plain: Visitor) -> None:
    page = plain.page
    page.locator(".files > summary").click()
    page.get_by_label("File 2").set_input_files(file())
    page.get_by_label("Description").nth(1).fill("Four fields of colour")
    plain.go(page.get_by_role("button", name="Publish"))
    expect(page.get_by_alt_text("Four fields of colour")).to_have_count(1)
    assert Item.objects.get().text == ""


def test_a_refused_file_keeps_words_and_other_files(plain: Visitor, tolerated: Callable[..., None]) -> None:
    tolerated("with a status of 422")
    page = plain.page
    page.get_by_label("What's new?").fill("words that stay")
    page.locator(".files > summary").click()
    page.get_by_label("File 1").set_input_files(file())
    page.get_by_label("File 2").set_input_files({"name": "b.jpg", "mimeType": "image/jpeg", "buffer": b"no picture"})
    plain.go(page.get_by_role("button", name="Publish"))
    expect(page.locator("ul.errorlist")).to_contain_text("Use a picture")
    expect(page.get_by_label("What's new?")).to_have_value("words that stay")
    expect(page.get_by_label("Keep", exact=True)).to_be_checked()
    assert not Item.objects.exists()
    plain.go(page.get_by_role("button", name="Publish"))
    item = Item.objects.get()
    assert item.text == "words that stay"
    assert len(item.media) == 1


def test_a_post_with_a_video_that_is_being_converted(home: Visitor) -> None:
    """It can be sent, and comes out later. One that fails says why."""
    video = {"name": "a", "mimeType": "video/mp4", "buffer": mp4()}
    pick(home, video)
    kept(home, 1)
    home.page.get_by_role("button", name="Publish").click()
    expect(home.page.get_by_role("status").filter(has_text="comes out when its video is ready").first).to_be_visible()
    expect(entries(home)).to_have_count(0)
    assert convert_waiting()
    assert scheduling.publish_due() == 1
    pick(home, video | {"buffer": mp4(secret=b"another one")})
    kept(home, 1)
    store().delete(f"{VideoConversion.objects.get(finished_at=None).original}.original")
    assert convert_waiting()
    expect(entries(home)).to_contain_text("Upload it again", timeout=20_000)


WORDS = b"WEBVTT\n\n00:01.000 --> 00:02.000\n<b>words</b>\n"


def captions(visitor: Visitor, data: bytes) -> None:
    field = visitor.page.get_by_label("Captions (.vtt)")
    field.set_input_files({"name": "a.vtt", "mimeType": "text/vtt", "buffer": data})


def test_a_video_gets_captions_in_its_composer_and_its_editor(
    home: Visitor, reader: User, tolerated: Callable[..., None]
) -> None:
    tolerated("with a status of 400")
    home.page.locator(".composer [data-pick]").set_input_files({"name": "a", "mimeType": "video/mp4", "buffer": mp4()})
    kept(home, 1)
    expect(entries(home)).to_contain_text("The video is being converted.")
    expect(entries(home).get_by_role("progressbar", name="Converting")).to_be_visible()
    expect(entries(home).locator(".medium-focus")).to_be_disabled()
    assert convert_waiting()
    expect(entries(home).locator(".medium-focus img")).to_be_visible(timeout=20_000)
    expect(entries(home).locator(".medium-working")).to_be_hidden()
    expect(entries(home).locator(".medium-focus")).to_be_enabled()
    captions(home, WORDS.replace(b"<b>", b"<script>"))
    expect(entries(home)).to_contain_text("have tags that WebVTT doesn't know")
    captions(home, WORDS)
    expect(entries(home)).to_contain_text("The video has captions.")
    home.page.reload()
    expect(entries(home)).to_contain_text("The video has captions.")
    entries(home).get_by_role("button", name="Remove captions").press("Enter")
    expect(entries(home)).not_to_contain_text("The video has captions.")
    expect(home.page.get_by_label("Captions (.vtt)")).to_be_focused()
    captions(home, WORDS)
    expect(entries(home)).to_contain_text("The video has captions.")
    home.page.get_by_role("button", name="Publish").click()
    track = home.page.locator("#feed article video track")
    expect(track).to_have_count(1)
    item = Item.objects.get()
    shown = "document.querySelector('video').textTracks[0]"
    home.holds(f"{shown}.mode === 'showing' && {shown}.cues?.[0]?.text === 'words'")
    home.goto(f"/items/{item.pk}/edit")
    expect(entries(home)).to_contain_text("The video has captions.")
    captions(home, WORDS.replace(b"words", b"others"))
    expect(entries(home)).to_contain_text("The video has captions.")
    entries(home).get_by_role("button", name="Remove captions").click()
    expect(entries(home)).not_to_contain_text("The video has captions.")
    home.goto(f"/items/{item.pk}")
    expect(home.page.locator("article video")).to_have_count(1)
    expect(track).to_have_count(0)


def test_a_post_with_pictures_is_written_by_keys_alone(home: Visitor) -> None:
    """By Tab from text to button. Screen readers hear each step."""
    press = home.page.keyboard.press
    told = home.page.locator(".composer .medium-said")
    pick(home, file("a.jpg", 80), file("b.jpg", 90))
    kept(home, 2)
    expect(told).to_have_text(re.compile(r"Picture \d of 2: uploaded"))
    first, second = ids(home)
    home.page.get_by_label("What's new?").focus()
    home.page.keyboard.type("By keys")
    for _ in range(5):  # focus, description, move last, remove, second picture
        press("Tab")
    press("ArrowUp")
    expect(told).to_have_text("Focus at 50 % from the left and 45 % from the top")
    press("Tab")
    home.page.keyboard.type("The second")
    press("Tab")
    press("Enter")  # move first
    expect(told).to_have_text("Picture 1 of 2")
    assert ids(home) == [second, first]
    expect(home.page.get_by_role("listitem", name="Picture 1 of 2").get_by_label("Description")).to_have_value(
        "The second"
    )
    home.page.locator(".warns > summary").focus()
    press("Enter")
    expect(home.page.locator(".warns [name=warning]")).to_be_focused()
    home.page.keyboard.type("Spiders")
    press("Tab")
    press("Space")
    for _ in range(5):  # emoji, time, drafts, audience, button
        press("Tab")
    expect(home.page.get_by_role("button", name="Publish")).to_be_focused()
    press("Enter")
    expect(home.page.locator("#feed article .warned")).to_be_visible()
    item = Item.objects.get()
    assert [(one["id"], one.get("description", ""), one.get("y", 0)) for one in item.media] == [
        (second, "The second", 0.1),
        (first, "", 0),
    ]
    assert (item.content["warning"], item.content["sensitive"]) == ("Spiders", True)
