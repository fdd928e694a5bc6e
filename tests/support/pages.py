"""The requests of browsers to the pages."""

import uuid
from typing import Any

PART: Any = {"HTTP_HX_REQUEST": "true"}
"""The header of a script that asks for a part of a page."""


def composed(text: str = "words", **fields: Any) -> dict[str, Any]:
    """The fields of a composer."""
    return {"text": text, "visibility": "public", "key": uuid.uuid4().hex} | fields
