"""Idempotency keys: repeating a `publish` returns the first item."""

import hashlib
import json
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from django.db import connection
from django.db.models.functions import Now

from accounts.models import User
from items.models import IdempotencyKey, Item
from web.refusals import ConflictError, RefusalError

LIFE = timedelta(days=1)


class IdempotencyConflictError(ConflictError):
    """The key was used for other content."""

    sentence = "The Idempotency-Key was used for something else."


class IdempotencyGoneError(RefusalError):
    """The key's item was deleted."""

    status = HTTPStatus.NOT_FOUND


def fingerprint_of(fields: dict[str, Any]) -> str:
    """A digest of the fields of a call."""
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def published_under(key: str, sender: User, fingerprint: str) -> Item | None:
    """The item published with this key. Locks the key. Raises IdempotencyConflictError, IdempotencyGoneError."""
    with connection.cursor() as cursor:  # the second of two concurrent calls waits for the first
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))", [key, sender.pk])
    used = IdempotencyKey.objects.select_related("item").filter(sender=sender, key=key).first()
    if used is None:
        return None
    if used.fingerprint != fingerprint:
        raise IdempotencyConflictError
    if not Item.objects.visible_to(sender).filter(pk=used.item_id).exists():
        raise IdempotencyGoneError
    return used.item


def keys_of_thread(key: str, posts: int) -> list[str]:
    """The keys of a thread's posts. The first is the caller's; no key: none."""
    if not key:
        return [""] * posts
    digest = hashlib.sha256(key.encode()).hexdigest()
    return [key, *(f"{digest} {place}" for place in range(1, posts))]


def store_key(key: str, item: Item, fingerprint: str) -> None:
    """Store the key of an item."""
    IdempotencyKey.objects.create(sender=item.sender, key=key, fingerprint=fingerprint, item=item)


def forget() -> int:
    """Delete old keys. Returns their number."""
    return IdempotencyKey.objects.filter(created_at__lt=Now() - LIFE).delete()[0]
