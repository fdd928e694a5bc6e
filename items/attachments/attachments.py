"""The pictures and videos of items."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction

from items.models import Item, ItemType, Status
from items.text import ContentError, media_ids
from media import actions as media
from media import attaching
from media.actions import UnusableMediaError
from media.models import MediaFile, MediaKind
from media.objects import facts_for_json
from media.offering import BlockedMediaError, check_allowed

KINDS = {ItemType.IMAGE: MediaKind.IMAGE, ItemType.VIDEO: MediaKind.VIDEO}
FIELD = "content.media"


class UnfinishedError(ContentError):
    """A video of the item is still being converted."""


def claim_media(item: Item, *, takes_unfinished: bool = False) -> list[MediaFile]:
    """Lock a new item's media and take their facts. Raises ContentError, UnfinishedError."""
    ids = media_ids(item.content)
    if not ids:
        return []
    try:
        rows = attaching.claim(owner_id=item.sender_id, ids=ids, takes_unfinished=takes_unfinished)
        attaching.check_combination([row.kind for row in rows])
    except attaching.UnfinishedMediaError as error:
        raise UnfinishedError(str(error), field=FIELD) from error
    except UnusableMediaError as error:
        raise ContentError(str(error), field=FIELD) from error
    wanted = KINDS.get(ItemType(item.type))
    if any(row.kind != wanted for row in rows):
        raise ContentError(f"Media of an item of type {item.type} must be of that type.", field=FIELD)
    try:
        check_allowed(rows, owner_id=item.sender_id)
    except BlockedMediaError as error:
        raise ContentError(str(error), field=FIELD) from error
    item.media = facts_for_json(rows)
    return rows


def reorder_media(item: Item, content: dict[str, Any]) -> dict[str, Any]:
    """The `content` of an edit with the item's media in the order that it asks for. Hidden media stay. Raises
    ContentError if media are added or missing.
    """
    known, shown_ids = media_ids(item.content), [int(entry["id"]) for entry in item.media]
    if not known:
        if content.get("media"):
            raise ContentError("You can't add media to a published item.", field=FIELD)
        return content
    if "media" not in content:
        return content | {"media": item.content["media"]}
    asked = media_ids(content)
    hidden = [number for number in known if number not in shown_ids and number not in asked]
    if sorted(asked + hidden) != sorted(known):
        raise ContentError("An edit can reorder media, but not add or remove any.", field=FIELD)
    asked += hidden
    if asked != known:
        attaching.set_order(asked, item_id=item.pk)
        write_facts(item, attaching.lock_media_of_item(item.pk))
    return content | {"media": [str(number) for number in asked]}


def describe(item: Item, said: Mapping[str, tuple[str, tuple[float, float]]]) -> None:
    """Change descriptions and focuses by media id. Raises MediaError."""
    if not said:
        return
    Item.objects.select_for_update(no_key=True).get(pk=item.pk)  # lock the item before its media, as all verbs do
    for row in attaching.lock_media_of_item(item.pk):
        description, focus = said.get(str(row.pk), (row.description, (row.focus_x, row.focus_y)))
        if (description, *focus) != (row.description, row.focus_x, row.focus_y):
            media.describe(medium=row, description=description, focus=focus)


def withdraw(item: Item) -> None:
    """Give an item's files new addresses."""
    if item.media or item.content.get("media"):  # all of them may be hidden
        is_deleted = item.status == Status.DELETED
        rows = attaching.withdraw_media(item.pk, for_good=is_deleted)
        write_facts(item, [] if is_deleted else rows)


@transaction.atomic
def rename_files(item_ids: Iterable[int]) -> None:
    """Give the files of items new addresses. Those of deleted ones have one."""
    items = _locked(item_ids)
    renamed = attaching.rename_media_of_items(item.pk for item in items)
    for item in items:
        item.media = facts_for_json(renamed.get(item.pk, ()))
    Item.objects.bulk_update(items, ["media"])


@transaction.atomic
def rewrite_facts(item_ids: Iterable[int]) -> None:
    """Copy the present facts of media into items."""
    items = _locked(item_ids)
    for item in items:
        refresh_facts(item)
    Item.objects.bulk_update(items, ["media"])


def _locked(item_ids: Iterable[int]) -> list[Item]:
    """These items without deleted ones."""
    rows = Item.objects.select_for_update(no_key=True).filter(pk__in=item_ids).exclude(status=Status.DELETED)
    return list(rows.order_by("pk"))


def restore(item: Item) -> None:
    """Undo `withdraw`."""
    if not item.media and item.content.get("media"):
        write_facts(item, attaching.restore_media(item.pk))


def refresh_facts(item: Item) -> None:
    """Update the media facts of an item, unsaved."""
    if item.media:
        item.media = facts_for_json(attaching.lock_media_of_item(item.pk))


def write_facts(item: Item, rows: list[MediaFile]) -> None:
    """Write the facts of media into the item's row."""
    item.media = facts_for_json(rows)
    Item.objects.filter(pk=item.pk).update(media=item.media)
