"""The texts of an item's untrusted `content`."""

from collections.abc import Mapping
from typing import Any

from items.links import is_link


def text_in(content: Mapping[str, Any], name: str = "text") -> str:
    """A text of the content, or ""."""
    text = content.get(name, "")
    return text if isinstance(text, str) else ""


def link_in(content: Mapping[str, Any]) -> str:
    """The https link of the content, or ""."""
    url = text_in(content, "url")
    return url if is_link(url) else ""
