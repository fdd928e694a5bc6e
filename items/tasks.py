from items import counts, idempotency, polls, scheduling
from items.filters import filters
from items.link_cards import actions as link_cards
from storage.queue import only_if_rows, task


@task("items.forget_idempotency_keys")
def forget_idempotency_keys() -> None:
    """Periodic: delete old idempotency keys."""
    idempotency.forget()


@task("items.fold_counts")
@only_if_rows("items.fold_counts", "SELECT FROM items_countchange")
def fold_counts() -> None:
    """Periodic: add the staged changes to the counts."""
    counts.fold()


@task("items.forget_filters")
def forget_filters() -> None:
    """Periodic: delete expired filters."""
    filters.forget_expired()


@task("items.end_polls")
@only_if_rows(
    "items.end_polls", "SELECT closes_at FROM items_poll WHERE NOT is_told AND closes_at <= now()", work="ends of polls"
)
def end_polls() -> None:
    """Periodic: tell of polls that ended."""
    polls.end_polls()


@task("items.sweep_link_cards")
def sweep_link_cards() -> None:
    """Periodic: delete cards that no item has."""
    link_cards.sweep()


@task("items.publish_scheduled")
@only_if_rows(
    "items.publish_scheduled",
    "SELECT publish_at FROM items_scheduledpost WHERE publish_at <= now() AND failure = '' AND awaits IS NULL",
    work="scheduled posts",
)
def publish_scheduled() -> None:
    """Periodic: publish due posts."""
    scheduling.publish_due()
