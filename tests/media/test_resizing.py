from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from accounts import faces
from accounts.about import logo
from accounts.about.models import SiteSettings
from accounts.avatars import avatar_sources
from accounts.models import User
from items.actions import publish
from items.attachments import attachments
from items.models import Item, ItemType
from live.actions import create
from live.models import LiveSession
from media import actions, resizing
from media.files import StoreError
from media.models import MediaFile, Use
from media.objects import MediaObject, facts_for_json, media_objects, object_from_row
from media.processing import upload_at_once
from media.sources import PLACES, sources
from media.store import store
from media.tasks import make_sizes
from operation.doctor.work import picture_sizes
from operation.gauges import set_user_gauges
from runtime import metrics
from tests.support.at_once import at_once
from tests.support.pictures import animation, encoded, files_of, jpeg, mp4, opened, picture, upload

pytestmark = pytest.mark.django_db


def sent(owner: User, data: bytes) -> MediaFile:
    return actions.upload(owner_id=owner.pk, file=upload(data))


def posted(owner: User, *pictures: bytes) -> Item:
    ids = [str(sent(owner, data).pk) for data in pictures]
    return publish(sender=owner, type=ItemType.IMAGE, content={"text": "x", "media": ids})


def age() -> None:
    """Leave the media, and what shows them, as an earlier version did."""
    for row in MediaFile.objects.filter(kind="image"):
        for name in row.files[2:]:
            store().delete(name)
    MediaFile.objects.filter(kind="image").update(widths=[], is_moving=False, lacks_sizes=True)
    for row in MediaFile.objects.filter(use=Use.AVATAR):
        faces.rename_faces([row])
        logo.rename_logo(row)
    actions.finish_moves()
    for item in Item.objects.exclude(media=[]):
        item.media = [
            {name: fact for name, fact in each.items() if name not in ("widths", "is_moving")} for each in item.media
        ]
        item.save(update_fields=["media"])


def width_of(name: str) -> int:
    with store().open(name) as file:
        return opened(file.read()).width


@pytest.mark.parametrize(
    ("sides", "whole", "widths"),
    [
        ((3000, 2000), (2048, 1365), [160, 320, 640, 1280]),
        ((2000, 3000), (2000, 3000), [160, 320, 640, 1280]),
        ((1170, 2532), (1170, 2532), [160, 320, 640]),
        ((4000, 5000), (2048, 2560), [160, 320, 640, 1280]),
        ((3000, 100), (2048, 68), [160, 320, 640, 1280]),
        ((640, 480), (640, 480), [160, 320]),
        ((100, 90), (100, 90), []),
    ],
)
def test_the_sizes(ann: User, sides: tuple[int, int], whole: tuple[int, int], widths: list[int]) -> None:
    row = sent(ann, jpeg(*sides))
    assert ((row.width, row.height), row.widths, row.lacks_sizes) == (whole, widths, False)
    assert [width_of(name) for name in row.files] == [row.width, row.small_width, *widths]


