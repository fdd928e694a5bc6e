import json
from typing import Any

import pytest
from django.test import RequestFactory

from feedsite.wsgi import refused

DETAIL = "The service is unavailable for a moment."


class Unread:
    """A body that must not be read: its client may be slow."""

    def read(self, size: int = -1) -> bytes:
        raise AssertionError("the body was read")

    readline = read


def answer(path: str, **environ: str) -> tuple[str, dict[str, str], bytes]:
    said: list[Any] = []
    given = RequestFactory().get(path).environ | {"wsgi.input": Unread()} | environ
    body = b"".join(refused(given, lambda status, headers: said.extend((status, dict(headers)))))
    status, headers = said
    assert headers["Retry-After"] == "2"
    assert headers["Content-Length"] == str(len(body))
    assert headers["X-Frame-Options"] == "DENY"
    return status, headers, body


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/api/v1/timeline/home?last_id=1", {"detail": DETAIL}),
        ("/api/v1/no-such", {"error": DETAIL}),
        ("/api/v1/timelines/home", {"error": DETAIL}),
        ("/oauth/token", {"error": DETAIL}),
    ],
)
def test_an_address_of_an_api_answers_in_its_shape(path: str, shape: dict[str, str]) -> None:
    status, headers, body = answer(path)
    assert status == "503 Service Unavailable"
    assert headers["Content-Type"] == "application/json"
    assert json.loads(body) == shape


@pytest.mark.parametrize("path", ["/", "/@someone", "/media/no.jpg", "/%ff%00"])
def test_a_page_is_html_that_runs_nothing(path: str) -> None:
    status, headers, body = answer(path)
    assert status == "503 Service Unavailable"
    assert headers["Content-Type"].startswith("text/html")
    assert "Back in a moment" in body.decode()
    assert "script-src" in headers["Content-Security-Policy"]


def test_odd_requests_are_answered_as_well() -> None:
    for environ in (
        {"CONTENT_TYPE": "a/b; x*=none''c"},
        {"HTTP_HOST": "a b"},
        {"HTTP_COOKIE": "\xff=;;"},
        {"REQUEST_METHOD": "POST", "CONTENT_LENGTH": "many"},
    ):
        assert answer("/", **environ)[0] == "503 Service Unavailable"


@pytest.mark.django_db
def test_no_statement_is_needed(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        answer("/")
        answer("/api/v1/items")
