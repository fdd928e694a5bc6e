"""Actions for readers' reports. Each is one transaction and locks the item before the case."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts import review
from accounts.models import User
from items import actions as items
from items.models import Item, Status
from media import attaching
from moderation.actions import open_account_case, open_case, open_session_case, record_session_hold
from moderation.appeals import moderators
from moderation.log import logger
from moderation.models import Case, CaseSource, CaseState, Report, SenderKind, SenderRule
from notifications import actions as notifications
from web.refusals import RefusalError


class OwnItemError(RefusalError):
    """Users cannot report themselves, their own items or sessions."""


@transaction.atomic
def report(*, item: Item, reporter: User, reason: str, text: str = "", rule: int | None = None) -> bool:
    """Report a visible item, or a repost's original. `rule`: of the site. False if reported before. Raises
    OwnItemError.

    Reports by `MODERATION_REPORTS` readers send it back into review, unless its sender is white-listed or staff, or a
    moderator approved the current text.
    """
    item = (
        Item.objects.select_for_update(no_key=True, of=("self",))
        .select_related("sender")
        .get(pk=item.repost_of_id or item.pk)
    )
    if item.sender_id == reporter.pk:
        raise OwnItemError("You can't report your own item.")
    if Report.objects.filter(item=item, reporter=reporter).exists():
        return False
    case = open_case(item=item, source=CaseSource.REPORT, reasons=[])
    _add(case, item=item, reporter=reporter, reason=reason, text=text, rule_id=rule)
    if item.is_private:
        attaching.show_to_staff(item.pk)
    logger.info("reported item=%s sender=%s reason=%s", item.pk, item.sender_id, reason)
    if item.status == Status.PUBLISHED and _is_enough({"item": item}, item.sender, item.modified_at):
        items.hold(item=item, reasons=[f"reports: from {settings.MODERATION_REPORTS} readers"])
    return True


@transaction.atomic
def report_session(*, session_id: int, reporter: User, reason: str, text: str = "", rule: int | None = None) -> bool:
    """Report a visible live session, by the rules of `report`. False if it is gone or was reported before. Raises
    OwnItemError.
    """
    subject = review.sessions.lock(session_id)
    if subject is None or Report.objects.filter(session_id=session_id, reporter=reporter).exists():
        return False
    if subject.author.pk == reporter.pk:
        raise OwnItemError("You can't report your own session.")
    case = open_session_case(session_id, subject.author, CaseSource.REPORT, [], None)
    _add(case, session_id=session_id, reporter=reporter, reason=reason, text=text, rule_id=rule)
    logger.info("reported session=%s host=%s reason=%s", session_id, subject.author.pk, reason)
    known = {"session_id": session_id}
    if subject.status == review.ReviewStatus.PUBLISHED and _is_enough(known, subject.author, subject.modified_at):
        review.sessions.judge(session_id, review.ReviewStatus.IN_REVIEW)
        why = f"reports: from {settings.MODERATION_REPORTS} readers"
        record_session_hold(session_id=session_id, host=subject.author, reasons=[why], rules=set())
    return True


@transaction.atomic
def report_account(*, account: User, reporter: User, reason: str, text: str = "", rule: int | None = None) -> bool:
    """Report an account. Reports only open its case, however many they are. False if the reader's last one still waits.
    Raises OwnItemError.
    """
    if account.pk == reporter.pk:
        raise OwnItemError("That is your own account.")
    User.objects.select_for_update(no_key=True).only("pk").get(pk=account.pk)  # so that there is one open case
    earlier = Report.objects.filter(account=account, reporter=reporter)
    if earlier.filter(case__state=CaseState.OPEN).exists():
        return False
    case = open_account_case(account)
    _add(case, account=account, reporter=reporter, reason=reason, text=text, rule_id=rule)
    logger.info("reported account=%s reason=%s", account.pk, reason)
    return True


def _add(case: Case, *, reporter: User, **fields: Any) -> None:
    """Add a report to a case, which is locked. The first one notifies moderators."""
    if not case.reports.exists():
        able = moderators().exclude(pk__in=[reporter.pk, case.sender.pk])
        notifications.notify_staff(
            user_ids=list(able.values_list("pk", flat=True)), detail="report", subject_id=case.pk
        )
    Report.objects.create(case=case, reporter=reporter, **fields)


def forget_reporter(*, user: User, limit: int) -> int:
    """Delete up to `limit` reports by a deleted account. Cases stay."""
    reports = Report.objects.filter(reporter=user).order_by("pk").values("pk")[:limit]
    return Report.objects.filter(pk__in=reports).delete()[0]


def _is_enough(subject: dict[str, Any], sender: User, modified_at: datetime) -> bool:
    threshold = settings.MODERATION_REPORTS
    if not threshold or sender.is_staff:
        return False
    approvals = Case.objects.filter(**subject, state=CaseState.APPROVED).order_by("-decided_at")
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
