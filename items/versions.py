"""Earlier versions of items, the newest `KEPT` of each, written by edits under the item's lock.

Whoever sees the item sees its versions, except those replaced while unpublished, before a wider audience, or before a
moderator held, rejected or hid it.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, Subquery, TextField
from django.db.models.functions import Cast

from accounts.models import User
from items.content import link_in, text_in
from items.models import ItemVersion, Status

KEPT = 20
"""Versions kept besides the current one."""


class Version(NamedTuple):
    """The title and content of an item from `written_at` on."""

    title: str
    content: dict[str, Any]
    written_at: datetime
    is_hidden: bool = False
    """Whether only the sender sees it."""

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


def store_version(item_id: int, version: Version) -> None:
    """Store a version, under the item's lock."""
    ItemVersion.objects.create(item_id=item_id, **version._asdict())
    # The item is locked, so no other edit adds a version meanwhile.
    own = ItemVersion.objects.filter(item=item_id)
    own.filter(pk__lte=Subquery(own.order_by("-pk").values("pk")[KEPT : KEPT + 1])).delete()


def hide_versions(item_id: int) -> int:
    """Hide an item's versions from others."""
    return ItemVersion.objects.filter(item=item_id, is_hidden=False).update(is_hidden=True)


def versions_of(item_id: int, reader: User | AnonymousUser) -> list[Version]:
    """The versions that `reader`, who sees the item, may see."""
    seen = ItemVersion.objects.filter(Q(is_hidden=False) | Q(item__sender=reader.pk or 0), item=item_id)
    return [Version(*row) for row in seen.order_by("-pk").values_list(*Version._fields)]


class OwnVersion(msgspec.Struct):
    """An earlier version of an item, as a line of the export."""

    item_id: str
    title: str
    content: msgspec.Raw
    written_at: datetime

    @classmethod
    def of(cls, row: Sequence[Any]) -> "OwnVersion":
        """Convert a row: item, title, content as text, time."""
        item_id, title, content, written_at = row
        return cls(str(item_id), title, msgspec.Raw(content.encode()), written_at)


def own_versions(sender: User) -> Iterator[OwnVersion]:
    """All versions of the sender's items, oldest first."""
    rows = ItemVersion.objects.filter(item__sender=sender).exclude(item__status=Status.DELETED)
    columns = ("item_id", "title", Cast("content", TextField()), "written_at")
    yield from map(OwnVersion.of, rows.order_by("item_id", "pk").values_list(*columns).iterator())
