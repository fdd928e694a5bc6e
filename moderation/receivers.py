"""Moderation's receivers of the signals from below."""

from typing import Any

from django.dispatch import receiver

from accounts.export import ExportFile
from accounts.models import User
from accounts.review import Submission
from accounts.signals import account_purged, export_requested, session_held, text_submitted
from items.models import Item
from items.signals import item_held, item_submitted
from moderation import actions, export, reports, rules


@receiver(item_submitted)
def look(sender: type[Item], item: Item, **kwargs: Any) -> list[str]:
    """Inside the transaction that would publish.

    See docs/decisions.md: Items for their sender alone, and reposts, are not looked at.
    """
    return [str(reason) for reason in rules.reasons(item)]


@receiver(item_held)
def write_case(sender: type[Item], item: Item, reasons: list[str], **kwargs: Any) -> None:
    """Inside the transaction that holds the item, and with its row locked."""
    actions.record_hold(item=item, reasons=reasons, rules=rules.hit_rules(rules.said(item)))


@receiver(text_submitted)
def look_at_text(sender: object, submission: Submission, **kwargs: Any) -> list[str]:
    """Before it is saved."""
    return [str(reason) for reason in rules.reasons_of(submission)]


@receiver(session_held)
def write_session_case(
    sender: object, session_id: int, author: User, text: str, reasons: list[str], **kwargs: Any
) -> None:
    """Inside the transaction that holds the session, and with its host's row locked."""
    found = rules.hit_rules(text)
    actions.record_session_hold(session_id=session_id, host=author, reasons=reasons, rules=found)


@receiver(account_purged)
def forget_reporter(sender: type[User], user: User, limit: int, **kwargs: Any) -> int:
    """Forget a deleted account's reports, at most `limit`; returns their number."""
    return reports.forget_reporter(user=user, limit=limit)


@receiver(export_requested)
def export_reports(sender: type[User], reader: User, **kwargs: Any) -> list[ExportFile]:
    """The files of the reader's reports, for their own data."""
    return export.files(reader)
