"""The verbs of moderation about reports by readers. Each is one transaction.

Locks are taken in one order, the item's row before the case's (moderation/actions.py).
"""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from accounts import review
from accounts.models import User
from items import actions as items
from items.models import LISTED, Item, Status
from media import attaching
from moderation.actions import open_case, open_session_case, record_session_hold
from moderation.log import logger
from moderation.models import Case, Report, SenderKind, SenderRule, Source, State


class OwnItemError(Exception):
    """Raised when users report items or sessions of their own."""


def readable(items: QuerySet[Item]) -> QuerySet[Item]:
    """The items that staff may read: of private mentions those that a person in them has reported."""
    return items.filter(Q(visibility__in=LISTED) | Exists(Report.objects.filter(item=OuterRef("pk"))))


@transaction.atomic
def report(*, item: Item, reporter: User, reason: str, text: str = "", rule: int | None = None) -> bool:
    """Report an item that the reporter sees, or of a repost its original; True if they had not yet. `rule` is the id of
    the site's rule that it breaks. Raises OwnItemError.

    It opens or joins a case. From `MODERATION_REPORTS` readers on a published item goes back into review, unless its
    sender is on the white list or staff, or a moderator has approved what it says.
    """
    item = (
        Item.objects.select_for_update(no_key=True, of=("self",))
        .select_related("sender")
        .get(pk=item.repost_of_id or item.pk)
    )
    if item.sender_id == reporter.pk:
        raise OwnItemError
    if Report.objects.filter(item=item, reporter=reporter).exists():
        return False
    case = open_case(item=item, source=Source.REPORT, reasons=[])
    Report.objects.create(item=item, reporter=reporter, reason=reason, text=text, rule_id=rule, case=case)
    if item.is_private:
        attaching.show_to_staff(item.pk)
    logger.info("reported item=%s sender=%s reason=%s", item.pk, item.sender_id, reason)
    if item.status == Status.PUBLISHED and _is_enough({"item": item}, item.sender, item.modified_at):
        items.hold(item=item, reasons=[f"reports: from {settings.MODERATION_REPORTS} readers"])
    return True


@transaction.atomic
def report_session(*, session_id: int, reporter: User, reason: str, text: str = "", rule: int | None = None) -> bool:
    """Report a live session that the reporter sees; True if they had not yet. Raises OwnItemError.

    As of an item: from `MODERATION_REPORTS` readers on a session that others see goes into review.
    """
    subject = review.sessions.lock(session_id)
    if subject is None or Report.objects.filter(session_id=session_id, reporter=reporter).exists():
        return False
    if subject.author.pk == reporter.pk:
        raise OwnItemError
    case = open_session_case(session_id, subject.author, Source.REPORT, [], None)
    Report.objects.create(session_id=session_id, reporter=reporter, reason=reason, text=text, rule_id=rule, case=case)
    logger.info("reported session=%s host=%s reason=%s", session_id, subject.author.pk, reason)
    known = {"session_id": session_id}
    if subject.status == review.Status.PUBLISHED and _is_enough(known, subject.author, subject.modified_at):
        review.sessions.judge(session_id, review.Status.IN_REVIEW)
        why = f"reports: from {settings.MODERATION_REPORTS} readers"
        record_session_hold(session_id=session_id, host=subject.author, reasons=[why], rules=set())
    return True


def forget_reporter(*, user: User, limit: int) -> int:
    """Take away what a deleted account reported, at most `limit` rows; how many. The cases stand."""
    reports = Report.objects.filter(reporter=user).order_by("pk").values("pk")[:limit]
    return Report.objects.filter(pk__in=reports).delete()[0]


def _is_enough(subject: dict[str, Any], sender: User, modified_at: datetime) -> bool:
    """Whether enough readers have reported it since a moderator approved it last: reports of before are answered, and
    those of accounts younger than `MODERATION_REPORTER_AGE` open a case but hide nothing.
    """
    threshold = settings.MODERATION_REPORTS
    if not threshold or sender.is_staff:
        return False
    approvals = Case.objects.filter(**subject, state=State.APPROVED).order_by("-decided_at")
    approved_at = approvals.values_list("decided_at", flat=True).first()
    reports = Report.objects.filter(
        **subject, reporter__date_joined__lt=timezone.now() - settings.MODERATION_REPORTER_AGE
    )
    if approved_at is not None:
        if approved_at >= modified_at:
            return False
        reports = reports.filter(created_at__gt=approved_at)
    if reports[:threshold].count() < threshold:
        return False
    return not SenderRule.objects.filter(user=sender, kind=SenderKind.WHITE).exists()
