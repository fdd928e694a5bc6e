"""The verbs that change items. Each is one transaction; what must commit with it is done by receivers of the
signal.
"""

import hashlib
import json
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now

from accounts.models import User
from items.models import IdempotencyKey, Item, ItemType, Status, Visibility
from items.signals import item_published
from items.text import check_content

ID_ATTEMPTS = 3
IDEMPOTENCY_LIFE = timedelta(days=1)


class IdempotencyConflictError(Exception):
    """The key was used before, for something else."""


@transaction.atomic
def publish(
    *,
    sender: User,
    content: dict[str, Any],
    type: str = ItemType.TEXT,  # noqa: A002 (the field's name)
    title: str = "",
    extra_info: dict[str, Any] | None = None,
    visibility: str = Visibility.PUBLIC,
    reply_to: Item | None = None,
    idempotency_key: str = "",
) -> Item:
    """Publish an item; it is in every follower's home when this returns. Raises ContentError,
    IdempotencyConflictError.

    With an `idempotency_key` that the sender used before for the same item, that item is returned and nothing is
    published.
    """
    check_content(type, content)
    fields: dict[str, Any] = {
        "type": type,
        "title": title,
        "content": content,
        "extra_info": extra_info or {},
        "visibility": visibility,
        "reply_to_id": reply_to.pk if reply_to else None,
    }
    fingerprint = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
    if idempotency_key:
        with connection.cursor() as cursor:  # the second of two concurrent calls waits for the first to commit
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))", [idempotency_key, sender.pk])
        used = IdempotencyKey.objects.select_related("item").filter(sender=sender, key=idempotency_key).first()
        if used:
            if used.fingerprint != fingerprint:
                raise IdempotencyConflictError
            return used.item
    item = _insert(Item(sender=sender, **fields))
    if idempotency_key:
        IdempotencyKey.objects.create(sender=sender, key=idempotency_key, fingerprint=fingerprint, item=item)
    item_published.send(sender=Item, item=item, again=False)
    return item


def _insert(item: Item) -> Item:
    # The sequence repeats after 4096 ids: a clock that stepped back may meet an id again. The primary key notices.
    for attempt in range(1, ID_ATTEMPTS + 1):
        try:
            with transaction.atomic():
                item.save(force_insert=True)
        except IntegrityError as error:
            if "item_pkey" not in str(error) or attempt == ID_ATTEMPTS:
                raise
        else:
            return item
    raise AssertionError("unreachable")


@transaction.atomic
def edit(
    *,
    item: Item,
    title: str | None = None,
    content: dict[str, Any] | None = None,
    extra_info: dict[str, Any] | None = None,
) -> Item:
    """Change what an item says; what is None stays. Raises ContentError."""
    item = Item.objects.select_for_update(no_key=True).get(pk=item.pk)
    if content is not None:
        check_content(item.type, content)
        item.content = content
    if title is not None:
        item.title = title
    if extra_info is not None:
        item.extra_info = extra_info
    Item.objects.filter(pk=item.pk).update(
        title=item.title, content=item.content, extra_info=item.extra_info, modified_at=Now()
    )
    item.refresh_from_db(fields=["modified_at"])
    return item


def delete(*, item: Item) -> bool:
    """Soft-delete; True if it was not deleted before. Windows forget it when they are read."""
    return bool(Item.objects.exclude(status=Status.DELETED).filter(pk=item.pk).update(status=Status.DELETED))


@transaction.atomic
def restore(*, item: Item) -> bool:
    """Publish again what was deleted, rejected or held for review; True if it was not published.

    Windows may have forgotten it, so it is delivered anew.
    """
    item = Item.objects.select_for_update(no_key=True).get(pk=item.pk)
    if item.status == Status.PUBLISHED:
        return False
    item.status = Status.PUBLISHED
    item.save(update_fields=["status"])
    item_published.send(sender=Item, item=item, again=True)
    return True


@transaction.atomic
def change_visibility(*, item: Item, visibility: str) -> bool:
    """Show an item to more or fewer; True if it changed. Who may see it now may have forgotten it: it is delivered
    anew.
    """
    item = Item.objects.select_for_update(no_key=True).get(pk=item.pk)
    if item.visibility == visibility:
        return False
    item.visibility = visibility
    item.save(update_fields=["visibility"])
    if item.status == Status.PUBLISHED:
        item_published.send(sender=Item, item=item, again=True)
    return True


def forget_idempotency_keys() -> int:
    """Drop the keys of calls that nobody will repeat any more; how many."""
    return IdempotencyKey.objects.filter(created_at__lt=Now() - IDEMPOTENCY_LIFE).delete()[0]
