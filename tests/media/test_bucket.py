"""A real S3 server gets frozen and killed."""

import http.client
import io
import json
import logging
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone
from rest_framework.test import APIClient

from accounts import actions as accounts
from accounts import purge
from accounts.deactivation import deactivate
from accounts.export import write_archive
from accounts.models import Deletion, User
from media import actions, bucket, renaming, sweeping
from media.files import PREFIXES, StoreError, new_name
from media.models import FileMove, MediaFile
from media.serving import AT_ONCE_BYTES, PREFIX, with_media
from media.store import store
from operation import backup
from operation.doctor import disks, examination
from operation.doctor.findings import ERROR, OK, WARNING
from storage.breaker import BREAKER_SECONDS
from tests.support.api import API
from tests.support.buckets import SECRET, BucketServer, names_in
from tests.support.changed_settings import changed
from tests.support.pictures import files_of, jpeg, photo, upload
from tests.support.web import WebServer, tokens_of

pytestmark = pytest.mark.django_db(transaction=True)

MEDIA = f"{API}/me/media"
SOON = 20.0
"""Seconds for a page on a busy machine."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BucketServer]:
    server = BucketServer(tmp_path_factory.mktemp("bucket"))
    yield server
    server.stop()


@pytest.fixture
def address(server: BucketServer, settings: Any) -> Iterator[str]:
    """A new bucket, set as the site's store."""
    settings.MEDIA_STORE_SECRET_URL = server.made(f"b{time.monotonic_ns()}")
    settings.MEDIA_STORE_TIMEOUT_SECONDS = 5.0
    bucket.breaker.reset()
    yield settings.MEDIA_STORE_SECRET_URL
    bucket.breaker.reset()


def send(client: APIClient, data: bytes) -> Any:
    return client.post(MEDIA, {"file": upload(data)}, format="multipart")


def head(name: str) -> Any:
    kept: Any = store()
    return kept.client.head_object(Bucket=kept.address.name, Key=name)


def get(path: str, method: str = "GET", **headers: str) -> tuple[str, dict[str, str], bytes]:
    told: list[Any] = []
    environ = {"PATH_INFO": path, "REQUEST_METHOD": method, **headers}
    places = threading.BoundedSemaphore(1)
    answer = with_media(lambda *_: [b""], places)(environ, lambda status, found: told.extend([status, dict(found)]))
    body = b"".join(answer)
    if hasattr(answer, "close"):
        answer.close()
    assert places.acquire(blocking=False), "the place is free again"
    return told[0][:3], told[1], body


