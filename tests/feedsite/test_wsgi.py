import io
import json
import os
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from django.conf import LazySettings, settings
from django.contrib import admin
from django.middleware.csrf import get_token
from django.test import Client, RequestFactory
from django.urls import ResolverMatch, URLResolver, reverse
from PIL import Image

from accounts.about.models import SiteSettings
from accounts.actions import issue_token
from accounts.models import User
from accounts.signing_in import step_up
from feedsite.wsgi import application, with_body_reader
from tests.support.admin import SITE_FORM
from tests.support.clients import token_of
from tests.support.factories import UserFactory
from tests.support.pages import logged_in
from tests.support.pictures import files_of, jpeg, upload
from web import uploads
from web.requests import match_of
from web.strict_json import BODY_BYTES

pytestmark = pytest.mark.django_db(transaction=True)  # a real request closes connections that are in a transaction


def chunked(rf: RequestFactory, body: bytes, kind: str = "application/json") -> dict[str, Any]:
    environ = rf.generic("POST", "/api/v1/users", body, kind).environ
    del environ["CONTENT_LENGTH"]
    return environ | {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input": io.BytesIO(body)}


def answered(environ: dict[str, Any]) -> tuple[int, bytes]:
    answer: dict[str, Any] = {}
    content = b"".join(application(environ, lambda status, headers: answer.update(status=status)))
    return int(answer["status"].split()[0]), content


def status_of(environ: dict[str, Any]) -> int:
    status, content = answered(environ)
    assert json.loads(content)
    return status


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b'{"username": "ann", "password": "correct horse battery"}', "application/json", 201),
        (b'{"username": "ann"}', "application/json", 400),
        (b"{}", "text/plain", 415),
        (b"{}" + b" " * BODY_BYTES, "application/json", 413),
        (b" " * 3_000_000, "application/json", 413),
    ],
    ids=lambda value: str(value)[:20],
)
def test_chunked_bodies_are_read_and_measured(rf: RequestFactory, body: bytes, kind: str, status: int) -> None:
    assert status_of(chunked(rf, body, kind)) == status


def test_a_content_type_that_cannot_be_read(rf: RequestFactory) -> None:
    assert status_of(chunked(rf, b"{}") | {"CONTENT_TYPE": "a/b; x*=none''c"}) == 415


def test_an_address_is_looked_up_once(rf: RequestFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve = URLResolver.resolve
    looked: list[str] = []

    def noting(self: URLResolver, path: str) -> ResolverMatch:
        looked.extend([path] if path.startswith("/") else [])
        return resolve(self, path)

    monkeypatch.setattr(URLResolver, "resolve", noting)
    match_of.cache_clear()
    paths = ["/about", "/@nobody", "/api/v1/items/7"]
    for path in paths * 2:
        answered(rf.get(path).environ)
    answered(chunked(rf, b"{}"))  # its size is checked before Django
    assert looked == [*paths, "/api/v1/users"]


def test_no_more_is_read_than_may_be(rf: RequestFactory) -> None:
    most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    assert most is not None
    for path, read in (("/api/v1/users", BODY_BYTES), ("/login", most), ("/nowhere", -1), ("/api/v1/nowhere", -1)):
        environ = chunked(rf, b"x" * 10_000_000) | {"PATH_INFO": path}
        body: io.BytesIO = environ["wsgi.input"]
        with_body_reader(lambda environ, start_response: [])(environ, print)
        assert body.tell() == read + 1, path
    for path in ("/nowhere", "/api/v1/nowhere", "/api/v1/statuses/1/nowhere"):
        status, _content = answered(chunked(rf, b"x" * 9_000_000) | {"PATH_INFO": path})
        assert status == 404, path


def test_requests_without_a_body_are_left_alone(rf: RequestFactory) -> None:
    environ = rf.get("/").environ
    before = dict(environ)
    with_body_reader(lambda environ, start_response: [])(environ, print)
    assert environ == before


def page(environ: dict[str, Any]) -> tuple[int, str]:
    """The status and content of a page."""
    answer: dict[str, Any] = {}
    content = b"".join(application(environ, lambda status, headers: answer.update(status=status, headers=headers)))
    assert dict(answer["headers"])["Content-Type"].startswith("text/html")
    return int(answer["status"].split()[0]), content.decode()


@pytest.mark.parametrize("path", ["/login", "/items/new", "/admin/login/", "/oauth/token"])
@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "application/x-www-form-urlencoded"])
@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_page_answers_a_body_that_is_too_long_in_the_readers_language(
    rf: RequestFactory, path: str, kind: str, is_chunked: bool, settings: LazySettings
) -> None:
    settings.MEDIA_IMAGE_BYTES = settings.MEDIA_VIDEO_BYTES = 1_000_000
    user, browser = UserFactory.create(language="zh-hans"), Client()
    browser.force_login(user)
    environ = rf.generic("POST", path, b"x" * 5_000_000, kind).environ
    environ |= {"HTTP_COOKIE": f"sessionid={browser.session.session_key}"}
    body = environ["wsgi.input"]
    if is_chunked:
        environ |= {"CONTENT_LENGTH": "", "HTTP_TRANSFER_ENCODING": "chunked"}
    if path == "/oauth/token":
        assert status_of(environ) == 413
    else:
        status, html = page(environ)
        assert status == 413
        assert 'lang="zh-hans"' in html.lower()
        assert ">413<" in html
    assert len(body.read()) >= (0 if is_chunked else 5_000_000), "nothing of it was read"


