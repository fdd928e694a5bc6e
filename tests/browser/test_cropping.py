from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Locator, expect

from accounts.models import User
from media.store import store
from tests.support.browsers import Visit, Visitor
from tests.support.pictures import animation, encoded, jpeg, opened, photo, picture

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

RED, GREEN, BLUE = (220, 30, 30), (30, 200, 30), (40, 40, 160)
"""Quarters of `picture`: top left, top right, bottom left."""


def file(data: bytes, kind: str = "image/jpeg") -> Any:
    return {"name": "a", "mimeType": kind, "buffer": data}


@pytest.fixture
def profile(visit: Visit, screen: dict[str, Any], reader: User, media_folder: Path) -> Visitor:
    visitor = visit(**screen)
    visitor.find_media(media_folder)
    visitor.enter(reader)
    visitor.goto("/settings/profile")
    return visitor


def field_of(visitor: Visitor, name: str = "avatar") -> Locator:
    return visitor.page.locator(f"input[name={name}]")


def pick(visitor: Visitor, data: bytes, kind: str = "image/jpeg", field: str = "avatar") -> None:
    field_of(visitor, field).set_input_files(file(data, kind))


def box(visitor: Visitor, name: str = "Profile picture") -> Locator:
    return visitor.page.get_by_role("dialog", name=name)


def stage(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("application", name="Crop picture")


def use(visitor: Visitor) -> None:
    visitor.page.get_by_role("button", name="Apply").click()
    expect(visitor.page.locator("#cropper")).to_be_hidden()


def kept(visitor: Visitor, reader: User, face: str = "avatar") -> Image.Image:
    """Save the form. Returns the profile's new picture."""
    visitor.go(visitor.page.get_by_role("main").get_by_role("button", name="Save"))
    expect(visitor.page.get_by_role("status").get_by_text("Saved.")).to_be_visible()
    reader.refresh_from_db()
    facts = getattr(reader, face)
    with store().open(f"{facts['name']}.{facts['ext']}") as found:
        return opened(found.read()).convert("RGB")


def is_like(image: Image.Image, place: tuple[int, int], colour: tuple[int, int, int]) -> bool:
    found = image.getpixel(place)
    assert isinstance(found, tuple)
    return all(abs(one - other) < 40 for one, other in zip(found, colour, strict=True))


def test_an_avatar_is_cut_by_keys(profile: Visitor, reader: User) -> None:
    field = field_of(profile)
    pick(profile, jpeg(1200, 600))
    expect(stage(profile)).to_be_focused()
    for _ in range(12):
        stage(profile).press("ArrowLeft")
    for _ in range(8):
        stage(profile).press("+")
    for key in ["ArrowUp"] * 15 + ["ArrowLeft"] * 15:
        stage(profile).press(key)
    expect(profile.page.locator(".crop-said")).to_contain_text("Zoom 214 %")
    use(profile)
    expect(field).to_be_focused()
    expect(profile.page.get_by_role("img", name="The part you chose")).to_be_visible()
    image = kept(profile, reader)
    assert image.size == (280, 280)  # not enlarged
    assert all(is_like(image, place, RED) for place in [(4, 4), (275, 4), (4, 275), (275, 275)])


def test_a_banner_is_cut_by_drag_wheel_and_slider(profile: Visitor, reader: User) -> None:
    pick(profile, encoded(picture(3000, 3000), "PNG"), "image/png", "banner")
    expect(box(profile, "Banner")).to_be_visible()
    place = stage(profile).bounding_box()
    assert place is not None
    middle, high = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
    profile.page.mouse.move(middle, high)
    profile.page.mouse.wheel(0, -347)  # doubles the zoom
    profile.holds("document.querySelector('#cropper [type=range]').value > 190")
    profile.page.get_by_role("slider", name="Zoom").press("Home")
    profile.holds("document.querySelector('#cropper [type=range]').value === '100'")
    profile.page.mouse.move(middle, place["y"] + 5)
    profile.page.mouse.down()
    for _ in range(4):
        profile.page.mouse.move(middle, place["y"] + place["height"] * 3)
    profile.page.mouse.up()
    use(profile)
    image = kept(profile, reader, "banner")
    assert image.size == (1500, 500)
    assert is_like(image, (20, 20), RED)
    assert is_like(image, (1480, 480), GREEN)


def test_two_fingers_zoom(profile: Visitor) -> None:
    pick(profile, jpeg(800, 800))
    expect(box(profile)).to_be_visible()
    pinch = """() => {
        const stage = document.querySelector(".crop-stage");
        stage.setPointerCapture = () => {};
        const box = stage.getBoundingClientRect();
        const tell = (kind, pointerId, x) => stage.dispatchEvent(new PointerEvent(kind, {
            pointerId, clientX: box.left + box.width * x, clientY: box.top + box.height / 2, bubbles: true, button: 0,
        }));
        tell("pointerdown", 1, 0.4);
        tell("pointerdown", 2, 0.6);
        tell("pointermove", 1, 0.3);
        tell("pointermove", 2, 0.7);
        tell("pointerup", 1, 0.3);
        tell("pointerup", 2, 0.7);
    }"""
    profile.page.evaluate(pinch)
    profile.holds("document.querySelector('#cropper [type=range]').value === '200'")


@pytest.mark.parametrize("way", [1, 3, 6, 8])
def test_the_orientation_of_a_photo_counts(profile: Visitor, reader: User, way: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = way
    pick(profile, jpeg(600, 600, exif=exif))
    expect(box(profile)).to_be_visible()
    use(profile)
    corner = {1: (20, 20), 3: (380, 380), 6: (380, 20), 8: (20, 380)}[way]
    assert is_like(kept(profile, reader), corner, RED)


def test_transparent_pictures_stay_so(profile: Visitor, reader: User) -> None:
    image = picture(500, 500).convert("RGBA")
    image.putalpha(90)
    pick(profile, encoded(image, "PNG"), "image/png")
    use(profile)
    kept(profile, reader)
    assert reader.avatar["ext"] == "webp"


def test_a_photo_of_twelve_megapixels(profile: Visitor, reader: User) -> None:
    pick(profile, photo())
    expect(box(profile)).to_be_visible()
    stage(profile).press("+")
    use(profile)
    assert kept(profile, reader).size == (400, 400)


def test_cancel_leaves_what_was_chosen_before(profile: Visitor, reader: User) -> None:
    field = field_of(profile)
    count = "one => one.files.length"
    pick(profile, jpeg(500, 500))
    expect(box(profile)).to_be_visible()
    profile.page.keyboard.press("Escape")
    expect(box(profile)).to_be_hidden()
    expect(field).to_be_focused()
    assert field.evaluate(count) == 0
    pick(profile, jpeg(500, 500))
    use(profile)
    pick(profile, encoded(picture(300, 300), "PNG"), "image/png")
    box(profile).get_by_role("button", name="Cancel").click()
    assert field.evaluate("one => one.files[0].type") == "image/jpeg"
    assert kept(profile, reader).size == (400, 400)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (animation(3), "image/gif"),
        (animation(3, "WEBP"), "image/webp"),
        (animation(3, "PNG"), "image/png"),
        (encoded(picture(500, 300), "HEIF"), "image/heic"),
    ],
    ids=["gif", "webp", "png", "heic"],
)
def test_files_that_cannot_be_cut_are_sent_whole(profile: Visitor, reader: User, data: bytes, kind: str) -> None:
    pick(profile, data, kind)
    expect(profile.page.get_by_text("This file can't be cropped here")).to_be_visible()
    expect(box(profile)).to_be_hidden()
    image = kept(profile, reader)
    assert image.width == image.height


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_a_picture_of_one_frame_is_cut(profile: Visitor, kind: str) -> None:
    pick(profile, encoded(picture(300, 300), kind), f"image/{kind.lower()}")
    expect(box(profile)).to_be_visible()


