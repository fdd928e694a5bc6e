import io
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings, settings
from django.test import Client, RequestFactory

from accounts.actions import issue_token
from accounts.models import User
from feedsite.wsgi import application, measured
from tests.support.clients import token_of
from tests.support.factories import UserFactory
from tests.support.pictures import files_of, jpeg, upload
from web.strict_json import BODY_BYTES

pytestmark = pytest.mark.django_db(transaction=True)  # a real request closes connections that are in a transaction


def chunked(rf: RequestFactory, body: bytes, kind: str = "application/json") -> dict[str, Any]:
    environ = rf.generic("POST", "/api/v1/users", body, kind).environ
    del environ["CONTENT_LENGTH"]
    return environ | {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input": io.BytesIO(body)}


def status_of(environ: dict[str, Any]) -> int:
    answer: dict[str, Any] = {}
    content = b"".join(application(environ, lambda status, headers: answer.update(status=status)))
    assert json.loads(content)
    return int(answer["status"].split()[0])


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


def test_no_more_is_read_than_may_be(rf: RequestFactory) -> None:
    environ = chunked(rf, b"x" * 10_000_000)
    body: io.BytesIO = environ["wsgi.input"]
    measured(lambda environ, start_response: [])(environ, print)
    assert body.tell() == settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1


def test_requests_without_a_body_are_left_alone(rf: RequestFactory) -> None:
    environ = rf.get("/").environ
    before = dict(environ)
    measured(lambda environ, start_response: [])(environ, print)
    assert environ == before


@pytest.mark.parametrize(("path", "is_read_by"), [("/login", []), ("/api/v1/users", ["Django"])])
def test_what_says_that_it_is_too_long_is_not_read(rf: RequestFactory, path: str, is_read_by: list[str]) -> None:
    """A page would first store the upload on disk."""
    environ = rf.generic("POST", path, b"x", "multipart/form-data; boundary=x").environ
    environ |= {"CONTENT_LENGTH": "3000000", "wsgi.input": io.BytesIO(b"x")}
    said: list[Any] = []
    asked: list[str] = []
    list(measured(lambda environ, start: asked.append("Django") or [])(environ, lambda *what: said.append(what)))
    assert asked == is_read_by
    assert environ["wsgi.input"].tell() == 0
    assert [status for status, _ in said] == ["413 Content Too Large"] * (not is_read_by)


def test_slow_bodies_leave_a_thread_to_those_who_send_none(rf: RequestFactory) -> None:
    """Each client sends one byte, then nothing."""
    gone, reading = threading.Event(), threading.Semaphore(0)

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            reading.release()
            assert gone.wait(60)
            return b"{}"

    statuses: list[str] = []
    serve = measured(lambda environ, start_response: [b"served"], readers=2)

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
    serve = measured(lambda environ, start_response: asked.append("Django") or [])
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