def test_a_form_with_too_long_words_beside_its_files(rf: RequestFactory, media_folder: Path) -> None:
    browser = logged_in(UserFactory.create())
    token = get_token(rf.get("/"))
    environ = rf.post("/items/new", {"text": "x" * 3_000_000, "csrfmiddlewaretoken": token}).environ
    cookies = f"sessionid={browser.session.session_key}; csrftoken={token}"
    assert page(environ | {"HTTP_COOKIE": cookies})[0] == 413


@pytest.mark.parametrize("is_chunked", [False, True])
def test_the_api_answers_a_body_that_is_too_long(rf: RequestFactory, is_chunked: bool, media_folder: Path) -> None:
    token = issue_token(user=UserFactory.create())
    environ = rf.generic("POST", "/api/v1/me/media", b"x" * 60_000_000, "multipart/form-data; boundary=x").environ
    environ |= {"HTTP_AUTHORIZATION": f"Token {token}"}
    if is_chunked:
        environ |= {"CONTENT_LENGTH": "", "HTTP_TRANSFER_ENCODING": "chunked"}
    assert status_of(environ) == 413
    assert files_of(media_folder) == []
    environ = rf.generic("PUT", "/api/v1/media/1", b" " * 100_000, "application/json").environ
    assert status_of(environ | {"HTTP_AUTHORIZATION": f"Bearer {token_of(UserFactory.create())}"}) == 413


# --- Which views take files ------------------------------------------------------------------------------
PAGES = ["/", "/items/new", "/settings", "/settings/profile", "/live/new", "/settings/import-export"]
MULTIPART = re.compile(r'<form\b[^>]*enctype="multipart/form-data"[^>]*>')


def admin_forms() -> list[str]:
    """The addresses of the admin's forms for new rows and for site settings."""
    registry = admin.site._registry
    names = [f"admin:{model._meta.app_label}_{model._meta.model_name}_add" for model in registry]
    return [*map(reverse, names), reverse("admin:about_sitesettings_change", args=[1])]


def test_every_form_with_files_leads_to_a_view_that_takes_them(client: Client) -> None:
    boss = UserFactory.create(is_staff=True, is_superuser=True)
    client.force_login(boss)
    client.get("/admin/")  # registers its pages
    session = client.session
    session[step_up.PROVEN] = time.time()
    session.save()
    found = set()
    for path in [*PAGES, "/settings/import-archive", *admin_forms()]:
        answer = client.get(path)
        html = answer.content.decode() if answer.status_code == 200 else ""
        for form in MULTIPART.findall(html):
            if path.startswith("/admin/") and 'type="file"' not in html:
                continue  # Django's forms always say multipart if they have media
            action = re.search(r' action="([^"]*)"', form)
            target = urljoin(path, action[1] if action else "")
            assert uploads.most_bytes(target, "POST")[0] > 1 << 20, (path, target)
            found.add(target)
    assert {"/items/new", "/settings/profile", "/live/new", "/settings/import-export"} <= found
    assert {"/settings/import-archive", "/admin/about/sitesettings/1/change/"} <= found
    assert "/admin/moderation/picturerule/add/" in found


