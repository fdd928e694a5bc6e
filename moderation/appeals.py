"""Appeals against decisions: one each, answered once, by another moderator where there is one."""

from typing import Any

from django.contrib.auth.models import Permission
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from accounts import addresses, review
from accounts.models import User
from moderation import actions, pictures, senders
from moderation.decisions import appeal_of, decisions_about, may_appeal, newest_about
from moderation.log import log_decision
from moderation.models import Appeal, AppealState, Case, CaseState, Decision, SenderKind, SenderRule, Verb
from notifications import actions as notifications
from web.refusals import ConflictError, MissingError


class AppealedError(ConflictError):
    code = "appealed"
    sentence = "You have already appealed this decision."


class TooLateError(ConflictError):
    code = "too_late"
    sentence = "A decision can be appealed for 30 days."


class AnsweredError(Exception):
    """Another moderator answered the appeal meanwhile."""


def moderators() -> QuerySet[User]:
    """Staff who may decide cases."""
    permissions = Permission.objects.filter(content_type__app_label="moderation", codename="decide_case")
    by_group = User.groups.through.objects.filter(group__permissions__in=permissions).values("user")
    by_themselves = User.user_permissions.through.objects.filter(permission__in=permissions).values("user")
    permitted = User.objects.filter(is_superuser=True).values("pk").union(by_group, by_themselves)
    return User.objects.active().filter(pk__in=permitted, is_staff=True)


def appeal(*, user: User, decision_id: int, text: str) -> Appeal:
    """Appeal a decision about the user. Raises MissingError, AppealedError, TooLateError."""
    decision = decisions_about(user).filter(pk=decision_id).first()
    if decision is None:
        raise MissingError
    if appeal_of(decision):
        raise AppealedError
    if not may_appeal(decision):
        raise TooLateError
    try:
        with transaction.atomic():
            row = Appeal.objects.create(decision=decision, text=text)
            _notify_moderators(row, user)
    except IntegrityError as error:  # of two at once, the first counts
        raise AppealedError from error
    return row


def _notify_moderators(row: Appeal, user: User) -> None:
    able = moderators().exclude(pk=user.pk)
    ids = list(able.values_list("pk", flat=True))
    others = [pk for pk in ids if pk != row.decision.by_id]
    notifications.notify_staff(user_ids=others or ids, detail="appeal", subject_id=row.pk)


def waiting_appeals(by: User) -> QuerySet[Appeal]:
    """Appeals that wait for an answer, of members who still exist, and not of the reader."""
    waiting = Appeal.objects.filter(state=AppealState.WAITING, decision__user__deleted_at=None)
    return waiting.exclude(decision__user=by)


def check_may_answer(row: Appeal, by: User) -> None:
    """Raise JudgeError if `by` may not answer: their own appeal, or their own decision if another can."""
    review.check_judge(row.decision.user, by)
    if row.decision.by_id == by.pk and moderators().exclude(pk__in=[by.pk, row.decision.user_id]).exists():
        raise review.JudgeError(_("You made this decision. Another moderator has to answer the appeal."))


@transaction.atomic
def answer(*, appeal_id: int, by: User, accepts: bool, text: str = "") -> Appeal:
    """Accept or reject an appeal. Accepting undoes what still stands. Raises AnsweredError, JudgeError."""
    rows = Appeal.objects.select_for_update(of=("self",)).select_related("decision__user", "decision__item__sender")
    row = rows.get(pk=appeal_id)
    check_may_answer(row, by)
    if row.state != AppealState.WAITING:
        raise AnsweredError
    decision = row.decision
    subject = decision.user
    assert subject is not None  # noqa: S101 (what is told is told to somebody)
    row.state = AppealState.ACCEPTED if accepts else AppealState.REJECTED
    row.answer, row.answered_by, row.answered_at = text, by, Now()
    row.save(update_fields=["state", "answer", "answered_by", "answered_at"])
    verb = Verb.GRANT if accepts else Verb.DENY
    about: dict[str, Any] = {"item": decision.item, "session_id": decision.session_id, "user": subject}
    log_decision(by, verb, **about, note=text, before={"decision": decision.verb})
    if accepts:
        _undo(decision, by)
    notifications.notify_of_decision(user=subject, decision_id=decision.pk, detail=verb.value, text=text)
    if decision.verb == Verb.BAN:
        addresses.send_notice(subject, "appeal_accepted" if accepts else "appeal_rejected", answer=text)
    return row


def _undo(decision: Decision, by: User) -> None:
    """Undo a decision, unless a later one has replaced it. A warning and an ended session leave nothing to undo."""
    user = decision.user
    assert user is not None  # noqa: S101 (what is told is told to somebody)
    match decision.verb:
        case Verb.REJECT:
            about = {"item": decision.item_id, "session_id": decision.session_id}
            case = Case.objects.filter(**about, state=CaseState.REJECTED).order_by("-pk").first()
            if case is not None:
                actions.publish_after_appeal(case=case, by=by)
        case Verb.HIDE if decision.item:
            ids = [int(number) for number in (decision.after or {}).get("pictures", ())]
            pictures.show(item=decision.item, by=by, ids=ids)
        case Verb.BAN if decision == newest_about(user, Verb.BAN):
            senders.unban(user=user, by=by, is_told=False)
        case Verb.LIST if decision == newest_about(user, Verb.LIST):
            if SenderRule.objects.filter(user=user, kind=SenderKind.BLACK).exists():
                senders.unlist_sender(user=user, by=by)


def forget_texts(*, user: User, limit: int) -> int:
    """Empty up to `limit` appeals of a deleted account. The rows stay, as the log does."""
    named = Appeal.objects.filter(decision__user=user).exclude(text="").values_list("pk", flat=True)
    return Appeal.objects.filter(pk__in=list(named[:limit])).update(text="")
