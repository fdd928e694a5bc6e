from collections.abc import Iterator
from datetime import datetime

import msgspec
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.export import ExportFile
from accounts.models import User
from discover import recent
from discover.recent import Views
from items.visibility import VISIBLE
from storage.connections import id_array, stream

VIEWED = f"""
    SELECT i.id, s.username FROM items_item i JOIN accounts_user s ON s.id = i.sender_id
    WHERE i.id = ANY(%(ids)s::bigint[]) AND {VISIBLE}
"""
UNWANTED = f"""
    SELECT i.id, s.username, n.created_at FROM discover_notinterested n
    JOIN items_item i ON i.id = n.item_id JOIN accounts_user s ON s.id = i.sender_id
    WHERE n.user_id = %(reader)s AND {VISIBLE} ORDER BY n.id
"""


class ViewRow(msgspec.Struct):
    """An opened post, or a reply seen below one."""

    item_id: str
    by: str
    is_reply: bool
    viewed_at: datetime


class NotInterestedRow(msgspec.Struct):
    """An unwanted item."""

    item_id: str
    by: str
    since: datetime


def files(reader: User) -> list[ExportFile]:
    """Discover's part of a user's data export."""
    views = recent.views_of(reader.pk, now=timezone.now())
    about = _("The posts you opened recently that you can still see.")
    if views is None:
        about += " " + _("We couldn't read it just now. Try again later.")
    return [
        ExportFile("history.jsonl", about, _views(reader, views) if views else ()),
        ExportFile(
            "not_interested.jsonl",
            _("The posts you're not interested in that you can still see."),
            _not_interested(reader),
        ),
    ]


def _views(reader: User, views: Views) -> Iterator[ViewRow]:
    ids = id_array(view.item_id for view in [*views.items, *views.replies])
    senders = dict(stream(VIEWED, {"ids": ids, "reader": reader.pk}))
    for is_reply, those in ((False, views.items), (True, views.replies)):
        for view in those:
            if view.item_id in senders:
                yield ViewRow(str(view.item_id), senders[view.item_id], is_reply, view.viewed_at)


def _not_interested(reader: User) -> Iterator[NotInterestedRow]:
    return (NotInterestedRow(str(item_id), *rest) for item_id, *rest in stream(UNWANTED, {"reader": reader.pk}))
