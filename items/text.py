"""What an item may hold: limits and the shape of `content`."""

from typing import Any

from items.models import ItemType

TITLE_LENGTH = 200
TEXT_LENGTH = 5_000


class ContentError(ValueError):
    """The content does not fit the item's type; the message is for people."""


def check_content(item_type: str, content: dict[str, Any]) -> None:
    """Raise ContentError unless `content` fits: a text item needs text; any other needs text or an https address.

    Further keys are the business of the programs that write them.
    """
    text = content.get("text", "")
    if not isinstance(text, str):
        raise ContentError("content.text must be a string.")
    if len(text) > TEXT_LENGTH:
        raise ContentError(f"content.text may have at most {TEXT_LENGTH} characters.")
    url = content.get("url", "")
    if not isinstance(url, str):
        raise ContentError("content.url must be a string.")
    if url and not url.startswith("https://"):
        raise ContentError("content.url must be an https address.")
    if item_type == ItemType.TEXT and not text.strip():
        raise ContentError("content.text must not be empty.")
    if not text.strip() and not url:
        raise ContentError("content needs a text or a url.")
