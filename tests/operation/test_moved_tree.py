"""A running program reads nothing of the tree that it was started from: an upgrade replaces it."""

import http.client
import json
import os
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
import requests as httplib
from django.conf import settings
from django.contrib import admin
from django.contrib.staticfiles.finders import get_finders
from django.test import Client
from django.utils import timezone

from accounts.actions import issue_token
from accounts.mail.models import Letter
from accounts.models import User
from community.archives import actions
from community.archives.models import ArchiveImport
from feedsite import celery
from media.models import MediaFile
from runtime.embedded import wait_for
from tests.support import scenario
from tests.support.addresses import client_patterns
from tests.support.archives import files_of, note, zipped
from tests.support.factories import ItemFactory, UserFactory
from tests.support.pictures import jpeg, mp4
from tests.support.sites import Worker
from tests.support.streams import StreamServer, database_url
from tests.support.web import Queueing, WebServer

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]

STREAM = "/api/v1/stream"
"""Its own process serves it."""


def opened_later(program: str, jobs: list[Any], folder: Path) -> dict[str, Any]:
    environ = os.environ | {
        "FEEDSITE_DATABASE_URL": database_url(),
        "FEEDSITE_SECRET_KEY": settings.SECRET_KEY,
        "FEEDSITE_ALLOWED_HOSTS": "testserver",
        "FEEDSITE_RATE_SCALE": "100000",
        "FEEDSITE_EMAIL_URL": f"filemail://{folder}",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.opened_later", program],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        cwd=settings.BASE_DIR,
        env=environ,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    print(done.stderr[-5000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module", autouse=True)
def _manifest() -> None:
    """Static files by their own names: to collect them takes seconds."""
    manifest = Path(settings.STATIC_ROOT) / "staticfiles.json"
    manifest.parent.mkdir(parents=True, exist_ok=True)
    paths = [path for finder in get_finders() for path, _ in finder.list([])]
    manifest.write_text(json.dumps({"paths": dict(zip(paths, paths, strict=True)), "version": "1.1", "hash": ""}))


def letters() -> list[str]:
    """The kinds of letters."""
    folder = settings.BASE_DIR / "templates/mail"
    return sorted(path.stem for path in folder.glob("*.txt"))


def write_letters(language: str = "") -> None:
    ends = timezone.now() + timedelta(days=1)
    Letter.objects.bulk_create(
        Letter(kind=kind, address=f"{kind}@example.org", language=language, context={"name": "ann"}, expires_at=ends)
        for kind in letters()
    )


def requests(user: User, key: str) -> list[dict[str, Any]]:
    """Reads of every address, as a member and as a stranger."""
    names: defaultdict[str, Any] = defaultdict(lambda: key)
    admin.autodiscover()
    pages = [path.format_map(names) for path in (*scenario.addresses(scenario.OF_PAGES), *scenario.PAGES)]
    pages += [f"/admin/{model._meta.app_label}/{model._meta.model_name}/" for model in admin.site._registry]
    pages += [f"/admin/{model._meta.app_label}/{model._meta.model_name}/add/" for model in admin.site._registry]
    pages += [f"/admin/accounts/user/{user.pk}/change/", "/admin/about/sitesettings/1/change/"]
    apis = [f"/api/v1/{path.format_map(names)}" for path in scenario.ADDRESSES]
    apis += [f"/api/{path.format_map(names)}" for path in scenario.CLIENT_READS]
    of_api = (*scenario.OF_API, *client_patterns)
    apis += [path.format_map(names) for path in scenario.addresses(of_api) if path != STREAM]
    writes = [(method.upper(), f"/api/v1/{path.format_map(names)}", body) for method, path, body in scenario.WRITES]
    client = Client()
    client.force_login(user)
    member = {"cookie": f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"}
    token = {"authorization": f"Token {issue_token(user=user)}"}
    found = [{"method": "GET", "path": path, "headers": headers} for path in pages for headers in (member, {})]
    found += [{"method": "GET", "path": path, "headers": token} for path in apis]
    found += [{"method": method, "path": path, "headers": token, "body": body} for method, path, body in writes]
    chinese = [{**each, "headers": {**each["headers"], "accept_language": "zh-Hans"}} for each in found[::5]]
    return [*chinese, *found]


@pytest.mark.long
def test_web_opens_nothing_of_the_tree(tmp_path: Path) -> None:
    user: User = UserFactory(is_staff=True, is_superuser=True)
    found = opened_later("web", requests(user, str(ItemFactory(sender=user).pk)), tmp_path)
    assert found["failed"] == []
    assert found["shown"] > 300
    assert found["opened"] == {}


@pytest.mark.long
def test_a_worker_opens_nothing_of_the_tree(tmp_path: Path) -> None:
    write_letters()
    write_letters("zh-hans")
    jobs = [[each["task"]] for each in settings.CELERY_BEAT_SCHEDULE.values()]
    found = opened_later("worker", [*jobs, ["mail.send"]], tmp_path)
    assert found["failed"] == []
    assert found["opened"] == {}
    assert not Letter.objects.exclude(state="sent").exists()


@pytest.mark.long
def test_programs_go_on_beside_a_tree_that_is_gone(tmp_path: Path, feeds: redis.Redis) -> None:
    tree, gone = tmp_path / "site", tmp_path / "gone"
    left = shutil.ignore_patterns(".*", "__pycache__", "docs", "benchmarks")
    shutil.copytree(settings.BASE_DIR, tree, ignore=left)
    user: User = UserFactory(is_staff=True, is_superuser=True, last_seen_at=timezone.now())
    item = ItemFactory(sender=user)
    settled = {"FEEDSITE_EMAIL_URL": f"filemail://{tmp_path}/letters", "FEEDSITE_ALLOWED_HOSTS": "*"}
    programs = (
        Queueing(tmp_path / "web", **settled),
        StreamServer(tmp_path / "stream"),
        Worker(tmp_path / "worker", **settled),
    )
    web, stream, _worker = programs
    try:
        for program in programs:
            program.folder.mkdir()
            program.tree = tree
            program.start()
        log = tmp_path / "worker/worker.log"
        assert wait_for(lambda: log.read_text().count(" is at work, with ") == 2, 120), log.read_text()
        tree.rename(gone)

        token = issue_token(user=user)
        answers = [(answered(web, each), each) for each in requests(user, str(item.pk))]
        assert not [answer for answer in answers if answer[0] >= 500]
        assert Counter(status for status, _ in answers)[200] > 200
        assert [send_file(web, token, file) for file in (jpeg(), mp4())] == [201, 202]
        listener = stream.listen(user)
        assert web.publish(token).status == 201
        listener.waits_for(lambda heard: any(name == "item" for name, _ in heard.news))
        listener.close()

        write_letters()
        write_letters("zh-hans")
        archive = actions.begin(user=user, file=zipped(files_of([note(1)])))
        for each in settings.CELERY_BEAT_SCHEDULE.values():
            celery.app.send_task(each["task"])
        assert wait_for(lambda: not MediaFile.objects.exclude(state="ready").exists(), 120)
        assert wait_for(lambda: not Letter.objects.exclude(state="sent").exists(), 120)
        assert wait_for(lambda: ArchiveImport.objects.get(pk=archive.pk).state == "done", 120)
        assert not tree.exists()
        for text in (web.said(), stream.said(), log.read_text()):
            assert "Traceback" not in text
    finally:
        for program in programs:
            program.kill()
        for text in tmp_path.glob("*/*.log"):
            print(text, text.read_text()[-8_000:])


def answered(web: WebServer, asked: dict[str, Any]) -> int:
    client = http.client.HTTPConnection("127.0.0.1", web.port, timeout=60)
    try:
        body = json.dumps(asked["body"]) if "body" in asked else None
        headers = {name.replace("_", "-"): value for name, value in asked["headers"].items()}
        client.request(asked["method"], asked["path"], body, headers | {"Content-Type": "application/json"})
        response = client.getresponse()
        response.read()
        return response.status
    finally:
        client.close()


def send_file(web: WebServer, token: str, file: bytes) -> int:
    url = f"http://127.0.0.1:{web.port}/api/v1/me/media"
    return httplib.post(url, files={"file": file}, headers={"Authorization": f"Token {token}"}, timeout=60).status_code
