from collections.abc import Sequence
from typing import Any

from django.dispatch import receiver
from django.utils import timezone

from accounts.export import ExportFile
from accounts.models import User
from accounts.review import Submission
from accounts.signals import account_purged, export_requested, session_held, suspension_asked, text_submitted
from accounts.signing_in.suspension import Suspension
from items.models import Item
from items.signals import held_shown, item_held, item_submitted, writing_began
from media.models import MediaFile
from media.signals import media_blocked, media_offered, medium_opened
from moderation import actions, appeals, decisions, export, hashes, reading, reasons, reports, rules, senders, waiting


@receiver(item_submitted)
def check_item(sender: type[Item], item: Item, **kwargs: Any) -> list[str]:
    """Check an item before it is published."""
    return [str(reason) for reason in rules.item_reasons(item)]


@receiver(writing_began)
def hold_notice(sender: object, author: User, **kwargs: Any) -> str:
    """What authors learn before they write: until when their posts with links are held, or ""."""
    until = rules.links_held_until(author)
    return reasons.links_held_notice(until) if until else ""


@receiver(held_shown)
def hold_reasons(sender: object, item_ids: list[int], **kwargs: Any) -> dict[int, str]:
    """Why these items wait, and how long that takes."""
    wait = waiting.usual_wait()
    return {item_id: reasons.reasons_for_author(codes, wait) for item_id, codes in waiting.reasons_of(item_ids)}


@receiver(item_held)
def write_case(sender: type[Item], item: Item, reasons: list[str], **kwargs: Any) -> None:
    """Open a case in the transaction that holds the item."""
    actions.record_hold(item=item, reasons=reasons, rules=rules.hit_rules(rules.item_text(item)))
    if any(reason.startswith("picture:") for reason in reasons):
        found = [held.rule for held in hashes.matching_rules(item)]
        hashes.count_attempts(user_id=item.sender_id, rules=found, item=item)


@receiver(media_offered)
def check_media(sender: type[MediaFile], media: Sequence[MediaFile], is_face: bool, **kwargs: Any) -> list[int]:
    """Check media before they are kept or used."""
    return hashes.refusing_rules(media, is_face=is_face)


@receiver(medium_opened)
def may_open(sender: type[MediaFile], medium: MediaFile, user: User, **kwargs: Any) -> bool:
    """Whether staff may see a medium."""
    return reading.may_open(medium, user)


@receiver(media_blocked)
def count_attempts(sender: type[MediaFile], owner_id: int, rules: Sequence[int], **kwargs: Any) -> None:
    """Record an attempt to send blocked media, after its rollback."""
    hashes.count_attempts(user_id=owner_id, rules=rules)


@receiver(text_submitted)
def check_text(sender: object, submission: Submission, **kwargs: Any) -> list[str]:
    """Check a text before it is saved."""
    return [str(reason) for reason in rules.submission_reasons(submission)]


@receiver(session_held)
def write_session_case(
    sender: object, session_id: int, author: User, text: str, reasons: list[str], **kwargs: Any
) -> None:
    """Open a case in the transaction that holds the session."""
    found = rules.hit_rules(text)
    actions.record_session_hold(session_id=session_id, host=author, reasons=reasons, rules=found)


@receiver(suspension_asked)
def suspension_of(sender: type[User], user: User, **kwargs: Any) -> Suspension | None:
    """The user's suspension. One whose time is over ends here."""
    found = decisions.suspension_of(user)
    if found and found.until and found.until <= timezone.now() and senders.end_suspension(user_id=user.pk):
        return None
    return found


@receiver(account_purged)
def forget_reporter(sender: type[User], user: User, limit: int, **kwargs: Any) -> int:
    """Delete up to `limit` rows of a deleted account."""
    taken = 0
    for forget in (reports.forget_reporter, hashes.forget_user, appeals.forget_texts):
        taken += forget(user=user, limit=limit - taken) if taken < limit else 0
    return taken


@receiver(export_requested)
def export_reports(sender: type[User], reader: User, **kwargs: Any) -> list[ExportFile]:
    """The reader's reports, and the decisions about them, for the export."""
    return export.files(reader)
