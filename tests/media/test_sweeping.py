import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import User
from feedsite import celery
from media import actions, sweeping
from media.files import PREFIXES, StoreError, new_name
from media.models import FileMove, MediaFile
from media.store import store
from tests.support.at_once import at_once
from tests.support.pictures import files_of, jpeg, upload
from tests.support.workers import Workers

pytestmark = pytest.mark.django_db(transaction=True)
DAY = timedelta(days=1, minutes=1)


@pytest.fixture
def medium(ann: User) -> MediaFile:
    return actions.upload(owner_id=ann.pk, file=upload(jpeg()))


def age(path: Path) -> None:
    then = time.time() - DAY.total_seconds()
    os.utime(path, (then, then))


def test_what_nothing_uses_goes_after_a_day(medium: MediaFile, media_folder: Path) -> None:
    sweeping.sweep()
    assert len(files_of(media_folder)) == 2
    MediaFile.objects.update(created_at=timezone.now() - DAY)
    sweeping.sweep()
    assert not MediaFile.objects.exists()
    assert files_of(media_folder) == []


def test_used_media_stay(medium: MediaFile, media_folder: Path) -> None:
    MediaFile.objects.update(created_at=timezone.now() - DAY, use="avatar", key="one")
    sweeping.sweep()
    assert MediaFile.objects.get().key == ""
    assert len(files_of(media_folder)) == 2


