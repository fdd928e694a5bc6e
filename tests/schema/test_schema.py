import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import drf_spectacular
import jsonschema_rs
import pytest
from django.core.management import call_command
from django.test import Client
from rest_framework.test import APIClient

from accounts.models import User
from items import actions as items
from items.models import Item
from tests.support.addresses import api_patterns as routes
from tests.support.factories import PASSWORD, ItemFactory, UserFactory
from tests.support.schemas import allowed

pytestmark = pytest.mark.django_db

METHODS = {"get", "put", "post", "patch", "delete"}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    response = Client().get("/api/schema")
    assert response.status_code == 200
    assert response["Content-Type"] == "application/vnd.oai.openapi+json"
    document: dict[str, Any] = json.loads(response.content)
    return document


def operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in schema["paths"].items():
        for method in METHODS & set(methods):
            yield path, method, methods[method]


@pytest.mark.slow
def test_it_is_valid(schema: dict[str, Any]) -> None:
    call_command("spectacular", "--fail-on-warn", "--file", "/dev/null")
    # `spectacular --validate` takes ten seconds for the same check.
    version = "_".join(schema["openapi"].split(".")[:2])
    # Importing its package would compile a grammar for two seconds.
    described = Path(drf_spectacular.__file__).parent / "validation" / f"openapi_{version}_schema.json"
    jsonschema_rs.validator_for(json.loads(described.read_text())).validate(schema)


def test_every_method_of_every_route_is_in_it(schema: dict[str, Any]) -> None:
    described = {(path, method) for path, method, _ in operations(schema)}
    real = {
        (re.sub(r"<\w+:(\w+)>", r"{\1}", f"/api/v1/{route.pattern}"), method)
        for route in routes
        for method in METHODS
        if hasattr(route.callback.cls, method)
    }
    real |= {("/api/v1/tags/{tag}/follow", method) for method in ("put", "delete")}  # apps post to the same address
    assert described == real
    names = [operation["operationId"] for _, _, operation in operations(schema)]
    assert len(names) == len(set(names))


NAMED_ELSEWHERE = ("/api/v1/seen/", "/api/v1/live/feed")
"""Body or query names the thing that may be missing."""
TOLD_EACH = {"/api/v1/seen/plays/batch"}
"""The answer says which of several are missing."""
NAMED_BY_KEY = {(f"/api/v1/{path}", "post") for path in ("items", "threads", "me/scheduled", "me/conversations")}
"""An Idempotency-Key or the body names what may be gone."""


def test_errors_are_described(schema: dict[str, Any]) -> None:
    for path, method, operation in operations(schema):
        statuses = set(operation["responses"])
        assert {"400", "405", "413", "429", "503"} <= statuses, (path, method)
        is_named = path.startswith(NAMED_ELSEWHERE) and path not in TOLD_EACH
        names_something = "{" in path or is_named or (path, method) in NAMED_BY_KEY
        assert ("404" in statuses) == names_something, (path, method)
        assert ("415" in statuses) == ("requestBody" in operation), (path, method)
        assert ("401" in statuses) == ("security" in operation), (path, method)


@pytest.mark.slow
def test_the_page(settings: Any) -> None:
    page = Client().get("/api/docs")
    assert page.status_code == 200
    text = page.content.decode()
    assert "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js" in text
    assert not re.findall(r"""(?:src|href)=["'](?:https?:)?//""", text)
    (script,) = re.findall(r'src="(/api/docs[^"]+)"', text)
    answer = Client().get(script)
    assert answer["Content-Type"].startswith("application/javascript")
    assert "/api/schema" in answer.content.decode()


@pytest.fixture
def item(ann: User) -> Item:
    item = items.publish(sender=ann, content={"text": "words"}, extra_info={"a": 1})
    ItemFactory(sender=ann, reply_to=item)
    ItemFactory(sender=ann, repost_of=item)
    items.publish(sender=UserFactory(), content={"text": "@ann"})
    return item


