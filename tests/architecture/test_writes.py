"""Every write route gets every field of every model, but callers set only their own."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings as site
from django.db import connection

from accounts.models import User
from items.models import Item
from tests.support.addresses import api_patterns
from tests.support.api import client_of
from tests.support.effort import some
from tests.support.factories import ItemFactory, UserFactory
from web.openapi import document

pytestmark = pytest.mark.django_db

ROOMS = {config.label for config in apps.get_app_configs() if Path(config.path).parent == site.BASE_DIR}
FIELDS = sorted(
    {
        name
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        for name in (field.name, field.attname)
    }
    | {"pk", "user", "follower", "followers", "counts", "liked", "groups", "user_permissions", "__class__", "csrf", ""}
)
"""Django's own tables count too: groups, permissions, sessions, tokens."""
NAMED = 10
"""How many unknown fields an error names."""
WITH_FILES = {"/api/v1/me/media"}
"""POST takes a form here."""
WRITES = [
    (f"/api/v1/{route.pattern}", method)
    for route in api_patterns
    for method in ("post", "patch")
    if hasattr(route.callback.cls, method)
]


def known(path: str, method: str) -> set[str]:

    schema = json.loads(document())
    path = re.sub(r"<\w+:(\w+)>", r"{\1}", path)
    body = schema["paths"][path][method].get("requestBody")
    if body is None:
        return set()
    (content,) = body["content"].values()
    reference = content["schema"]
    shape = schema["components"]["schemas"][reference["$ref"].rpartition("/")[2]] if "$ref" in reference else reference
    assert shape.get("additionalProperties") is False or shape["maxProperties"] == 0, path
    return set(shape.get("properties", ()))


def everything() -> dict[str, Any]:
    with connection.cursor() as cursor:
        rows = {}
        for model in apps.get_models():
            if model._meta.app_label in ROOMS:
                cursor.execute(f'SELECT * FROM "{model._meta.db_table}" ORDER BY 1')
                rows[model._meta.db_table] = cursor.fetchall()
    return rows


@pytest.mark.slow
@pytest.mark.parametrize(("path", "method"), some(len(WRITES) // 2, [*WRITES[::2], *WRITES[1::2]]))
def test_fields_that_are_nobodys_to_set(path: str, method: str, settings: Any) -> None:
    settings.RATE_SCALE = 1e6
    settings.LAST_SEEN_INTERVAL *= 1000
    user: User = UserFactory.create(username="ann")
    item: Item = ItemFactory.create(sender=user if method == "patch" else UserFactory.create())
    client = client_of(user)
    address = path
    for name, value in [("item_id", item.pk), ("session_id", 1), ("username", "ann"), ("tag", "a")]:
        address = re.sub(rf"<\w+:{name}>", str(value), address)
    allowed = known(path, method)
    before = everything()
    tried = [name for name in FIELDS if name not in allowed]
    assert len(tried) > 80
    values: dict[str, Any] = {"is_superuser": True, "id": user.pk, "user_id": str(user.pk)}
    for ten in (tried[start : start + NAMED] for start in range(0, len(tried), NAMED)):
        sent = {name: values.get(name, "1") for name in ten}
        options = {"format": "multipart"} if path in WITH_FILES and method == "post" else {}
        answer = getattr(client, method)(address, sent, **options)
        assert answer.status_code in (400, 404), answer.content
        if answer.status_code == 400:
            assert answer.json().keys() >= {name[:64] for name in ten}, answer.content
    assert everything() == before