def test_a_view_that_takes_files_takes_them_by_its_methods(settings: LazySettings) -> None:
    settings.MEDIA_IMAGE_BYTES, settings.MEDIA_VIDEO_BYTES = 3 << 20, 4 << 20
    room = uploads.ROOM_BYTES
    for path, method, most in [
        ("/items/new", "POST", (12 << 20) + room),
        ("/items/new", "GET", 0),
        ("/items/7/edit", "POST", 0),
        ("/login", "POST", 0),
        ("/nothing", "POST", 0),
        ("/api/v1/me/media", "POST", (4 << 20) + room),
        ("/api/v1/me/media/7/captions", "PUT", 2 * room),
        ("/api/v1/me/media/7", "PATCH", 0),
        ("/api/v2/media", "POST", (7 << 20) + room),
        ("/api/v1/accounts/update_credentials", "PATCH", (4 << 20) + room),
        ("/admin/about/sitesettings/", "POST", 0),
        ("/admin/about/sitesettings/1/change/", "POST", (4 << 20) + room),
        ("/admin/about/rule/add/", "POST", 0),
        ("/\udc80", "POST", 0),
    ]:
        assert uploads.most_bytes(path, method)[0] == most, (path, method)


@pytest.mark.slow
def test_a_logo_of_three_megabytes(rf: RequestFactory, media_folder: Path) -> None:
    boss, browser = UserFactory.create(is_staff=True, is_superuser=True), Client()
    browser.force_login(boss)
    session = browser.session
    session[step_up.PROVEN] = time.time()
    session.save()
    noise = io.BytesIO()
    Image.frombytes("RGB", (1100, 1000), os.urandom(3_300_000)).save(noise, "PNG")
    assert len(noise.getvalue()) > 3_000_000
    path = "/admin/about/sitesettings/1/change/"
    token = get_token(rf.get(path))
    data = SITE_FORM | {"new_logo": upload(noise.getvalue()), "csrfmiddlewaretoken": token}
    cookies = f"sessionid={browser.session.session_key}; csrftoken={token}"
    environ = rf.post(path, data, HTTP_COOKIE=cookies).environ  # type: ignore[arg-type]
    answer: dict[str, Any] = {}
    content = b"".join(application(environ, lambda status, headers: answer.update(status=status)))
    assert answer["status"] == "302 Found", content.decode()[-3000:]
    assert SiteSettings.objects.get().logo


@pytest.mark.parametrize("path", ["/items/new", "/admin/about/sitesettings/1/change/", "/settings/import-archive"])
def test_a_strangers_files_are_not_read(rf: RequestFactory, path: str) -> None:
    environ = rf.post(path, {"file": upload(bytes(3_000_000))}).environ  # type: ignore[arg-type]
    body = environ["wsgi.input"]
    b"".join(application(environ, lambda status, headers: None))
    assert len(body.read()) > 3_000_000


def test_slow_bodies_leave_a_thread_to_those_who_send_none(rf: RequestFactory) -> None:
    """Each client sends one byte, then nothing."""
    gone, reading = threading.Event(), threading.Semaphore(0)

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            reading.release()
            assert gone.wait(60)
            return b"{}"

    statuses: list[str] = []
    serve = with_body_reader(lambda environ, start_response: [b"served"], readers=2)

    def post(body: io.BytesIO) -> list[bytes]:
        environ = rf.generic("POST", "/api/v1/users", b"{}", "application/json").environ | {"wsgi.input": body}
        return list(serve(environ, lambda status, headers: statuses.append(status)))

    with ThreadPoolExecutor(2) as pool:
        slow = [pool.submit(post, Slow()) for _ in range(2)]
        for _ in slow:
            assert reading.acquire(timeout=60)
        assert post(io.BytesIO(b"{}")) == [b'{"detail":"Service Unavailable."}']
        assert list(serve(rf.get("/").environ, print)) == [b"served"]
        gone.set()
        assert [one.result(60) for one in slow] == [[b"served"]] * 2
    assert post(io.BytesIO(b"{}")) == [b"served"]
    assert statuses == ["503 Service Unavailable"]


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "application/json", "multipart/form-data; boundary=x"]
)
def test_a_body_that_breaks_off_is_refused(rf: RequestFactory, kind: str, media_folder: Path) -> None:
    """The part that arrived may look like a whole form."""
    asked: list[str] = []
    statuses: list[str] = []
    token = issue_token(user=UserFactory.create())
    environ = rf.generic("POST", "/items/new", b"text=half", kind, HTTP_AUTHORIZATION=f"Token {token}").environ
    serve = with_body_reader(lambda environ, start_response: asked.append("Django") or [])
    body = {"CONTENT_LENGTH": "99", "wsgi.input": io.BytesIO(b"text=half")}
    list(serve(environ | body, lambda status, headers: statuses.append(status)))
    assert (statuses, asked) == (["400 Bad Request"], [])


