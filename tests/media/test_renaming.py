"""The files of a hidden account are at no address that anybody has seen."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from accounts import faces
from accounts.deactivation import deactivate, reactivate
from accounts.models import User
from feedsite import celery
from items import actions as items
from items import scheduling
from items.attachments import hiding
from items.models import Item
from live import actions as live
from media import actions, renaming, sweeping
from media.files import StoreError
from media.models import FileMove, MediaFile, OwnerRename, Use
from media.signals import owner_hidden
from media.store import store
from moderation import senders
from storage.claims import CLAIM_LIFE
from tests.support.at_once import at_once
from tests.support.factories import UserFactory
from tests.support.picture_posts import posted, sent
from tests.support.pictures import files_of, jpeg, upload
from tests.support.workers import Workers

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media_folder")]


@pytest.fixture(autouse=True)
def workers(monkeypatch: pytest.MonkeyPatch) -> Workers:
    found = Workers({each.name: each.run for each in (renaming.run, actions.finish_moves)}, drops_others=True)
    monkeypatch.setattr(celery.app, "send_task", found.send_task)
    return found


def facts(owner: User) -> dict[str, str]:
    """The name of each medium by id, as what shows it has it."""
    owner.refresh_from_db()
    shown = [one for item in Item.objects.filter(sender=owner) for one in item.media]
    shown += [session.cover for session in owner.live_sessions.all() if session.cover]
    shown += [face for face in (owner.avatar, owner.banner) if face]
    return {one["id"]: one["name"] for one in shown}


def on_disk(folder: Path) -> set[str]:
    return {str(path.relative_to(folder / "files")) for path in files_of(folder)}


def consistent(owner: User, folder: Path) -> None:
    rows = {str(row.pk): row for row in MediaFile.objects.all()}
    assert {number: rows[number].name for number in facts(owner)} == facts(owner)
    assert on_disk(folder) == {name for row in rows.values() for name in row.files}


@pytest.fixture
def rich(ann: User) -> User:
    """Ann has a medium of each use."""
    posted(ann, sent(ann), sent(ann))
    items.hold(item=posted(ann, sent(ann)), reasons=["x"])
    soon = timezone.now() + timedelta(hours=1)
    live.create(host=ann, title="soon", starts_at=soon, now=timezone.now(), cover_id=int(sent(ann)))
    for use in (Use.AVATAR, Use.BANNER):
        faces.set_face(user=ann, use=use, file=upload(jpeg(500, 200)))
    scheduling.schedule(sender=ann, publish_at=soon, type="image", content={"media": [sent(ann)]})
    sent(ann)
    assert set(MediaFile.objects.values_list("use", flat=True)) == set(Use.values) - {Use.LINK, Use.AGAIN}
    return ann


def test_all_files_of_a_suspended_account_are_renamed(rich: User, workers: Workers, media_folder: Path) -> None:
    other: User = UserFactory()
    kept = posted(other, sent(other))
    theirs = {name for row in MediaFile.objects.filter(owner_id=other.pk) for name in row.files}
    before = on_disk(media_folder)
    assert senders.ban(user=rich, by=None)
    workers.work()
    assert before & on_disk(media_folder) == theirs
    consistent(rich, media_folder)
    names = on_disk(media_folder)
    assert senders.unban(user=rich, by=None)
    workers.work()
    assert on_disk(media_folder) == names, "what was not public needs no third name"
    assert not OwnerRename.objects.exists()
    consistent(rich, media_folder)
    assert Item.objects.get(pk=kept.pk).media == kept.media


def test_hidden_deleted_and_removed_media_stay_as_they_were(ann: User, workers: Workers, media_folder: Path) -> None:
    hidden, deleted = posted(ann, sent(ann), text="words"), posted(ann, sent(ann))
    hiding.hide_media(item=hidden)
    items.delete(item=deleted)
    before = list(MediaFile.objects.order_by("pk").values())
    deactivate(user=ann)
    workers.work()
    assert list(MediaFile.objects.order_by("pk").values()) == before
    reactivate(user=ann)
    items.restore(item=deleted)
    consistent(ann, media_folder)


def test_a_large_account_takes_turns_and_goes_on_after_a_kill(
    ann: User, workers: Workers, media_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renaming, "BATCH", 2)
    monkeypatch.setattr(renaming, "ROUNDS", 2)
    for _ in range(6):
        posted(ann, sent(ann), sent(ann))
    before = on_disk(media_folder)
    deaths = []

    def die(media: list[MediaFile], **kwargs: Any) -> None:
        if len(deaths) < 3 and media[0].pk not in deaths:
            deaths.append(media[0].pk)
            raise SystemExit

    owner_hidden.connect(die)
    try:
        deactivate(user=ann)
        for _ in range(3):
            with pytest.raises(SystemExit):
                workers.work()
            workers.queue.clear()
            renaming.enqueue_unfinished()
            assert workers.queue == [], "the dead worker's claim still holds"
            then = timezone.now() - CLAIM_LIFE - timedelta(seconds=1)
            OwnerRename.objects.update(tried_at=then, created_at=then)
            renaming.enqueue_unfinished()
    finally:
        owner_hidden.disconnect(die)
    workers.work()
    assert not before & on_disk(media_folder)
    consistent(ann, media_folder)
    assert not OwnerRename.objects.exists()


def test_what_was_being_uploaded_is_met(ann: User, workers: Workers, media_folder: Path) -> None:
    deactivate(user=ann)
    workers.work()
    late = posted(ann, sent(ann))
    before = on_disk(media_folder)
    workers.work()
    assert on_disk(media_folder) == before
    OwnerRename.objects.update(created_at=timezone.now() - renaming.STRAGGLERS - timedelta(seconds=1))
    renaming.enqueue_unfinished()
    workers.work()
    assert not before & on_disk(media_folder)
    assert late.media != Item.objects.get(pk=late.pk).media
    consistent(ann, media_folder)
    assert not OwnerRename.objects.exists()


def test_an_account_that_returns_and_is_hidden_again_is_renamed_from_its_first_file(
    ann: User, workers: Workers, media_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first worker is in its walk meanwhile, and must not pass its place on."""
    monkeypatch.setattr(renaming, "BATCH", 1)
    for _ in range(4):
        posted(ann, sent(ann))
    seen: list[set[str]] = []

    def return_and_go(media: list[MediaFile], **kwargs: Any) -> None:
        if not seen and media[0].pk == MediaFile.objects.order_by("pk")[2].pk:
            reactivate(user=ann)
            seen.append(on_disk(media_folder))
            deactivate(user=ann)

    owner_hidden.connect(return_and_go)
    try:
        deactivate(user=ann)
        workers.work()
    finally:
        owner_hidden.disconnect(return_and_go)
    [seen_names] = seen
    assert not seen_names & on_disk(media_folder)
    consistent(ann, media_folder)


