"""Videos on pages: nothing is loaded before they play, and one plays at a time."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from accounts.models import User
from items.actions import publish
from items.models import ItemType
from tests.support.browsers import Visit
from tests.support.picture_posts import sent
from tests.support.videos import film

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

PLAYING = "Array.from(document.querySelectorAll('.picture video'), (one) => !one.paused).join()"


@pytest.mark.parametrize("plays_videos", [False, True])
def test_videos(visit: Visit, screen: dict[str, Any], reader: User, media_folder: Path, plays_videos: bool) -> None:
    User.objects.filter(pk=reader.pk).update(plays_videos=plays_videos)
    for secret in ("one", "two"):
        data = film(size=(64, 16), frames=900, secret=secret)
        publish(sender=reader, type=ItemType.VIDEO, content={"media": [sent(reader, data)]})
    visitor = visit(**screen)
    visitor.find_media(media_folder)
    visitor.enter(reader)
    loaded: list[str] = []
    visitor.page.on("request", lambda request: loaded.append(request.url) if request.url.endswith(".mp4") else None)
    visitor.goto("/")
    videos = visitor.page.locator(".picture video")
    expect(videos).to_have_count(2)
    if plays_videos:
        visitor.holds(f"{PLAYING}.includes('true')")
        visitor.holds("Array.from(document.querySelectorAll('.picture video')).filter((one) => !one.paused)[0].muted")
        return
    assert loaded == []
    for number, playing in ((0, "true,false"), (1, "false,true")):
        videos.nth(number).evaluate("one => one.play()")
        visitor.holds(f"{PLAYING} === '{playing}'")
    visitor.page.get_by_role("link", name="View larger").nth(1).press("Enter")
    large = visitor.page.locator("#lightbox video")
    expect(large).to_be_visible()
    visitor.holds(f"{PLAYING} === 'false,false'")
    expect(visitor.page.get_by_role("button", name="Zoom")).to_be_hidden()
    visitor.page.keyboard.press("Escape")
    expect(large).to_have_count(0)
    expect(visitor.page.get_by_role("link", name="View larger").nth(1)).to_be_focused()
