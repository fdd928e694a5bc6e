"""Any request gets an answer from the schema: never a 5xx, always JSON."""

import json
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, quote_from_bytes, urlencode

import pytest
from django.conf import LazySettings
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from rest_framework.test import APIClient

from accounts.models import User
from items.models import Item
from relations import actions as relations
from tests.support.effort import tries
from tests.support.factories import ItemFactory, UserFactory
from web.openapi import document

pytestmark = pytest.mark.django_db

SCHEMA: dict[str, Any] = json.loads(document())
OPERATIONS = sorted(
    (path, method) for path, methods in SCHEMA["paths"].items() for method in methods if method != "parameters"
)
FIELDS = ["username", "password", "display_name", "bio", "type", "title", "content", "extra_info", "visibility"]
FIELDS += ["reply_to", "id", "text", "url", "reason", "up_to", "starts_at", "cover_url", "automatic", "minutes"]
FIELDS += ["ids", "user_id"]

numbers = st.integers() | st.floats() | st.sampled_from([0, -1, 2**53, 2**63, 10**30, 1e308])
words = st.text() | st.sampled_from(
    ["ann", "bob", "text", "link", "spam", "public", "self", "https://a.b", "1", "2030-01-01T00:00Z", "\x00", "\ud800"]
)
scalars = st.none() | st.booleans() | numbers | words
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS) | words, inner, max_size=4),
    max_leaves=12,
)
bodies = (
    st.dictionaries(st.sampled_from(FIELDS), values, max_size=5).map(json.dumps).map(str.encode)
    | values.map(json.dumps).map(str.encode)
    | st.binary(max_size=200)
)
texts = st.text(st.characters(blacklist_categories=["Cs"])) | st.sampled_from(
    ["", "0", "20", "101", "-1", "1_0", "9" * 40]
)
raw = texts.map(quote) | st.binary(max_size=20).map(quote_from_bytes)
queries = st.lists(st.tuples(st.sampled_from(["limit", "last_id", "since_id", "q", "format", "x"]), texts), max_size=4)
kinds = st.sampled_from(
    ["application/json"] * 5 + ["text/plain", "multipart/form-data; boundary=x", "", "a/b/c", "\x80"]
)


@pytest.fixture
def item(ann: User) -> Item:
    bob = UserFactory(username="bob")
    relations.follow(follower=ann, followee=bob)
    ItemFactory(sender=bob)
    return ItemFactory(sender=ann)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "method"), OPERATIONS[:: tries(2, 1)])
def test_whatever_is_sent(path: str, method: str, ann: User, item: Item, settings: LazySettings) -> None:
    settings.RATE_SCALE = 1e6
    described = SCHEMA["paths"][path][method]["responses"]
    known = st.sampled_from(["ann", "bob", str(item.pk)])

    @hypothesis_settings(
        max_examples=tries(2, 40), deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
    )
    @given(known | raw, queries, bodies, kinds, st.booleans(), st.sampled_from(["", "k", "\xff", "a b", "x" * 300]))
    @example("ann", [], b"", "", True, "")
    def send(name: str, query: list[tuple[str, str]], body: bytes, kind: str, signed_in: bool, key: str) -> None:
        client = APIClient()
        if signed_in:
            client.force_authenticate(ann, token=SimpleNamespace(token_id=1))
        address = path.format(
            username=name,
            item_id=name,
            quote_id=name,
            session_id=name,
            tag=name,
            media_id=name,
            filter_id=name,
            scheduled_id=name,
            conversation_id=name,
            list_id=name,
            reply_id=name,
            decision_id=name,
        )
        response = client.generic(method.upper(), f"{address}?{urlencode(query)}", body, kind, HTTP_IDEMPOTENCY_KEY=key)
        content = b"".join(response.streaming_content) if response.streaming else response.content
        if "{" in path and ("/" in name or name in ("", ".", "..", "me")):  # another address
            assert response.status_code < 500
            return
        assert str(response.status_code) in described, (response.status_code, content)
        if "application/zip" in described[str(response.status_code)].get("content", ()):
            assert response["Content-Type"] == "application/zip"
            assert content.startswith(b"PK")
        elif response.status_code != 204:
            assert response["Content-Type"] == "application/json"
            json.loads(content)

    send()