def test_a_store_that_is_away_is_asked_again(
    rich: User, workers: Workers, media_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(name: str, to: str) -> None:
        raise StoreError("away")

    before = on_disk(media_folder)
    with monkeypatch.context() as patch:
        patch.setattr(store(), "move", away)
        deactivate(user=rich)
        workers.work()
        reactivate(user=rich)
        deactivate(user=rich)  # each file has two moves now
        workers.work()
    assert before <= on_disk(media_folder)
    sweeping.sweep()
    workers.work()
    assert not FileMove.objects.exists()
    assert not before & on_disk(media_folder)
    consistent(rich, media_folder)


def test_moderators_and_members_at_the_same_time(
    ann: User, media_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renaming, "BATCH", 3)
    shown = [posted(ann, sent(ann), sent(ann), text="words") for _ in range(6)]
    unused = [sent(ann) for _ in range(6)]
    before = on_disk(media_folder)
    deactivate(user=ann)

    def moderate() -> None:
        for item in shown:
            hiding.hide_media(item=item)
            items.hold(item=item, reasons=["x"])
            items.approve(item=item)
            hiding.show_media(item=item)
        connection.close()

    def post() -> None:
        for number in unused:
            posted(ann, number)

    def change_face() -> None:
        for _ in range(3):
            faces.set_face(user=ann, use=Use.AVATAR, file=upload(jpeg()))

    assert at_once(lambda: renaming.run(ann.pk), moderate, post, change_face) == [None] * 4
    while FileMove.objects.exists():
        assert sweeping.sweep()
    consistent(ann, media_folder)
    assert not before & on_disk(media_folder)


def test_a_deleted_account_leaves_no_work(ann: User, workers: Workers) -> None:
    posted(ann, sent(ann))
    deactivate(user=ann)
    actions.purge(owner_id=ann.pk, limit=100)
    OwnerRename.objects.update(created_at=timezone.now() - renaming.STRAGGLERS - timedelta(seconds=1))
    workers.work()
    assert not OwnerRename.objects.exists()
