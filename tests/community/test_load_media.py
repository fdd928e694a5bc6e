import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.models import User
from items.models import Item, ItemType
from items.text import check_content
from media.models import MediaFile, Use
from media.objects import facts_for_json
from tests.support.datasets import as_json, packed
from tests.support.pictures import files_of, jpeg, mp4
from timeline.home import home_page
from timeline.models import Import

pytestmark = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)

POST = {"author_id": 1, "created_at": "2020-01-01T00:00:00Z"}
Load = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path, media_folder: Path) -> Path:
    """Two users, the files that their lines may name, and one outside that they may not."""
    folder = tmp_path / "set"
    (folder / "pictures" / "deep").mkdir(parents=True)
    for number in range(5):
        (folder / "pictures" / f"{number}.jpg").write_bytes(jpeg(60 + 10 * number, 50))
    (folder / "pictures" / "deep" / "落日.jpg").write_bytes(jpeg(90, 40))
    (folder / "film.mp4").write_bytes(mp4())
    (folder / "words.jpg").write_text("no picture")
    (folder / "cut.jpg").write_bytes(jpeg(600, 400)[:3000])
    (tmp_path / "secret.jpg").write_bytes(jpeg())
    (folder / "link.jpg").symlink_to(tmp_path / "secret.jpg")
    (folder / "within.jpg").symlink_to("pictures/0.jpg")
    (folder / "linked").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.jpg")
    packed(folder / "follows.csv.gz", ["follower_id,followee_id", "2,1"])
    users(folder, "1,ann,pictures/0.jpg", "2,ben,")
    posts(folder, {"text": "plain"})
    return folder


def users(folder: Path, *lines: str) -> None:
    packed(folder / "users.csv.gz", ["id,name,avatar", *lines])


def posts(folder: Path, *several: dict[str, Any]) -> None:
    packed(folder / "posts.jsonl.gz", as_json(POST | {"id": number} | post for number, post in enumerate(several, 1)))


@pytest.fixture
def load(folder: Path) -> Load:
    def run() -> str:
        out = io.StringIO()
        call_command("load", str(folder), stdout=out, stderr=out, verbosity=0)
        return out.getvalue()

    return run


@pytest.mark.slow
@committed
def test_avatars_and_media(load: Load, folder: Path, media_folder: Path) -> None:
    posts(
        folder,
        {"text": "plain"},
        {"text": "one", "media": ["pictures/1.jpg"]},
        {"text": "", "media": [{"path": "pictures/deep/落日.jpg", "description": "落日"}, "pictures/2.jpg"]},
        {"text": "moving", "media": [{"path": "film.mp4"}]},
        {"text": "the same file again", "media": ["pictures/1.jpg"]},
    )
    assert "5 posts, 6 pictures and videos" in load()

    ann, ben = User.objects.order_by("username")
    assert (ben.avatar, ann.avatar is None) == (None, False)
    avatar = MediaFile.objects.get(use=Use.AVATAR)
    assert (ann.avatar["id"], avatar.owner_id) == (str(avatar.pk), ann.pk)
    items = list(Item.objects.order_by("id"))
    assert [item.type for item in items] == ["text", "image", "image", "video", "image"]
    for item in items:
        check_content(item.type, item.content, item.title)
        rows = list(MediaFile.objects.filter(item_id=item.pk).order_by("position"))
        assert [str(row.pk) for row in rows] == item.content.get("media", [])
        assert item.media == facts_for_json(rows)
        assert all((row.use, row.owner_id) == (Use.ITEM, ann.pk) for row in rows)
    assert [entry["description"] for entry in items[2].media if "description" in entry] == ["落日"]
    assert [(entry["width"], entry["height"]) for entry in items[2].media] == [(90, 40), (80, 50)]
    assert len(files_of(media_folder)) == sum(len(row.files) for row in MediaFile.objects.all())
    assert [len(item.media) for item in home_page(ben).items] == [1, 1, 2, 1, 0]


@committed
def test_a_data_set_without_the_columns_loads_as_ever(load: Load, folder: Path, media_folder: Path) -> None:
    packed(folder / "users.csv.gz", ["id,name", "1,ann", "2,ben"])
    assert "2 users, 1 follows, 1 posts in" in load()
    assert not media_folder.exists() or not files_of(media_folder)


