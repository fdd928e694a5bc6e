"""Real processes get killed and disks fill up. Sweeps must remove what is left."""

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from accounts.models import User
from media import sweeping
from media.files import PREFIXES
from media.models import FileMove, MediaFile
from media.store import store
from tests.support.api import API
from tests.support.disks import on_small_disk
from tests.support.effort import some, tries
from tests.support.pictures import files_of, mp4, photo
from tests.support.sites import until
from tests.support.streams import database_url
from tests.support.web import WebServer, tokens_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

DAY = timedelta(days=1, minutes=1)
MEDIA = f"{API}/me/media"
PATIENCE = 60.0
"""Seconds for a step of another process."""
PATTERNS = {"while it is decoded": "incoming/*.source", "while it is kept": "files/*/*", "a video": "files/*/*"}
"""Files that show where an upload is."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[WebServer]:
    server = WebServer(tmp_path, FEEDSITE_DATA_DIR=str(tmp_path))
    server.start()
    yield server
    server.kill()


def request(token: str, data: bytes) -> bytes:
    body = b'--edge\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' + data + b"\r\n--edge--\r\n"
    head = [
        f"POST {MEDIA} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Token {token}",
        f"Content-Length: {len(body)}",
        "Content-Type: multipart/form-data; boundary=edge",
        "Connection: close",
    ]
    return "\r\n".join([*head, "", ""]).encode() + body


def sweep_a_day_later(folder: Path) -> None:
    then = time.time() - DAY.total_seconds()
    for path in files_of(folder):
        os.utime(path, (then, then))
    MediaFile.objects.update(created_at=timezone.now() - DAY)
    sweeping.sweep_incoming()
    sweeping.sweep_files(PREFIXES)
    for row in MediaFile.objects.all():
        assert all(map(store().has, row.files)), "a row without its files"
    sweeping.sweep()


def anything(folder: Path, pattern: str) -> Callable[[], bool]:
    return lambda: any(path.is_file() for path in folder.glob(pattern))


def processes(folder: Path) -> Iterator[Path]:
    """The processes of this data folder. The decoder outlives its site."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended
            if f"FEEDSITE_DATA_DIR={folder}".encode() in (process / "environ").read_bytes().split(b"\0"):
                yield process


def takes_bytes(folder: Path) -> bool:
    """Whether a process of the site has written to an unnamed file."""
    for process in processes(folder):
        for handle in (process / "fd").iterdir():
            with suppress(OSError):  # it was closed
                if (
                    str(handle.readlink()).startswith(f"{folder}/")
                    and handle.stat().st_size
                    and not handle.stat().st_nlink
                ):
                    return True
    return False


@pytest.mark.long
@pytest.mark.parametrize("stage", some(1, ["while it is decoded", "while it is kept", "half of the body", "a video"]))
def test_a_killed_process_leaves_nothing(
    ann: User, site: WebServer, media_folder: Path, tmp_path: Path, stage: str
) -> None:
    (token,) = tokens_of([ann])
    data = request(token, mp4() if stage == "a video" else photo())
    for _ in range(tries(1, 5)):
        if site.process is None:
            site.start()
        with socket.create_connection(("127.0.0.1", site.port), timeout=PATIENCE) as line:
            if stage == "half of the body":
                line.sendall(data[: len(data) // 2])
                until(lambda: takes_bytes(tmp_path), PATIENCE)
            else:
                line.sendall(data)
                until(anything(media_folder, PATTERNS[stage]), PATIENCE)
            site.kill()
        until(lambda: not any(processes(tmp_path)), PATIENCE)
        sweep_a_day_later(media_folder)
        assert files_of(media_folder) == []
        assert not MediaFile.objects.exists()
        assert not FileMove.objects.exists()


FULL = """
import io, json, os, sys
from pathlib import Path
from feedsite.wsgi import application
from django.db import connection
from media.decoder import decoder
from media.models import MediaFile

def left():
    files = [path for path in Path(FOLDER).rglob("*") if path.is_file()]
    return [str(path) for path in files if path.suffix != ".lock" and path.name != "filler"]

def ask(body, path="/api/v1/me/media"):
    told = []
    environ = {
        "REQUEST_METHOD": "POST", "PATH_INFO": path, "SERVER_NAME": "localhost", "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1", "REMOTE_ADDR": "127.0.0.1", "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body)), "wsgi.errors": sys.stderr,
        "CONTENT_TYPE": "multipart/form-data; boundary=edge", "HTTP_HOST": "localhost",
        "HTTP_AUTHORIZATION": "Token " + TOKEN,
    }
    answer = application(environ, lambda status, headers, info=None: told.extend([status, dict(headers)]))
    text = b"".join(answer)
    if hasattr(answer, "close"):
        answer.close()
    return int(told[0][:3]), told[1].get("Retry-After"), text.decode()

def room(size):
    fill(FOLDER)
    os.truncate(FOLDER + "/filler", max(0, os.path.getsize(FOLDER + "/filler") - size))

body = Path(BODY).read_bytes()
found, kept = [], 0
for size in range(0, 520_000, STEP):
    room(size)
    status, retry, text = ask(body)
    kept = sum(len(row.files) for row in MediaFile.objects.all())
    found.append([status, retry, text[:300], left()[kept:]])
    make_room(FOLDER)
    if kept:
        break
print(json.dumps(found))
decoder.stop()
"""


@pytest.mark.long
def test_a_full_disk_at_each_step(ann: User, tmp_path: Path) -> None:
    """Room for nothing, the body, the upload, a picture without preview: 503 until everything fits."""
    (token,) = tokens_of([ann])
    folder = tmp_path / "media"
    folder.mkdir()
    (tmp_path / "body").write_bytes(request(token, photo(640, 480)).partition(b"\r\n\r\n")[2])
    values = {"TOKEN": token, "BODY": str(tmp_path / "body"), "STEP": tries(40_960, 4_096)}
    code = "".join(f"{name} = {value!r}\n" for name, value in values.items()) + FULL
    environ = os.environ | {
        "FEEDSITE_DATABASE_URL": database_url(),
        "FEEDSITE_DATA_DIR": str(tmp_path),
        "FEEDSITE_RATE_SCALE": "1000",
        "DJANGO_SETTINGS_MODULE": "feedsite.settings",
    }
    done = on_small_disk(folder, code, environ)
    assert done.returncode == 0, done.stderr[-5000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert [status for status, *_ in found[:-1]] == [503] * (len(found) - 1), found
    assert len(found) > 3, found
    assert found[-1][0] == 201, found
    assert {retry for _, retry, *_ in found[:-1]} == {"2"}
    assert [left for *_, left in found] == [[]] * len(found), "nothing is half there"
    assert MediaFile.objects.count() == 1
    with suppress(FileNotFoundError):
        assert files_of(folder) == [], "the disk was the process's own"
