from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from accounts.models import User
from community.archives import importing
from community.archives.models import ArchiveImport, ImportState
from items.models import Item
from tests.support.archives import boost, files_of, note, zipped
from tests.support.factories import UserFactory
from tests.support.pages import logged_in
from web import uploads

pytestmark = pytest.mark.django_db

PAGE = "/settings/import-archive"


@pytest.fixture
def user() -> User:
    return UserFactory(username="ann")


@pytest.fixture
def page(user: User) -> Client:
    return logged_in(user)


def sent(page: Client, data: bytes, **fields: str) -> Any:
    file = SimpleUploadedFile("archive.zip", data)
    return page.post(PAGE, {"file": file, "audience": "kept", **fields})


@pytest.mark.slow
def test_an_archive_goes_from_the_page_to_the_profile(page: Client, user: User, folder: Path) -> None:
    """Also with the upload in a file of its own, as web.uploads stores it."""
    answer = sent(page, zipped(files_of([note(1, "<p>hello</p>"), boost(2)])).read())
    assert (answer.status_code, answer["Location"]) == (302, PAGE)
    assert "Unpacking the archive" in page.get(PAGE).content.decode()
    made = ArchiveImport.objects.get()
    assert (made.is_for_self, made.takes_profile) == (False, False)
    assert importing.run(made.pk)
    shown = page.get(PAGE).content.decode()
    assert "2 of 2 entries read: 1 post imported." in shown
    chinese = page.get(PAGE, headers={"Accept-Language": "zh-hans"}).content.decode()
    assert "已读取 2 / 2 条：已导入 1 条帖子。" in chinese  # noqa: RUF001 (Chinese)
    assert "1 \u00d7 a boost of someone" in shown
    assert "hello" in page.get("/@ann").content.decode()


def test_the_choices_of_the_form(page: Client, user: User) -> None:
    sent(page, zipped(files_of([note(1)])).read(), audience="self", profile="on")
    made = ArchiveImport.objects.get()
    assert (made.is_for_self, made.takes_profile) == (True, True)
    importing.run(made.pk)
    assert Item.objects.get().visibility == "self"


def test_a_form_without_a_file_or_with_a_wrong_choice(page: Client) -> None:
    assert page.post(PAGE, {"audience": "kept"}).status_code == 422
    assert sent(page, b"x", audience="all").status_code == 422
    assert sent(page, b"").status_code == 422
    assert not ArchiveImport.objects.exists()


def test_a_second_archive_waits_for_the_first(page: Client) -> None:
    sent(page, b"x")
    answer = sent(page, b"x")
    assert answer.status_code == 422
    assert "still importing" in answer.content.decode()


def test_a_sixth_archive_of_a_day_is_refused(page: Client) -> None:
    for _ in range(5):
        sent(page, b"x")
        ArchiveImport.objects.filter(finished_at=None).update(finished_at="2020-01-01T00:00:00Z")
    assert "five archives a day" in sent(page, b"x").content.decode()


def test_a_full_disk_is_told(page: Client, settings: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings.IMPORTS_DIR = tmp_path / "file"
    answer = sent(page, b"x")
    assert answer.status_code == 422
    assert "no space" in answer.content.decode()


@pytest.mark.slow
def test_an_import_is_stopped_by_its_owner_alone(page: Client, user: User) -> None:
    sent(page, b"x")
    made = ArchiveImport.objects.get()
    other = logged_in(UserFactory())
    assert other.post(f"{PAGE}/{made.pk}/stop").status_code == 404
    assert Client().post(f"{PAGE}/{made.pk}/stop").status_code in (302, 403)
    assert page.get(f"{PAGE}/{made.pk}/stop").status_code == 405
    assert page.post(f"{PAGE}/{made.pk + 1}/stop").status_code == 404
    assert page.post(f"{PAGE}/{10**18}/stop").status_code == 404
    assert ArchiveImport.objects.get().finished_at is None
    assert page.post(f"{PAGE}/{made.pk}/stop")["Location"] == PAGE
    assert ArchiveImport.objects.get().state == ImportState.CANCELLED
    assert "<article" not in other.get(PAGE).content.decode()


def test_a_page_asks_again_while_an_import_runs(page: Client) -> None:
    sent(page, b"x")
    part = page.get(PAGE, headers={"HX-Request": "true", "HX-Target": "imports"}).content.decode()
    assert 'hx-trigger="every 2s"' in part
    assert "<html" not in part
    ArchiveImport.objects.update(finished_at="2020-01-01T00:00:00Z", state="failed", failure="damaged")
    shown = page.get(PAGE).content.decode()
    assert 'hx-trigger="every 2s"' not in shown
    assert "damaged or incomplete" in shown


def test_words_of_an_archive_are_no_html(page: Client, user: User) -> None:
    bad = "https://x.example/<script>alert(1)</script>"
    sent(page, zipped(files_of([note(1, id=bad, inReplyTo="https://y.example/1")])).read())
    importing.run(ArchiveImport.objects.get().pk)
    assert "<script>alert" not in page.get(PAGE).content.decode()


def test_bodies_are_as_long_as_an_archive_may_be(settings: Any) -> None:
    settings.ARCHIVE_BYTES = 7 << 20
    assert uploads.most_bytes(PAGE, "POST")[0] == (7 << 20) + uploads.ROOM_BYTES
    assert uploads.most_bytes(PAGE, "PUT")[0] == uploads.most_bytes(f"{PAGE}/1/stop", "POST")[0] == 0


def test_an_upload_is_moved_and_not_copied(user: User, settings: Any, tmp_path: Path, folder: Path) -> None:
    from community.archives.actions import begin

    settings.MEDIA_INCOMING = tmp_path / "incoming"
    upload = uploads.SentFile("a.zip", None, None)
    upload.write(zipped(files_of([note(1)])).read())
    upload.flush()
    made = begin(user=user, file=upload)  # type: ignore[arg-type]  # it has all of a file that is asked for
    assert (folder / made.folder / "archive").stat().st_nlink == 2
    upload.close()
    assert importing.run(made.pk)
