import uuid
from typing import Any

from django.test import Client

from accounts.models import User

PART: Any = {"HTTP_HX_REQUEST": "true"}
"""htmx asks for a part of a page."""


def composed(text: str = "words", **fields: Any) -> dict[str, Any]:
    return {"text": text, "visibility": "public", "key": uuid.uuid4().hex} | fields


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client
