"""Earlier versions of items, the newest `KEPT` of each, written by edits under the item's lock.

Whoever sees the item sees its versions, except those replaced while unpublished, before a wider audience, or before a
moderator held, rejected or hid it.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from items.content import link_in, text_in
from items.models import ItemVersion
from storage.connections import fetch, stream

KEPT = 20
"""Versions kept besides the current one."""

KEEP = """
    INSERT INTO items_itemversion (item_id, title, content, written_at, is_hidden)
    VALUES (%(item)s, %(title)s, %(content)s, %(written_at)s, %(is_hidden)s) RETURNING 1
"""
# The item is locked, so no other edit adds a version meanwhile.
TRIM = """
    DELETE FROM items_itemversion WHERE item_id = %(item)s AND id <= (
        SELECT id FROM items_itemversion WHERE item_id = %(item)s ORDER BY id DESC OFFSET %(kept)s LIMIT 1)
    RETURNING 1
"""
OF_ITEM = """
    SELECT v.title, v.content::text, v.written_at, v.is_hidden
    FROM items_itemversion v JOIN items_item i ON i.id = v.item_id
    WHERE v.item_id = %(item)s AND (NOT v.is_hidden OR i.sender_id = %(reader)s) ORDER BY v.id DESC
"""
OF_SENDER = """
    SELECT i.id, v.title, v.content::text, v.written_at FROM items_item i JOIN items_itemversion v ON v.item_id = i.id
    WHERE i.sender_id = %(sender)s AND i.status <> 'deleted' ORDER BY i.id, v.id
"""


class Version(NamedTuple):
    """The title and content of an item from `written_at` on."""

    title: str
    content: dict[str, Any]
    written_at: datetime
    is_hidden: bool = False
    """Whether only the sender sees it."""

    @classmethod
    def of(cls, row: Sequence[Any]) -> "Version":
        """Convert a row of `OF_ITEM`."""
        title, content, written_at, is_hidden = row
        return cls(title, json.loads(content), written_at, is_hidden)

    @property
    def text(self) -> str:
        """The text of the content."""
        return text_in(self.content)

    @property
    def warning(self) -> str:
        """The warning, or ""."""
        return text_in(self.content, "warning")

    @property
    def url(self) -> str:
        """The https link of the content, or ""."""
        return link_in(self.content)


def keep(item_id: int, version: Version) -> None:
    """Store a version, under the item's lock."""
    params: dict[str, Any] = {"item": item_id, "kept": KEPT, **version._asdict()}
    fetch(KEEP, params | {"content": json.dumps(version.content)})
    fetch(TRIM, params)


def hide(item_id: int) -> int:
    """Hide an item's versions from others."""
    return ItemVersion.objects.filter(item=item_id, is_hidden=False).update(is_hidden=True)


def versions_of(item_id: int, reader: User | AnonymousUser) -> list[Version]:
    """The versions that `reader`, who sees the item, may see."""
    return fetch(OF_ITEM, {"item": item_id, "reader": reader.pk or 0}, into=Version.of)


class OwnVersion(msgspec.Struct):
    """An earlier version of an item, as a line of the export."""

    item_id: str
    title: str
    content: msgspec.Raw
    written_at: datetime

    @classmethod
    def of(cls, row: Sequence[Any]) -> "OwnVersion":
        """Convert a row of `OF_SENDER`."""
        item_id, title, content, written_at = row
        return cls(str(item_id), title, msgspec.Raw(content.encode()), written_at)


def own_versions(sender: User) -> Iterator[OwnVersion]:
    """All versions of the sender's items, oldest first."""
    yield from map(OwnVersion.of, stream(OF_SENDER, {"sender": sender.pk}))
