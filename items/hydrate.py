"""From item ids to what readers get: the item as the API shows it, for every feed and page.

Plain rows and msgspec structs: a page of 20 costs a twentieth of model serializers.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
from django.contrib.auth.models import AnonymousUser
from msgspec import UNSET, UnsetType

from accounts.models import User
from feedsite.connections import fetch, id_array
from items.models import Item

# What `body` needs, in its order; FROM items_item i JOIN accounts_user s ON s.id = i.sender_id.
COLUMNS = """
    i.id, i.type, i.title, i.content::text, i.extra_info::text, i.visibility, i.status, i.created_at, i.modified_at,
    i.reply_to_id, i.repost_of_id, s.id, s.username, s.display_name, s.is_big_v,
    (SELECT count(*) FROM items_item r WHERE r.reply_to_id = i.id AND r.status = 'published'),
    (SELECT count(*) FROM items_item r WHERE r.repost_of_id = i.id AND r.status = 'published')
"""
BY_ID = f"""
    SELECT {COLUMNS} FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS wanted (id, place)
    JOIN items_item i ON i.id = wanted.id JOIN accounts_user s ON s.id = i.sender_id
    ORDER BY wanted.place
"""  # noqa: S608 (a constant)


Object = Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={"type": "object"})]
Time = Annotated[datetime, msgspec.Meta(tz=True)]


class Sender(msgspec.Struct):
    """Who published an item, as far as a feed shows it."""

    id: str
    username: str
    display_name: str
    is_big_v: bool

    @property
    def name(self) -> str:
        return self.display_name or self.username


class Counts(msgspec.Struct):
    likes: int
    replies: int
    reposts: int


class ItemBody(msgspec.Struct):
    """An item as every reader gets it (shared contract: an item). Ids are decimal strings, times UTC."""

    id: str
    type: str
    title: str
    content: Object
    extra_info: Object
    visibility: str
    sender: Sender
    created_at: Time
    modified_at: Time
    reply_to: str | None
    repost_of: "ItemBody | None"
    counts: Counts
    liked: bool
    reposted: bool
    reason: str | None
    status: str | UnsetType = UNSET
    """To its sender only."""

    @property
    def content_fields(self) -> dict[str, Any]:
        """The content as a dict."""
        fields: dict[str, Any] = msgspec.json.decode(self.content)
        return fields

    @property
    def text(self) -> str:
        """What people read of the content."""
        text = self.content_fields.get("text", "")
        return text if isinstance(text, str) else ""

    @property
    def url(self) -> str:
        """The https address that the content names, or nothing."""
        url = self.content_fields.get("url", "")
        return url if isinstance(url, str) and url.startswith("https://") else ""

    @property
    def is_edited(self) -> bool:
        return (self.modified_at - self.created_at).total_seconds() > 1


def body(row: Sequence[Any], reader_id: int | None, reason: str | None = None) -> ItemBody:
    """The body of one row of `COLUMNS`. A repost's original is embedded by `embed`."""
    return ItemBody(
        id=str(row[0]),
        type=row[1],
        title=row[2],
        content=msgspec.Raw(row[3].encode()),
        extra_info=msgspec.Raw(row[4].encode()),
        visibility=row[5],
        status=row[6] if row[11] == reader_id else UNSET,
        created_at=row[7],
        modified_at=row[8],
        reply_to=str(row[9]) if row[9] else None,
        repost_of=None,
        sender=Sender(str(row[11]), row[12], row[13], row[14]),
        counts=Counts(0, row[15], row[16]),
        liked=False,
        reposted=False,
        reason=reason,
    )


def embed(bodies: Iterable[ItemBody], originals: dict[str, int], reader: User | AnonymousUser) -> None:
    """Put the originals that `reader` may see into their reposts: `originals` maps a repost's id to its
    original's.
    """
    if not originals:
        return
    visible = Item.objects.visible_to(reader).filter(pk__in=set(originals.values())).values_list("pk", flat=True)
    by_id = {int(original.id): original for original in hydrate(list(visible), reader, nested=True)}
    for repost in bodies:
        if repost.id in originals:
            repost.repost_of = by_id.get(originals[repost.id])


def hydrate(ids: Sequence[int], reader: User | AnonymousUser, *, nested: bool = False) -> list[ItemBody]:
    """The bodies of these items in this order. Who may see them has been checked by the caller."""
    if not ids:
        return []
    rows = fetch(BY_ID, {"ids": id_array(ids)})
    bodies = [body(row, reader.pk) for row in rows]
    if not nested:
        embed(bodies, {str(row[0]): row[10] for row in rows if row[10]}, reader)
    return bodies