@pytest.mark.slow
def test_a_picture_comes_and_goes(
    client: APIClient, address: str, media_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    answer = send(client, jpeg())
    assert answer.status_code == 201, answer.content
    row = MediaFile.objects.get()
    assert names_in(address) == set(row.files)
    assert files_of(media_folder) == []
    status, headers, body = get(answer.json()["url"])
    assert (status, headers["Content-Type"], len(body)) == ("200", "image/jpeg", row.size)
    assert get(answer.json()["url"], HTTP_RANGE="bytes=5-9")[::2] == ("206", body[5:10])
    assert get(answer.json()["url"], HTTP_IF_NONE_MATCH=headers["ETag"])[::2] == ("304", b"")
    assert get(answer.json()["url"], "HEAD")[::2] == ("200", b"")
    item = client.post(f"{API}/items", {"type": "image", "content": {"media": [answer.json()["id"]]}}).json()
    assert client.delete(f"{API}/items/{item['id']}").status_code == 204
    assert get(answer.json()["url"])[0] == "404"
    row.refresh_from_db()
    assert names_in(address) == set(row.files)
    assert SECRET not in caplog.text
    assert SECRET not in repr(store())


@pytest.mark.long
def test_a_large_file_comes_in_parts(address: str, tmp_path: Path) -> None:
    data = bytes(range(256)) * 8192
    source, name = tmp_path / "source", f"{new_name()}.mp4"
    source.write_bytes(data)
    store().save(source, name)
    assert not source.exists()
    assert get(f"{PREFIX}{name}")[2] == data
    status, headers, body = get(f"{PREFIX}{name}", HTTP_RANGE="bytes=1000-")
    assert (status, body) == ("206", data[1000 : 1000 + AT_ONCE_BYTES])
    assert get(f"{PREFIX}{name}", HTTP_RANGE="bytes=-7")[2] == data[-7:]
    kept = head(name)
    assert (kept["ContentType"], kept["CacheControl"]) == ("video/mp4", headers["Cache-Control"])
    store().move(name, name.replace(".mp4", ".webm"))
    store().move(name, name.replace(".mp4", ".webm"))  # a missing file is skipped
    assert names_in(address) == {name.replace(".mp4", ".webm")}


@pytest.mark.long
def test_files_without_a_row_go(
    ann: User, address: str, media_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket, "LISTED_AT_ONCE", 2)
    kept = actions.upload(owner_id=ann.pk, file=upload(jpeg()))
    client, name = store().client, store().address.name  # type: ignore[attr-defined]
    prefix = kept.name[:3]
    others = {f"{prefix}readme.txt", "backup.tar", f"{prefix}{'0' * 30}.exe"}
    strays = [f"{prefix}{number:030x}.jpg" for number in range(5)]
    for key in [*others, *strays]:
        client.put_object(Bucket=name, Key=key, Body=b"x")
    assert sweeping.sweep_files(PREFIXES) == 0, "they are younger than a day"
    assert {each.name for each in store().listing(prefix[:2])} == {*kept.files, *strays}
    monkeypatch.setattr(sweeping, "ORPHAN_SECONDS", -60)
    monkeypatch.setattr(disks, "DAY_SECONDS", -60)
    monkeypatch.setattr(disks, "PREFIXES", [prefix[:2]])
    findings = {each.name: each for each in disks.media_files()}
    assert findings["media rows"].state == WARNING
    assert findings["media files"].state == OK
    assert sweeping.sweep_files(PREFIXES) == 5
    assert names_in(address) == {*kept.files, *others}
    store().delete(kept.files[1])
    assert {each.name: each for each in disks.media_files()}["media files"].state == ERROR


@pytest.mark.long
def test_export_backup_and_deletion(ann: User, address: str, media_folder: Path, tmp_path: Path) -> None:
    row = actions.upload(owner_id=ann.pk, file=upload(jpeg()))
    archive = io.BytesIO()
    write_archive(ann, archive)
    with zipfile.ZipFile(archive) as found:
        assert len(found.read(f"media/{row.pk}.jpg")) == row.size
    said = io.StringIO()
    call_command("backup", str(tmp_path / "b.zip"), stdout=said, stderr=said)
    assert "FEEDSITE_MEDIA_STORE" in said.getvalue()
    with zipfile.ZipFile(tmp_path / "b.zip") as found:
        assert not [name for name in found.namelist() if name.startswith("media/")]
        assert json.loads(found.read("manifest.json"))["left_out"][-1] == backup.MEDIA_LEFT_OUT
    accounts.delete_account(user=ann)
    Deletion.objects.update(created_at=timezone.now() - 2 * purge.STRAGGLERS, tried_at=None)
    purge.purge(ann.pk)
    assert not MediaFile.objects.exists()
    assert names_in(address) == set()


@pytest.mark.long
def test_the_files_of_a_hidden_account_are_renamed(client: APIClient, ann: User, address: str) -> None:
    first = send(client, jpeg()).json()
    client.post(f"{API}/items", {"type": "image", "content": {"media": [first["id"]]}})
    before = names_in(address)
    deactivate(user=ann)
    renaming.run(ann.pk)
    assert get(first["url"])[0] == "404"
    assert names_in(address) == set(MediaFile.objects.get().files)
    assert not before & names_in(address)


@pytest.mark.long
def test_files_of_a_backup_come_into_the_bucket(address: str, media_folder: Path, tmp_path: Path) -> None:
    name = f"{new_name()}.jpg"
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr(f"media/{name}", b"x")
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        backup._restore_media(archive, lambda *_: None)
    assert names_in(address) == {name}
    assert files_of(media_folder) == []


@pytest.mark.long
def test_a_frozen_bucket(
    server: BucketServer, client: APIClient, address: str, media_folder: Path, settings: Any
) -> None:
    settings.MEDIA_STORE_TIMEOUT_SECONDS = 0.5
    first = send(client, jpeg()).json()
    item = client.post(f"{API}/items", {"type": "image", "content": {"media": [first["id"]]}}).json()
    before = names_in(address)
    with server.frozen():
        began = time.monotonic()
        answer = send(client, jpeg(90))
        assert (answer.status_code, answer["Retry-After"]) == (503, "2")
        for _ in range(5):
            assert send(client, jpeg(90)).status_code == 503, "the breaker answers"
        assert get(first["url"])[0] == "503"
        assert time.monotonic() - began < SOON
        assert MediaFile.objects.count() == 1
        assert files_of(media_folder) == []
        assert client.delete(f"{API}/items/{item['id']}").status_code == 204
        assert FileMove.objects.count() == 1
        assert client.get(f"{API}/users/me/export").status_code == 503
        with pytest.raises(StoreError):
            store().has("aa/x.jpg")
        finding = examination.safely("media", disks.media_files)[-1]
        assert finding.state == ERROR
        assert SECRET not in finding.text
    time.sleep(BREAKER_SECONDS * 1.1)  # the bucket is not asked for this long after an error
    sweeping.sweep()
    assert not FileMove.objects.exists()
    assert get(first["url"])[0] == "404"
    row = MediaFile.objects.get()
    assert set(row.files) <= names_in(address)
    assert not before & names_in(address)
    assert send(client, jpeg(90)).status_code == 201


def multipart(data: bytes) -> tuple[bytes, str]:
    head = b'--edge\r\nContent-Disposition: form-data; name="file"; filename="a.jpg"\r\n\r\n'
    return head + data + b"\r\n--edge--\r\n", "multipart/form-data; boundary=edge"


def posted(web: WebServer, token: str, data: bytes) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=120)
    body, kind = multipart(data)
    try:
        connection.request("POST", MEDIA, body, {"Authorization": f"Token {token}", "Content-Type": kind})
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


