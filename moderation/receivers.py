"""What moderation does at the news from below."""

from typing import Any

from django.dispatch import receiver

from accounts.export import ExportFile
from accounts.models import User
from accounts.signals import account_purged, export_requested
from items.models import Item
from items.signals import item_held, item_submitted
from moderation import actions, export, rules


@receiver(item_submitted)
def look(sender: type[Item], item: Item, **kwargs: Any) -> list[str]:
    """Inside the transaction that would publish."""
    return [str(reason) for reason in rules.reasons(item)]


@receiver(item_held)
def write_case(sender: type[Item], item: Item, reasons: list[str], **kwargs: Any) -> None:
    """Inside the transaction that holds the item, and with its row locked."""
    actions.record_hold(item=item, reasons=reasons, rules=rules.hit_rules(item))


@receiver(account_purged)
def forget_reporter(sender: type[User], user: User, limit: int, **kwargs: Any) -> int:
    return actions.forget_reporter(user=user, limit=limit)


@receiver(export_requested)
def export_reports(sender: type[User], reader: User, **kwargs: Any) -> list[ExportFile]:
    return export.files(reader)