CALLS: list[tuple[str, str, Any, int]] = [
    ("get", "/users/me", None, 200),
    ("patch", "/users/me", {"bio": "new"}, 200),
    ("patch", "/users/me", {"bio": None}, 400),
    ("patch", "/users/me", [], 400),
    ("patch", "/users/me", {"fields": [{"name": "a", "value": "b", "id": "1"}]}, 400),
    ("patch", "/users/me", {"fields": [[None], 1, None, "name"]}, 400),
    ("post", "/threads", {"items": [{"content": {"text": "a"}}, {"content": {"text": ""}}]}, 400),
    ("post", "/users", {"username": "bob", "password": PASSWORD}, 201),
    ("post", "/users", {"username": "ann", "password": "x"}, 400),
    ("post", "/auth/token", {"username": "ann", "password": PASSWORD}, 200),
    ("post", "/auth/token", {"username": "ann", "password": "x"}, 400),
    ("get", "/users/{username}", None, 200),
    ("get", "/users/{username}/items", None, 200),
    ("get", "/users/{username}/followers", None, 200),
    ("get", "/users/{username}/following?limit=0", None, 400),
    ("put", "/users/{username}/follow", None, 400),
    ("delete", "/users/{username}/mute", None, 400),
    ("post", "/items", {"content": {"text": "a", "n": [None, 1.5]}}, 201),
    ("post", "/items", {"content": {"text": ""}}, 400),
    ("post", "/items", {"content": {"text": "a", "more": "a" * 70_000}}, 413),
    ("get", "/items/{item_id}", None, 200),
    ("patch", "/items/{item_id}", {"title": "new"}, 200),
    ("patch", "/items/{item_id}", {"id": "1"}, 400),
    ("get", "/items/{item_id}/replies", None, 200),
    ("post", "/items/{item_id}/report", {"reason": "spam"}, 400),
    ("delete", "/items/{item_id}", None, 204),
    ("get", "/search?q=words", None, 200),
    ("get", "/search?q=", None, 400),
    ("get", "/tags/{tag}/items", None, 200),
    ("get", "/timeline/home", None, 200),
    ("get", "/me/lists", None, 200),
    ("post", "/me/lists", {"title": "a", "exclusive": True}, 201),
    ("post", "/me/lists", {"title": ""}, 400),
    ("post", "/me/scheduled", {"content": {"text": "a"}, "publish_at": "2020-01-01T00:00:00Z"}, 400),
    ("get", "/me/scheduled", None, 200),
    ("get", "/me/filters", None, 200),
    ("post", "/me/filters", {"phrase": "a", "expires_at": "2099-01-01T00:00:00Z"}, 201),
    ("post", "/me/filters", {"phrase": "a", "contexts": ["home", "nowhere"]}, 400),
    ("post", "/me/filters", {"phrase": ""}, 400),
    ("put", "/items/{item_id}/pin", None, 204),
    ("delete", "/items/{item_id}/pin", None, 204),
    ("get", "/timeline/home/new?since_id=1", None, 200),
    ("post", "/users/me/password", {"current_password": "wrong", "new_password": "long enough"}, 400),
    ("post", "/users/me/password", {"current_password": PASSWORD, "new_password": "sesame-seeds-7"}, 204),
    ("get", "/users/me/export", None, 200),
    ("post", "/users/me/export", {"password": PASSWORD}, 200),
    ("post", "/users/me/export", {"password": "wrong"}, 400),
    ("delete", "/users/me/sessions", None, 204),
    ("post", "/users/me/delete", {"password": "wrong"}, 400),
    ("post", "/users/me/delete", {"password": PASSWORD}, 204),
    ("get", "/me/notifications", None, 200),
    ("get", "/me/notifications?last_id=0", None, 400),
    ("get", "/me/notifications/unread", None, 200),
    ("post", "/me/notifications/read", {"up_to": "5"}, 204),
    ("post", "/me/notifications/read", {"up_to": 5}, 400),
    ("delete", "/auth/token", None, 204),
]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path", "body", "status"), CALLS)
def test_answers_are_as_described(
    schema: dict[str, Any], api: APIClient, item: Item, method: str, path: str, body: Any, status: int
) -> None:
    address = f"/api/v1{path.format(username='ann', item_id=item.pk, tag='words')}"
    response = getattr(api, method)(address, body) if body is not None else getattr(api, method)(address)
    assert response.status_code == status
    allowed(schema, path.partition("?")[0], method, response)


@pytest.mark.parametrize(("method", "path"), [("get", "/timeline/home"), ("post", "/items"), ("get", "/users/me")])
def test_refusals_are_as_described(schema: dict[str, Any], method: str, path: str) -> None:
    response = getattr(APIClient(), method)(f"/api/v1{path}")
    assert response.status_code == 401
    allowed(schema, path, method, response)