@pytest.mark.long
def test_a_site_whose_bucket_freezes_and_dies(tmp_path: Path, ann: User) -> None:
    """Browsers fetch files from the bucket's public address. Pages work without the bucket."""
    own = BucketServer(tmp_path)
    address = own.made("photos")
    environ = {
        "FEEDSITE_MEDIA_STORE": f"{address}&public={own.url}/photos",
        "FEEDSITE_DATA_DIR": str(tmp_path / "data"),
    }
    web = WebServer(tmp_path, **environ, **changed(MEDIA_STORE_TIMEOUT_SECONDS=1))
    try:
        web.start()
        own.publish(address)
        (token,) = tokens_of([ann])
        status, _, body = posted(web, token, photo(1200, 900))
        assert status == 201, body
        url = json.loads(body)["url"]
        assert url.startswith(f"{own.url}/photos/")
        file = own.get(url.removeprefix(own.url))
        assert (file.status, file.headers["Content-Type"]) == (200, "image/jpeg")
        page = web.ask("/login")
        assert f"img-src 'self' data: https: {own.url};" in str(page.headers["Content-Security-Policy"])
        local = f"/media/{url.removeprefix(f'{own.url}/photos/')}"
        assert web.ask(local).status == 200
        with own.frozen():
            readers = [threading.Thread(target=web.ask, args=(local,)) for _ in range(12)]
            for reader in readers:
                reader.start()
            began = time.monotonic()
            status, headers, _ = posted(web, token, jpeg(90))
            assert (status, headers["Retry-After"]) == (503, "2")
            for _ in range(10):
                assert web.ask(f"{API}/timeline/home", token).status == 200
            assert time.monotonic() - began < SOON
            for reader in readers:
                reader.join()
        own.stop()
        assert posted(web, token, jpeg(90))[0] == 503
        assert web.ask(f"{API}/timeline/home", token).status == 200
        assert MediaFile.objects.count() == 1
        assert SECRET not in web.said()
        assert "does not answer" in web.said()
        assert files_of(tmp_path / "data" / "media") == []
    finally:
        web.kill()
        with suppress(ProcessLookupError):
            own.stop()
