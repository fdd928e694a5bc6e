"""Celery tasks of items."""

from celery import shared_task

from items import actions


@shared_task(name="items.forget_idempotency_keys")
def forget_idempotency_keys() -> None:
    """Periodic: drop the idempotency keys that are a day old."""
    actions.forget_idempotency_keys()


@shared_task(name="items.fold_counts")
def fold_counts() -> None:
    """Periodic: add up the staged likes, replies and reposts."""
    actions.fold_counts()
