"""Each page offers files with one to two pixels for each pixel that a picture is drawn on."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from django.utils import timezone
from playwright.sync_api import expect

from accounts import faces
from accounts.about import logo
from accounts.models import User
from items.actions import like, publish
from items.models import Item, ItemType, LinkCard
from live.actions import create
from media.actions import upload as upload_medium
from media.linked import mark_used, store_picture
from media.models import MediaFile, Use
from media.objects import facts_of_row
from tests.support.browsers import Visit, Visitor
from tests.support.factories import UserFactory
from tests.support.pictures import jpeg, upload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

SHAPES = [(3000, 2000), (2000, 3000), (2400, 2400), (2800, 2100)]
LEAST = 160
"""The narrowest size of pictures: on one pixel a CSS pixel, thumbnails of 46 take it too."""
SCREENS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 860}},
    "dense": {"viewport": {"width": 1280, "height": 860}, "device_scale_factor": 2},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "device_scale_factor": 3,
        "is_mobile": True,
        "has_touch": True,
    },
}
MEASURED = """
async (selector) => {
    const found = [];
    for (const one of document.querySelectorAll(selector)) {
        if (!one.checkVisibility() || !one.currentSrc.includes("/media/")) continue;
        one.loading = "eager";
        await one.decode();
        const file = new Image();
        file.src = one.currentSrc;
        await file.decode();
        const box = one.getBoundingClientRect();
        const fits = [box.width / file.naturalWidth, box.height / file.naturalHeight];
        const fit = { cover: Math.max(...fits), contain: Math.min(...fits) }[getComputedStyle(one).objectFit];
        const drawn = fit ? fit * file.naturalWidth : box.width;
        const place = [one.className, one.closest("[class]:not(img, a)")?.className, Math.round(box.width)].join(" ");
        found.push([place, file.naturalWidth, drawn * devicePixelRatio, one.currentSrc.split("/").pop()]);
    }
    return found;
}
"""


def posted(author: User, count: int) -> Item:
    rows = [upload_medium(owner_id=author.pk, file=upload(jpeg(*SHAPES[number]))) for number in range(count)]
    return publish(sender=author, type=ItemType.IMAGE, content={"text": "x", "media": [str(row.pk) for row in rows]})


def with_link(author: User, name: str, sides: tuple[int, int]) -> Item:
    picture = store_picture(jpeg(*sides))
    mark_used(picture)
    url = f"https://{name}.example/"
    facts = {"url": url, "title": name, "description": "", "site": name, "picture": None}
    facts["picture"] = msgspec.to_builtins(facts_of_row(picture))
    card = LinkCard.objects.create(url=url, digest=name, domain=f"example.{name}.", facts=facts, picture=picture)
    item = publish(sender=author, content={"text": url})
    Item.objects.filter(pk=item.pk).update(link_card=card)
    return item


def check(visitor: Visitor, path: str, least: int, selector: str = "img") -> None:
    """At least this many pictures, none of them too coarse or too large."""
    visitor.goto(path)
    visitor.settle()
    found = visitor.page.evaluate(MEASURED, selector)
    assert len(found) >= least, (path, found)
    wrong = [one for one in found if not (one[2] <= one[1] + 0.5 and (one[1] <= 2 * one[2] + 0.5 or one[1] == LEAST))]
    assert not wrong, (path, wrong)


def check_viewer(visitor: Visitor, path: str) -> None:
    """As `check`, over the page. Where a picture has fewer pixels than the screen, the whole file is shown."""
    visitor.goto(path)
    visitor.page.locator("a[data-light]").first.click()
    expect(visitor.page.locator(".light-stage .before")).to_have_count(0)
    ((place, width, drawn, name),) = visitor.page.evaluate(MEASURED, ".light-stage > img")
    assert drawn <= width + 0.5 or name.endswith(".jpg"), (path, place, width, drawn, name)
    assert width <= 2 * drawn + 0.5, (path, place, width, drawn, name)


@pytest.fixture
def pages(reader: User, author: User, media_folder: Path) -> dict[str, int]:
    """Each page, with the least number of pictures on it."""
    for user in (reader, author):
        faces.set_face(user=user, use=Use.AVATAR, file=upload(jpeg(900, 900)))
    faces.set_face(user=author, use=Use.BANNER, file=upload(jpeg(3000, 1000)))
    logo.set_logo(file=upload(jpeg(900, 900)))
    items = [posted(author, count) for count in (1, 2, 3, 4)]
    tall = upload_medium(owner_id=author.pk, file=upload(jpeg(2000, 3000)))
    items.append(publish(sender=author, type=ItemType.IMAGE, content={"text": "x", "media": [str(tall.pk)]}))
    with_link(author, "wide", (2400, 1250))
    with_link(author, "square", (1200, 1000))
    own = posted(reader, 1)
    posted(UserFactory.create(), 1)  # strangers see pictures of three members
    like(user=author, item=own)
    now = timezone.now()
    covers = [upload_medium(owner_id=author.pk, file=upload(jpeg(2400, height))).pk for height in (1350, 1800)]
    sessions = [
        create(host=author, title="x", starts_at=now + timedelta(days=1), now=now, cover_id=cover) for cover in covers
    ]
    return {
        "/": 20,
        f"/items/{items[0].pk}": 2,
        f"/items/{items[3].pk}": 5,
        f"/items/{items[4].pk}": 2,
        "/@author": 15,
        "/@author/media": 6,
        "/live": 4,
        f"/live/{sessions[0].pk}": 2,
        "/notifications": 2,
        "/settings": 0,  # a phone shows a list first
    }


@pytest.mark.parametrize("screen", SCREENS)
def test_pictures_are_sharp(visit: Visit, pages: dict[str, int], reader: User, media_folder: Path, screen: str) -> None:
    visitor = visit(**SCREENS[screen])
    visitor.find_media(media_folder)
    check(visitor, "/", 3, ".wall img")
    visitor.enter(reader)
    for path, least in pages.items():
        check(visitor, path, least)
        if path.startswith("/items/"):
            check_viewer(visitor, path)
    assert MediaFile.objects.filter(lacks_sizes=True).count() == 0