WRONG_PATHS = {
    "absolute": ("/etc/passwd", "downwards"),
    "upwards": ("../secret.jpg", "downwards"),
    "upwards within": ("pictures/../../secret.jpg", "downwards"),
    "here": ("./pictures/1.jpg", "downwards"),
    "empty part": ("pictures//1.jpg", "downwards"),
    "a link out": ("link.jpg", "is a link"),
    "a link within": ("within.jpg", "is a link"),
    "a linked folder": ("linked/secret.jpg", "is a link"),
    "a file as folder": ("film.mp4/x.jpg", "is a link, or no folder"),
    "a folder": ("pictures", "no file"),
    "a pipe": ("pipe.jpg", "no file"),
    "missing": ("pictures/9.jpg", "there is no such file"),
    "a NUL": ("pictures/1.jpg\0", "no NUL"),
    "too long": ("a/" * 251, "1 to 500 characters"),
    "a name too long": ("a" * 300, "File name too long"),
    "half a pair": ("\ud800.jpg", ""),
    "no picture": ("words.jpg", "Use a picture"),
    "cut off": ("cut.jpg", "damaged"),
}


@pytest.mark.slow
@pytest.mark.parametrize("wrong", WRONG_PATHS)
def test_a_wrong_medium(load: Load, folder: Path, media_folder: Path, wrong: str) -> None:
    """The whole set is refused, and files of good lines are removed."""
    path, message = WRONG_PATHS[wrong]
    posts(folder, {"text": "good", "media": ["pictures/1.jpg"]}, {"text": "bad", "media": ["pictures/2.jpg", path]})
    refused(load, f"posts.jsonl.gz line 2: .*{message}", media_folder)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["absolute", "upwards", "a link out", "missing", "no picture"])
def test_a_wrong_avatar(load: Load, folder: Path, media_folder: Path, wrong: str) -> None:
    path, message = WRONG_PATHS[wrong]
    users(folder, "1,ann,pictures/0.jpg", f"2,ben,{path}")
    refused(load, f"users.csv.gz line 3: .*{message}", media_folder)


WRONG_MEDIA: dict[str, tuple[Any, str]] = {
    "five": ([f"pictures/{number}.jpg" for number in range(5)], "up to 4 pictures"),
    "no list": ("pictures/1.jpg", "Expected `array`"),
    "a number": ([1], r"media\[0\]|Expected"),
    "no path": ([{"description": "x"}], "missing .*`path`"),
    "a video beside a picture": (["film.mp4", "pictures/1.jpg"], "one video"),
    "a long description": ([{"path": "pictures/1.jpg", "description": "x" * 1501}], "up to 1500"),
}


@pytest.mark.slow
@pytest.mark.parametrize("wrong", WRONG_MEDIA)
def test_wrong_media(load: Load, folder: Path, media_folder: Path, wrong: str) -> None:
    media, message = WRONG_MEDIA[wrong]
    posts(folder, {"text": "bad", "media": media})
    refused(load, f"posts.jsonl.gz line 1: .*{message}", media_folder)


@pytest.mark.slow
def test_files_are_bounded(load: Load, folder: Path, media_folder: Path, settings: Any) -> None:
    settings.MEDIA_IMAGE_BYTES = 2**20
    with (folder / "huge.jpg").open("wb") as file:
        file.write(jpeg())
        file.truncate(2**20 + 1)
    posts(folder, {"text": "bad", "media": ["huge.jpg"]})
    refused(load, "line 1: .*up to 1 MB", media_folder)


def test_an_avatar_is_a_picture(load: Load, folder: Path, media_folder: Path) -> None:
    users(folder, "1,ann,film.mp4", "2,ben,")
    refused(load, "users.csv.gz line 2: .*Choose a picture", media_folder)


@pytest.mark.slow
def test_a_store_that_takes_nothing(load: Load, folder: Path, media_folder: Path) -> None:
    media_folder.mkdir()
    (media_folder / "files").write_text("no folder")
    with pytest.raises(CommandError, match=r"users\.csv\.gz line 2: .*the media store refuses it"):
        load()
    assert not User.objects.exists()


def refused(load: Load, message: str, media_folder: Path) -> None:
    with pytest.raises(CommandError, match=message) as refusal:
        load()
    assert str(refusal.value).endswith(". Nothing was loaded.")
    assert not any(model.objects.exists() for model in (User, Item, MediaFile, Import))
    assert files_of(media_folder) == [] if media_folder.exists() else True


@pytest.mark.slow
@committed
def test_after_a_refusal_the_mended_data_set_loads(load: Load, folder: Path, media_folder: Path) -> None:
    posts(folder, {"text": "x", "media": ["pictures/1.jpg"]}, {"text": "y", "media": ["missing.jpg"]})
    refused(load, "line 2", media_folder)
    (folder / "missing.jpg").write_bytes(jpeg())
    assert "3 pictures and videos" in load()
    assert Item.objects.filter(type=ItemType.IMAGE).count() == 2
