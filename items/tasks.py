"""Celery tasks of items."""

from celery import shared_task

from items import counts, filters, idempotency
from storage.queue import asks


@shared_task(name="items.forget_idempotency_keys")
def forget_idempotency_keys() -> None:
    """Periodic: drop the idempotency keys that are a day old."""
    idempotency.forget()


@shared_task(name="items.fold_counts")
@asks("items.fold_counts", "SELECT FROM items_countchange")
def fold_counts() -> None:
    """Periodic: add up the staged likes, replies and reposts."""
    counts.fold()


@shared_task(name="items.forget_filters")
def forget_filters() -> None:
    """Periodic: delete the filters that have expired."""
    filters.forget_expired()
