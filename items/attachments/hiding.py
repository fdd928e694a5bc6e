"""The verbs with which moderators hide media of items."""

from collections.abc import Callable, Sequence

from django.db import transaction

from items.attachments import attachments
from items.models import Item, Status
from items.signals import item_edited
from media import attaching
from media.models import MediaFile


@transaction.atomic
def hide_media(*, item: Item, ids: Sequence[int] | None = None) -> list[int]:
    """Hide media of an item (None: all). Returns the newly hidden ids."""
    return _change(item, lambda: attaching.hide(item.pk, ids))


@transaction.atomic
def show_media(*, item: Item, ids: Sequence[int] | None = None) -> list[int]:
    """Show hidden media again (None: all). Returns their ids."""
    return _change(item, lambda: attaching.unhide(item.pk, ids))


def _change(item: Item, change: Callable[[], list[MediaFile]]) -> list[int]:
    rows = Item.objects.select_for_update(no_key=True, of=("self",)).select_related("sender")
    item = rows.get(pk=item.pk)
    if item.status == Status.DELETED:
        return []
    changed = change()
    if changed:
        attachments.write_facts(item, attaching.lock_media_of_item(item.pk))
        if item.status == Status.PUBLISHED:
            item_edited.send(sender=Item, item=item, visibility_before=item.visibility)
    return [row.pk for row in changed]
