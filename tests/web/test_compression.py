import gzip
from collections.abc import Callable
from typing import Any

import brotli
import pytest
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.test import Client, RequestFactory
from rest_framework.test import APIClient

from accounts.models import User
from items.actions import publish
from tests.support.factories import UserFactory
from web.compression import LEAST_BYTES, CompressionMiddleware

pytestmark = pytest.mark.django_db

TAKES = {"Accept-Encoding": "gzip"}


@pytest.fixture
def member(reader: User) -> Client:
    client = Client(headers=TAKES)
    client.force_login(reader)
    return client


def test_a_page(member: Client) -> None:
    answer = member.get("/settings")
    assert answer["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in answer["Vary"]
    assert answer["Content-Length"] == str(len(answer.content))
    page = gzip.decompress(answer.content)
    assert page.rstrip().endswith(b"</html>")
    assert len(answer.content) < len(page) / 2
    head = member.head("/settings")
    assert (head["Content-Encoding"], head.content) == ("gzip", b"")


@pytest.mark.parametrize(
    ("accepted", "encoding", "decompress"),
    [
        ("gzip, deflate, br, zstd", "br", brotli.decompress),
        ("GZIP;q=0.5, BR;q=0.1", "br", brotli.decompress),
        ("br;q=0, gzip", "gzip", gzip.decompress),
        ("gzip", "gzip", gzip.decompress),
    ],
)
def test_the_shortest_that_a_caller_takes(
    reader: User, accepted: str, encoding: str, decompress: Callable[[bytes], bytes]
) -> None:
    client = Client(headers={"Accept-Encoding": accepted})
    client.force_login(reader)
    answer = client.get("/settings")
    assert answer["Content-Encoding"] == encoding
    assert answer["Content-Length"] == str(len(answer.content))
    assert decompress(answer.content).rstrip().endswith(b"</html>")


@pytest.mark.parametrize("accepted", ["", "identity", "gzip;q=0", "br;q=0.0", "zstd", "bright"])
def test_a_caller_that_takes_none(reader: User, accepted: str) -> None:
    client = Client(headers={"Accept-Encoding": accepted})
    client.force_login(reader)
    answer = client.get("/settings")
    assert "Content-Encoding" not in answer
    assert "Accept-Encoding" in answer["Vary"], "caches keep one for each"
    assert answer.content.rstrip().endswith(b"</html>")


def test_what_strangers_are_shown_is_compressed_once() -> None:
    publish(sender=UserFactory.create(username="sender"), content={"text": "words " * 200})
    for _ in range(3):  # made, made and kept, kept
        answer = Client(headers=TAKES).get("/@sender")
        assert answer["Content-Encoding"] == "gzip"
        assert b"sender" in gzip.decompress(answer.content)
    kept = {"If-None-Match": answer["ETag"]}
    assert Client(headers=TAKES | kept).get("/@sender").status_code == 304
    assert gzip.decompress(Client(headers=TAKES).get("/@sender/feed.atom").content).startswith(b"<?xml")


@pytest.mark.parametrize("page", ["factors", "factors/app", "devices"])
def test_no_page_of_secrets(member: Client, page: str) -> None:
    answer = member.get(f"/settings/{page}")
    assert answer.status_code == 200
    assert len(answer.content) > LEAST_BYTES
    assert "Content-Encoding" not in answer


def test_the_api(api: APIClient, ann: User) -> None:
    publish(sender=ann, content={"text": "words " * 200})
    answer = api.get("/api/v1/timeline/home", headers=TAKES)
    assert b"words" in gzip.decompress(answer.content)
    answer = api.post("/api/v1/items", {"content": {"text": "words " * 200}}, format="json", headers=TAKES)
    assert answer.status_code == 201
    assert len(answer.content) > LEAST_BYTES
    assert "Content-Encoding" not in answer, "answers to changes may be tokens"


@pytest.mark.parametrize(("encoding", "decompress"), [("br", brotli.decompress), ("gzip", gzip.decompress)])
def test_the_length_of_a_page_does_not_tell_its_words(encoding: str, decompress: Callable[[bytes], bytes]) -> None:
    page = b"words " * 500
    answers: list[Any] = [asked(HttpResponse(page), encoding) for _ in range(40)]
    assert len({len(answer.content) for answer in answers}) > 5
    assert {decompress(answer.content) for answer in answers} == {page}


@pytest.mark.parametrize(
    "answer",
    [
        HttpResponse(b"w" * (LEAST_BYTES - 1)),
        HttpResponse(b"w" * LEAST_BYTES, content_type="image/png"),
        HttpResponse(b"w" * LEAST_BYTES, headers={"Content-Encoding": "br"}),
        StreamingHttpResponse([b"w" * LEAST_BYTES]),
    ],
    ids=["tiny", "a picture", "encoded", "a stream"],
)
def test_what_stays_as_it_is(answer: HttpResponseBase) -> None:
    before = dict(answer.headers)
    assert dict(asked(answer).headers) == before
    assert b"".join(answer).strip(b"w") == b""


def asked(answer: Any, encoding: str = "gzip") -> HttpResponseBase:
    headers = {"Accept-Encoding": encoding}
    return CompressionMiddleware(lambda request: answer)(RequestFactory(headers=headers).get("/"))
