import uuid
from typing import Any

PART: Any = {"HTTP_HX_REQUEST": "true"}
"""htmx asks for a part of a page."""


def composed(text: str = "words", **fields: Any) -> dict[str, Any]:
    return {"text": text, "visibility": "public", "key": uuid.uuid4().hex} | fields