def form(rf: RequestFactory, token: str, data: bytes, path: str = "/api/v1/me/media") -> dict[str, Any]:
    credentials = {"HTTP_AUTHORIZATION": f"Token {token}"} if token else {}
    environ: dict[str, Any] = rf.post(path, {"file": upload(data)}, **credentials).environ  # type: ignore[arg-type]
    return environ


@pytest.mark.slow
def test_files_go_by_the_disk(rf: RequestFactory, media_folder: Path) -> None:
    token = issue_token(user=UserFactory.create())
    assert status_of(form(rf, token, jpeg())) == 201
    environ = form(rf, token, jpeg())
    body = environ["wsgi.input"].read(int(environ.pop("CONTENT_LENGTH")))
    assert status_of(environ | {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input": io.BytesIO(body)}) == 201
    assert status_of(form(rf, token, bytes(3_000_000))) == 415
    assert status_of(form(rf, token, bytes(3_000_000), "/api/v1/items")) == 413
    assert len(files_of(media_folder)) == 4


def test_files_that_are_not_read(rf: RequestFactory, media_folder: Path, settings: LazySettings) -> None:
    settings.MEDIA_IMAGE_BYTES = settings.MEDIA_VIDEO_BYTES = 1_000_000
    token = issue_token(user=UserFactory.create())
    unknown: list[dict[str, str]] = [
        {"HTTP_AUTHORIZATION": "Token x"},
        {"HTTP_AUTHORIZATION": "Bearer x"},
        {"HTTP_AUTHORIZATION": f"Bearer {token}"},
        {"HTTP_AUTHORIZATION": f"Token {token_of(UserFactory.create())}"},
        {"HTTP_AUTHORIZATION": "Basic eDp4"},
        {"HTTP_COOKIE": "x=1"},
        {"HTTP_COOKIE": "sessionid=x"},
        {"HTTP_COOKIE": f"sessionid={Client().session.session_key}"},
        {"HTTP_AUTHORIZATION": "Token x", "HTTP_COOKIE": "x=1"},
        {},
    ]
    cases = [({"HTTP_AUTHORIZATION": f"Token {token}"}, 413), *((one, 401) for one in unknown)]
    for credential, status in cases:
        environ = form(rf, "", bytes(3_000_000)) | credential
        body = environ["wsgi.input"]
        assert status_of(environ) == status
        assert body.read(1), "nothing of it was read"
    assert files_of(media_folder) == []


def test_files_of_a_session_and_of_an_app_are_read(rf: RequestFactory, media_folder: Path) -> None:
    user, browser = UserFactory.create(), Client()
    browser.force_login(user)
    cookie = {"HTTP_COOKIE": f"a=1; sessionid={browser.session.session_key}"}
    for credential in (cookie, {"HTTP_AUTHORIZATION": f"bearer {token_of(user)}"}):
        environ = form(rf, "", jpeg(), "/api/v1/media") | credential
        body = io.BytesIO(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        status_of(environ | {"wsgi.input": body})
        assert not body.read(1), "all of it was read"
    User.objects.filter(pk=user.pk).update(is_active=False)
    environ = form(rf, "", jpeg()) | cookie
    body = environ["wsgi.input"]
    assert status_of(environ) == 401
    assert body.read(1)