def test_a_medium_that_is_used_while_the_sweep_looks_stays(medium: MediaFile, media_folder: Path) -> None:
    MediaFile.objects.update(created_at=timezone.now() - DAY)

    def used_before_the_lock(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "media_mediafile" in sql and "FOR UPDATE" in sql:
            MediaFile.objects.update(use="item")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(used_before_the_lock):
        sweeping.sweep()
    assert MediaFile.objects.get().use == "item"
    assert len(files_of(media_folder)) == 2


def test_files_without_a_row_go_after_a_day(medium: MediaFile, media_folder: Path) -> None:
    for path in files_of(media_folder):
        age(path)
    old, new = (store().root / f"{new_name()}.jpg" for _ in range(2))  # type: ignore[attr-defined]
    left = media_folder / "incoming" / "left.source"
    for path in (old, new, left):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    age(old)
    age(left)
    assert sweeping.sweep_files(PREFIXES) == 1
    assert sweeping.sweep_incoming() == 1
    assert new.exists()
    assert len(files_of(media_folder)) == 3


def test_files_that_a_move_made_are_known(medium: MediaFile, media_folder: Path) -> None:
    """The file has moved. Only the FileMove row names it."""
    to = new_name()
    names = medium.files
    FileMove.objects.create(name=medium.name, to=to, ext=medium.ext, small_ext=medium.small_ext)
    medium.delete()
    store().move(names[0], f"{to}.{medium.ext}")
    assert sweeping.orphaned_names([f"{to}.{medium.ext}", names[1], "ab/unknown.jpg"]) == ["ab/unknown.jpg"]


def test_renamed_files_are_withdrawn_at_once(medium: MediaFile, media_folder: Path) -> None:
    before = set(files_of(media_folder))
    with transaction.atomic():
        actions.rename([medium])
    after = set(files_of(media_folder))
    assert len(after) == 2
    assert not after & before
    medium.refresh_from_db()
    assert {str(path.relative_to(media_folder / "files")) for path in after} == set(medium.files)


def test_what_the_store_refuses_is_done_later(
    medium: MediaFile, media_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(name: str) -> None:
        raise StoreError("away")

    with monkeypatch.context() as patch:
        patch.setattr(store(), "delete", away)
        assert actions.remove_unused(owner_id=medium.owner_id, media_id=medium.pk)
    assert FileMove.objects.count() == 1
    for path in files_of(media_folder):
        age(path)
    assert sweeping.sweep_files(PREFIXES) == 0  # moves name them
    sweeping.sweep()
    assert not FileMove.objects.exists()
    assert files_of(media_folder) == []


def test_files_renamed_again_before_their_move_are_not_lost(
    medium: MediaFile, media_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(name: str, to: str) -> None:
        raise StoreError("away")

    def rename() -> None:
        with transaction.atomic():
            actions.rename([medium])

    with monkeypatch.context() as patch:
        patch.setattr(store(), "move", away)
        rename()
    rename()  # the store is back, and is asked for the second move first
    assert [name for name in medium.files if not store().has(name)] == medium.files
    assert sweeping.sweep() == 2
    assert {str(path.relative_to(media_folder / "files")) for path in files_of(media_folder)} == set(medium.files)
    with monkeypatch.context() as patch:
        patch.setattr(store(), "move", away)
        rename()
    actions.remove_unused(owner_id=medium.owner_id, media_id=medium.pk)
    sweeping.sweep()
    assert files_of(media_folder) == []


def test_renames_and_sweeps_at_once(medium: MediaFile, media_folder: Path) -> None:
    def rename() -> None:
        for _ in range(10):
            with transaction.atomic():
                actions.rename([MediaFile.objects.select_for_update().get(pk=medium.pk)])

    assert at_once(rename, rename, *[lambda: [sweeping.sweep() for _ in range(20)]] * 2)[:2] == [None, None]
    while FileMove.objects.exists():
        assert sweeping.sweep()
    medium.refresh_from_db()
    assert {str(path.relative_to(media_folder / "files")) for path in files_of(media_folder)} == set(medium.files)


def test_many_moves_are_done_by_a_task_at_once(ann: User, media_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers({"media.finish_moves": actions.finish_moves})
    monkeypatch.setattr(celery.app, "send_task", workers.send_task)
    monkeypatch.setattr(actions, "FAST", 1)
    monkeypatch.setattr(actions, "MOVES", 2)
    rows = [actions.upload(owner_id=ann.pk, file=upload(jpeg())) for _ in range(4)]
    with transaction.atomic():
        actions.delete_media(rows)
    assert FileMove.objects.count() == 3
    workers.work()
    assert not FileMove.objects.exists()
    assert files_of(media_folder) == []


def test_a_move_that_always_fails_holds_up_no_other(ann: User, medium: MediaFile, media_folder: Path) -> None:
    other = actions.upload(owner_id=ann.pk, file=upload(jpeg()))
    stuck, free = (
        FileMove.objects.create(name=one.name, ext=one.ext, small_ext=one.small_ext) for one in (medium, other)
    )
    file = media_folder / "files" / medium.files[0]
    file.unlink()
    file.mkdir()  # cannot be removed as a file
    assert actions.move_files([stuck.pk, free.pk]) == 1
    assert [move.pk for move in FileMove.objects.all()] == [stuck.pk]
    assert not any((media_folder / "files" / name).exists() for name in other.files)


def test_the_turns_of_a_day_look_at_every_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """If an hour is too short for all, each day starts elsewhere."""
    looked: list[str] = []
    monkeypatch.setattr(sweeping, "sweep_files", lambda prefixes: looked.extend(prefixes) or 0)
    firsts = set()
    for day in range(1, 12):
        looked.clear()
        for hour in range(24):
            now = datetime(2026, 1, day, hour, tzinfo=UTC)
            monkeypatch.setattr(sweeping, "database_now", lambda now=now: now)
            sweeping.sweep_hourly_share()
        assert sorted(looked) == PREFIXES
        firsts.add(looked[0])
    assert len(firsts) == 11


def test_a_turn_looks_at_so_many_files_and_no_more(media_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "FILES", 3)
    monkeypatch.setattr(actions, "MOVES", 2)
    for number in range(5):
        path = media_folder / "files" / f"a{number}" / f"{number:030x}.jpg"
        path.parent.mkdir(parents=True)
        path.touch()
        age(path)
    assert sweeping.sweep_files(PREFIXES) == 3
    assert sweeping.sweep_files(PREFIXES) == 2
