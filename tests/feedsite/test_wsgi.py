"""Bodies that come in chunks, without a length."""

import io
import json
from typing import Any

import pytest
from django.conf import settings
from django.test import RequestFactory

from feedsite.rest import BODY_BYTES
from feedsite.wsgi import application, measured

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


def test_no_more_is_read_than_may_be(rf: RequestFactory) -> None:
    environ = chunked(rf, b"x" * 10_000_000)
    body: io.BytesIO = environ["wsgi.input"]
    measured(lambda environ, start_response: [])(environ, print)
    assert body.tell() == settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1


def test_other_bodies_are_left_alone(rf: RequestFactory) -> None:
    environ = rf.generic("POST", "/", b"abc").environ
    before = dict(environ)
    measured(lambda environ, start_response: [])(environ, print)
    assert environ == before
