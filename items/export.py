"""What items add to a user's own data: everything that they published and what they like."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from django.utils.translation import gettext as _

from accounts.export import ExportFile
from accounts.models import User
from feedsite.connections import stream
from items.hydrate import Counts, counts
from items.visibility import VISIBLE

OWN = f"""
    SELECT i.id, i.type, i.title, i.content::text, i.extra_info::text, i.visibility, i.status, i.created_at,
        i.published_at, i.modified_at, i.reply_to_id, i.repost_of_id, {counts("i")}
    FROM items_item i WHERE i.sender_id = %(reader)s AND i.status <> 'deleted' ORDER BY i.id
"""  # noqa: S608 (constants)
LIKES = f"""
    SELECT i.id, s.username, l.created_at FROM items_like l
    JOIN items_item i ON i.id = l.item_id JOIN accounts_user s ON s.id = i.sender_id
    WHERE l.user_id = %(reader)s AND {VISIBLE} ORDER BY l.id
"""  # noqa: S608


class OwnItem(msgspec.Struct):
    """An item as its sender wrote it."""

    id: str
    type: str
    title: str
    content: msgspec.Raw
    extra_info: msgspec.Raw
    visibility: str
    status: str
    created_at: datetime
    published_at: datetime | None
    modified_at: datetime
    reply_to: str | None
    repost_of: str | None
    counts: Counts


class LikeRow(msgspec.Struct):
    item_id: str
    by: str
    liked_at: datetime


def _own(row: tuple[Any, ...]) -> OwnItem:
    return OwnItem(
        str(row[0]),
        row[1],
        row[2],
        msgspec.Raw(row[3].encode()),
        msgspec.Raw(row[4].encode()),
        row[5],
        row[6],
        row[7],
        row[8],
        row[9],
        str(row[10]) if row[10] else None,
        str(row[11]) if row[11] else None,
        Counts(*row[12]),
    )


def _rows(user: User) -> Iterator[OwnItem]:
    return map(_own, stream(OWN, {"reader": user.pk}))


def _likes(user: User) -> Iterator[LikeRow]:
    return (LikeRow(str(row[0]), row[1], row[2]) for row in stream(LIKES, {"reader": user.pk}))


def files(user: User) -> list[ExportFile]:
    return [
        ExportFile("items.jsonl", _("Everything you published, also what is in review or was rejected."), _rows(user)),
        ExportFile("likes.jsonl", _("What you like, as far as you can still see it."), _likes(user)),
    ]