def test_the_sizes_of_a_turned_picture(ann: User) -> None:
    row = sent(ann, jpeg(3000, 2000, exif=b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"))
    assert (row.width, row.height) == (2000, 3000)
    assert [width_of(name) for name in row.files[2:]] == row.widths == [160, 320, 640, 1280]


def test_sizes_of_an_animation_stand_still(ann: User) -> None:
    row = sent(ann, animation(3, size=(800, 400)))
    assert (row.is_moving, row.widths) == (True, [160, 320, 640])
    with store().open(row.files[-1]) as file:
        assert getattr(opened(file.read()), "n_frames", 1) == 1
    medium = object_from_row(row)
    assert medium.at_least(600) == f"/media/{row.name}.640.webp"
    assert medium.url not in str(sources(medium, "whole"))


def test_transparency_stays_in_sizes(ann: User) -> None:
    image = picture(800, 400).convert("RGBA")
    image.putalpha(90)
    row = sent(ann, encoded(image, "PNG"))
    for name in row.files:
        with store().open(name) as file:
            assert opened(file.read()).mode == "RGBA", name


@pytest.mark.parametrize("side", [30, 100, 1000])
def test_every_avatar_has_its_sizes(ann: User, side: int) -> None:
    """Its address alone says so."""
    user = faces.set_face(user=ann, use=Use.AVATAR, file=upload(jpeg(side, side)))
    row = MediaFile.objects.get()
    assert row.widths == [48, 96, 192]
    found = str(avatar_sources(user.avatar_url, 42))
    assert (
        found == f'src="/media/{row.name}.48.webp" srcset="/media/{row.name}.96.webp 2x, /media/{row.name}.192.webp 3x"'
    )
    for name in row.files:
        assert width_of(name) <= side


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("sides", [(4000, 3000), (3000, 4000), (3000, 3000), (3000, 1000)])
def test_every_place_has_a_file_that_is_large_enough(ann: User, name: str, sides: tuple[int, int]) -> None:
    row = MediaFile(id=1, owner_id=1, kind="image", name="ab/cd", ext="jpg", small_ext="jpg", size=1)
    row.width, row.height = 2048, round(2048 * sides[1] / sides[0])
    row.widths = [160, 320, 640, 1280]
    medium, place = object_from_row(row), PLACES[name]
    enlarged = max(1.0, sides[0] / sides[1] / place.aspect) if place.aspect else 1.0
    for drawn, times in ((place.computer, 1), (place.computer, 2), (place.phone, 3)):
        width = width_at(medium, str(sources(medium, name)), times)
        assert 1 <= width / (drawn * enlarged * times) <= 2 or width == 160


def width_at(medium: MediaObject, attributes: str, times: int) -> int:
    parts = attributes.split('"')
    offered = dict(one.rsplit(" ", 1)[::-1] for one in parts[3].split(", ")) if len(parts) > 3 else {}
    found = next((offered[f"{each}x"] for each in range(times, 1, -1) if f"{each}x" in offered), parts[1])
    return 2048 if found == medium.url else int(found.split(".")[-2])


# --- Of an earlier version -------------------------------------------------------------------------------
def test_old_pictures_get_their_sizes(ann: User, bob: User, media_folder: Path) -> None:
    item = posted(ann, jpeg(1600, 1000), animation(2, size=(400, 300)))
    now = timezone.now()
    cover_id = sent(ann, jpeg(1600, 900)).pk
    session = create(host=ann, title="x", starts_at=now + timedelta(days=1), now=now, cover_id=cover_id)
    faces.set_face(user=bob, use=Use.AVATAR, file=upload(jpeg(500, 500)))
    logo.set_logo(file=upload(jpeg(500, 500)))
    unused = sent(ann, jpeg(700, 700))
    age()
    item.refresh_from_db()
    (first, _moving) = media_objects(item.media)
    assert str(sources(first, "one")) == f'src="{first.preview_url}" srcset="{first.url} 2x"'
    make_sizes()
    item.refresh_from_db()
    assert [one.widths for one in media_objects(item.media)] == [[160, 320, 640, 1280], [160, 320]]
    assert [one.is_moving for one in media_objects(item.media)] == [False, True]
    cover = LiveSession.objects.get(pk=session.pk).cover
    assert cover is not None
    assert cover["widths"] == [160, 320, 640, 1280]
    bob.refresh_from_db()
    assert ".48.webp" in str(avatar_sources(bob.avatar_url, 42))
    facts = SiteSettings.objects.get().logo
    assert facts is not None
    assert facts["widths"] == [48, 96, 192]
    assert set(MediaFile.objects.filter(lacks_sizes=True)) == {unused}
    actions.finish_moves()
    there = {name for row in MediaFile.objects.all() for name in row.files}
    assert {str(path.relative_to(media_folder / "files")) for path in files_of(media_folder)} == there


def test_it_pauses_and_goes_on(ann: User, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row for number in range(3) for row in MediaFile.objects.filter(item_id=posted(ann, jpeg(400 + number)).pk)]
    age()
    settings.MEDIA_SIZES_SECONDS = 0
    assert resizing.make_sizes() == 0
    settings.MEDIA_SIZES_SECONDS = 20
    monkeypatch.setattr(resizing, "BATCH", 1)
    monkeypatch.setattr(resizing.sizes_made, "send", die)
    with pytest.raises(KeyboardInterrupt):
        resizing.make_sizes()
    assert resizing.lacking_sizes().count() == 3, "facts were not written, so the picture is made again"
    monkeypatch.undo()
    assert resizing.make_sizes() == 3
    assert resizing.make_sizes() == 0
    assert all(row.widths for row in MediaFile.objects.filter(pk__in=[row.pk for row in rows]))


def test_an_operator_sees_how_many_are_left(ann: User, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> str:
        set_user_gauges()
        return ", ".join(finding.text for finding in picture_sizes())

    for number in range(3):
        posted(ann, jpeg(400 + number))
    assert (told(), gauge()) == ("", 0)
    age()
    today = f"{timezone.now():%Y-%m-%d}"
    assert (told(), gauge()) == (f"3 pictures are without, the newest from {today}", 3)
    settings.MEDIA_SIZES_SECONDS = 0
    monkeypatch.setattr(resizing, "MOST_COUNTED", 2)
    words = f"2 or more pictures are without, the newest from {today}; paused by FEEDSITE_MEDIA_SIZES_SECONDS=0"
    assert (told(), gauge()) == (words, 2)


def gauge() -> float:
    return metrics.registry.get_sample_value("feedsite_pictures_unsized") or 0


def die(*_args: object, **_facts: object) -> None:
    raise KeyboardInterrupt


def test_a_lost_or_damaged_file_is_not_tried_again(ann: User, media_folder: Path) -> None:
    lost, broken = (posted(ann, jpeg(400 + number)) for number in range(2))
    age()
    store().delete(MediaFile.objects.get(item_id=lost.pk).files[0])
    (media_folder / "files" / MediaFile.objects.get(item_id=broken.pk).files[0]).write_bytes(b"\xff\xd8\xff")
    assert resizing.make_sizes() == 2
    assert not resizing.lacking_sizes().exists()
    assert not MediaFile.objects.exclude(widths=[]).exists()


def test_a_silent_store_is_tried_again(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    posted(ann, jpeg(400))
    age()

    def fail(*_args: object) -> None:
        raise StoreError("silent")

    monkeypatch.setattr(store(), "save", fail)
    assert resizing.make_sizes() == 0
    monkeypatch.undo()
    assert resizing.make_sizes() == 1


@pytest.mark.django_db(transaction=True)
def test_a_picture_that_is_renamed_meanwhile(ann: User, media_folder: Path) -> None:
    """No file stays under a name that was withdrawn."""
    item = posted(ann, jpeg(1600, 1000))
    age()
    at_once(resizing.make_sizes, lambda: rename_often(item))
    resizing.make_sizes()
    actions.finish_moves()
    row = MediaFile.objects.get()
    assert row.widths == [160, 320, 640, 1280]
    item.refresh_from_db()
    assert media_objects(item.media)[0].name == row.name
    assert {str(path.relative_to(media_folder / "files")) for path in files_of(media_folder)} == set(row.files)


def rename_often(item: Item) -> None:
    for _ in range(5):
        attachments.rename_files([item.pk])


def test_old_videos_get_posters(ann: User) -> None:
    """Also where they are shown. One that cannot be read is asked once."""
    ids = [str(upload_at_once(owner_id=ann.pk, file=upload(data)).pk) for data in (mp4(), mp4(secret=b"x" * 17))]
    posts = [publish(sender=ann, type=ItemType.VIDEO, content={"media": [one]}) for one in ids]
    for row, post in zip(MediaFile.objects.order_by("pk"), posts, strict=True):
        for name in row.files[1:]:
            store().delete(name)
        row.small_ext, row.widths, row.blurhash = "", [], ""
        row.save()
        post.media = facts_for_json([row])
        post.save(update_fields=["media"])
    store().delete(MediaFile.objects.get(pk=ids[1]).files[0])
    assert resizing.make_sizes() == 2
    found = MediaFile.objects.get(pk=ids[0])
    assert (found.small_width, found.files[1:]) == (64, [f"{found.name}.small.jpg"])
    assert all(map(store().has, found.files))
    posts[0].refresh_from_db()
    assert posts[0].media == facts_for_json([found])
    assert MediaFile.objects.get(pk=ids[1]).failure == "poster"
    assert resizing.make_sizes() == 0
