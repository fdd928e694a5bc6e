"""What moderation does at the news from below."""

from typing import Any

from django.dispatch import receiver

from items.models import Item
from items.signals import item_held, item_submitted
from moderation import actions, rules


@receiver(item_submitted)
def look(sender: type[Item], item: Item, **kwargs: Any) -> list[str]:
    """Inside the transaction that would publish."""
    return [str(reason) for reason in rules.reasons(item)]


@receiver(item_held)
def write_case(sender: type[Item], item: Item, reasons: list[str], **kwargs: Any) -> None:
    """Inside the transaction that holds the item, and with its row locked."""
    actions.record_hold(item=item, reasons=reasons, rules=rules.hit_rules(item))