def test_a_file_that_is_no_picture_is_refused_at_its_field(profile: Visitor, tolerated: Any) -> None:
    tolerated("with a status of 422")
    pick(profile, b"<svg onload=alert(1)>", "image/svg+xml")
    profile.page.get_by_role("main").get_by_role("button", name="Save").click()
    expect(profile.page.locator(".errorlist")).to_contain_text("Use a picture")


def test_a_picture_is_removed_by_its_bin(profile: Visitor, reader: User) -> None:
    pick(profile, jpeg(500, 500))
    use(profile)
    kept(profile, reader)
    bin_of = profile.page.get_by_label("Remove profile picture")
    expect(bin_of).not_to_be_checked()
    bin_of.check(force=True)
    pick(profile, jpeg(500, 500))  # a new picture cancels the removal
    use(profile)
    expect(bin_of).not_to_be_checked()
    kept(profile, reader)
    bin_of.check(force=True)
    profile.go(profile.page.get_by_role("button", name="Save"))
    expect(profile.page.get_by_label("Remove profile picture")).to_have_count(0)
    reader.refresh_from_db()
    assert reader.avatar is None


def test_how_far_a_picture_is_sent_is_shown_and_a_refusal_keeps_it(
    profile: Visitor, reader: User, tolerated: Any
) -> None:
    tolerated("with a status of 422")
    page = profile.page
    pick(profile, jpeg(500, 500))
    use(profile)
    page.get_by_label("Display name").fill("Ann\u202enimdA")
    shown = "window.shown = []; document.body.addEventListener('htmx:xhr:progress', ({ target }) => shown.push("
    page.evaluate(f"() => {{ {shown}target.querySelector('progress').hidden)) }}")
    page.get_by_role("main").get_by_role("button", name="Save").click()
    expect(page.locator(".errorlist")).to_contain_text("change the writing direction")
    assert False in page.evaluate("window.shown")
    expect(page.get_by_role("img", name="The part you chose")).to_be_visible()
    page.get_by_label("Display name").fill("Ann")
    assert kept(profile, reader).size == (400, 400)


def test_without_javascript_the_server_cuts(visit: Visit, reader: User, media_folder: Path) -> None:
    visitor = visit(java_script_enabled=False)
    visitor.find_media(media_folder)
    visitor.enter(reader)
    visitor.goto("/settings/profile")
    pick(visitor, jpeg(1200, 600))
    image = kept(visitor, reader)
    assert image.size == (400, 400)
    assert is_like(image, (20, 20), RED)
    assert is_like(image, (380, 20), GREEN)
