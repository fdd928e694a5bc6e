import io
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from PIL import Image, ImageSequence

from accounts.models import User
from community import demo, demo_messages, demo_pictures, demo_sessions
from community.demo_pictures import BANNERS, FACES, FEATURES, FOLDER, MORE_FACES, SHOWN, THINGS
from community.demo_texts import read_posts
from items.models import Item, ItemDocument, ItemType
from items.text import check_content
from media.models import MediaFile, Use, file_names
from media.objects import facts_for_json
from storage.connections import fetch
from tests.support.pictures import files_of
from timeline.home import home_page

SOME = Counter({1: 8, 2: 1, 3: 1, 4: 1})
"""At least this many posts, by pictures per post."""


@pytest.fixture
def made(db: None, media_folder: Path, tmp_path: Path, settings: Any) -> Path:
    settings.DATA_DIR = tmp_path
    call_command("demo", stdout=io.StringIO())
    return media_folder


@pytest.mark.long
@pytest.mark.slow
def test_a_demo_with_faces_and_pictures(made: Path) -> None:
    """One demo for all questions, because it takes seconds."""
    rows = list(MediaFile.objects.order_by("pk"))
    names = {name for row in rows for name in file_names(row.name, row.ext, row.small_ext, row.widths)}
    assert {path.name for path in files_of(made)} == {Path(name).name for name in names}, "no file is left over"
    assert {row.use for row in rows} == {Use.ITEM, Use.AVATAR, Use.BANNER, Use.COVER}, "none is left unused"
    assert sum(row.size for row in rows) < 12_000_000
    _faces(rows)
    _posts(rows)


def _faces(rows: list[MediaFile]) -> None:
    users = {user.pk: user for user in User.objects.all()}
    avatars = [row for row in rows if row.use == Use.AVATAR]
    assert len(avatars) == len(FACES) + len(MORE_FACES) + len(THINGS)
    assert all(users[row.owner_id].avatar["id"] == str(row.pk) for row in avatars)
    assert len({row.sha256 for row in avatars}) == len(avatars), "no two have the same face"
    for name in FACES:
        assert any(user.avatar for user in users.values() if user.username == name), name
    assert sum(row.use == Use.BANNER for row in rows) == len(BANNERS)
    assert any(not user.avatar for user in users.values()), "some are drawn as letters"


def _posts(rows: list[MediaFile]) -> None:
    items = list(Item.objects.exclude(type__in=[ItemType.TEXT, ItemType.REPOST]))
    pictured = [item for item in items if item.type == ItemType.IMAGE]
    assert len(pictured) > 15
    counts = Counter(len(item.media) for item in pictured)
    assert all(counts[number] >= least for number, least in SOME.items()), counts
    for item in items:
        check_content(item.type, item.content, item.title)
        media = sorted((row for row in rows if row.item_id == item.pk), key=lambda row: row.position)
        assert [str(row.pk) for row in media] == item.content.get("media", [])
        assert item.media == facts_for_json(media)
        assert all(row.owner_id == item.sender_id and row.description for row in media)
    used = [row for row in rows if row.use == Use.ITEM]
    assert {"tall", "wide", "square"} <= {_aspect(row) for row in used}
    assert [row.ext for row in used].count("webp") == 1, "one is an animation"
    assert sum(item.content.get("sensitive", False) for item in items) == 2
    assert sum(bool(item.content.get("warning")) for item in items) == 1
    (article,) = (item for item in items if item.type == ItemType.ARTICLE)
    (link,) = (item for item in items if item.type == ItemType.LINK)
    assert article.title.startswith("Bread")
    assert link.content["url"].startswith("https://")
    assert ItemDocument.objects.filter(item=article).exists()
    assert fetch(
        "SELECT document @@ to_tsquery('simple', 'bored') FROM items_itemdocument WHERE item_id = %(item)s",
        {"item": article.pk},
    ) == [(True,)]
    home = home_page(User.objects.get(username="mira"), limit=40)
    assert sum(bool(item.media) for item in home.items) >= 4


def _aspect(row: MediaFile) -> str:
    ratio = row.width / row.height
    return "tall" if ratio < 0.9 else "wide" if ratio > 1.1 else "square"


def test_the_files() -> None:
    """Every file is used and every name has a file."""
    files = {path.stem: path.stat().st_size for path in FOLDER.iterdir()}
    shots = [shot for shots in (*SHOWN.values(), *(feature.shots for feature in FEATURES)) for shot in shots]
    assert set(files) == {*FACES.values(), *MORE_FACES, *BANNERS.values(), *(shot.name for shot in shots)}
    assert len(files) <= 40
    assert sum(files.values()) <= 1_200_000
    assert all(shot.words for shot in shots)


def test_pictures_are_as_large_as_dense_screens_need() -> None:
    for path in FOLDER.iterdir():
        with Image.open(path) as image:
            least = 320 if path.stem.startswith("face-") else 640 if path.stem.endswith("-moving") else 1600
            assert max(image.size) >= least, path


def test_every_beginning_of_a_post_begins_one() -> None:
    texts = [text for part in read_posts().values() for text in part]
    assert [key for key in SHOWN if not any(text.startswith(key) for text in texts)] == []


def test_the_light_turns() -> None:
    with Image.open(FOLDER / "lighthouse-moving.webp") as image:
        frames = {frame.convert("RGB").tobytes() for frame in ImageSequence.Iterator(image)}
    assert len(frames) > 10


@pytest.mark.long
def test_a_store_that_takes_nothing_ends_the_pictures_and_not_the_demo(
    db: None, media_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    media_folder.mkdir()
    (media_folder / "files").write_text("no folder")
    with caplog.at_level(logging.WARNING):
        demo.make(size=24, has_pictures=True)
    assert "some demo pictures are missing" in caplog.text
    assert not MediaFile.objects.exists()
    assert User.objects.count() == 24
    assert not Item.objects.filter(type=ItemType.IMAGE).exists()


@pytest.mark.slow
def test_a_picture_that_is_refused_leaves_its_post_as_it_was(
    db: None, media_folder: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third picture of a feature is too large for the site."""
    monkeypatch.setattr(demo_pictures, "FACES", {})
    monkeypatch.setattr(demo_pictures, "MORE_FACES", ())
    monkeypatch.setattr(demo_pictures, "THINGS", ())
    monkeypatch.setattr(demo_pictures, "BANNERS", {})
    monkeypatch.setattr(demo_sessions, "SHOWS", ())
    monkeypatch.setattr(demo_messages, "TALKS", ())
    settings.MEDIA_PIXELS = 1650 * 1100 - 1
    small, large = demo_pictures.PictureFile("ferry", "small"), demo_pictures.PictureFile("sea", "large")
    feature = FEATURES[1]
    monkeypatch.setattr(demo_pictures, "FEATURES", [feature._replace(shots=(small, small, large))])
    demo.make(size=24, has_pictures=True)
    assert not Item.objects.filter(content__text=feature.text).exists()
    assert not Item.objects.exclude(media=[]).exists()
    assert set(MediaFile.objects.values_list("use", flat=True)) == {Use.NONE}, "a day's sweep takes them"
