from celery import shared_task

from items import counts, idempotency, polls, scheduling
from items.filters import filters
from items.link_cards import actions as link_cards
from storage.queue import asks, enqueue


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
@asks(
    "items.end_polls", "SELECT closes_at FROM items_poll WHERE NOT is_told AND closes_at <= now()", work="ends of polls"
)
def end_polls() -> None:
    """Periodic: tell of polls that ended."""
    polls.end_polls()


@shared_task(name="items.give_link_card")
def give_link_card(item_id: int) -> None:
    """Give an item its card, and have the page read."""
    if link_cards.give(item_id=item_id):
        enqueue("items.read_link_pages")


@shared_task(name="items.read_link_pages")
@asks("items.read_link_pages", "SELECT asked_at FROM items_linkcard WHERE state = 'waiting'", work="link previews")
def read_link_pages() -> None:
    """Read some of the waiting pages."""
    if link_cards.read_waiting():
        enqueue("items.read_link_pages")


@shared_task(name="items.remove_refused_cards")
def remove_refused_cards(host_id: int) -> None:
    """Empty the cards of a refused host."""
    if link_cards.remove_refused(host_id=host_id):
        enqueue("items.remove_refused_cards", host_id)


@shared_task(name="items.sweep_link_cards")
def sweep_link_cards() -> None:
    """Periodic: delete cards that no item has."""
    link_cards.sweep()


@shared_task(name="items.publish_scheduled")
@asks(
    "items.publish_scheduled",
    "SELECT publish_at FROM items_scheduledpost WHERE publish_at <= now() AND failure = ''",
    work="scheduled posts",
)
def publish_scheduled() -> None:
    """Periodic: publish due posts."""
    scheduling.publish_due()
