"""Celery tasks of items."""

from celery import shared_task

from items import counts, filters, idempotency, polls
from storage.queue import asks


@shared_task(name="items.forget_idempotency_keys")
def forget_idempotency_keys() -> None:
    """Periodic: delete old idempotency keys."""
    idempotency.forget()


@shared_task(name="items.fold_counts")
@asks("items.fold_counts", "SELECT FROM items_countchange")
def fold_counts() -> None:
    """Periodic: add the staged changes to the counts."""
    counts.fold()


@shared_task(name="items.forget_filters")
def forget_filters() -> None:
    """Periodic: delete expired filters."""
    filters.forget_expired()


@shared_task(name="items.end_polls")
@asks("items.end_polls", "SELECT FROM items_poll WHERE NOT is_told AND closes_at <= now() LIMIT 1")
def end_polls() -> None:
    """Periodic: tell the sender and the voters of polls that ended."""
    polls.end_polls()
