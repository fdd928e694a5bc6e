"""Decides cases, acts without reports, and edits the word list. A bool result says whether anything changed.

Each action is one transaction and logs a decision. It locks the item before the case, as publishing and editing do.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from accounts import review
from accounts.models import User
from items.filters.matching import fold
from items.models import Item
from moderation import senders, subjects
from moderation.decisions import NONE, Grounds, log_for_subject
from moderation.log import log_decision
from moderation.models import Case, CaseSource, CaseState, Verb, WordRule
from notifications import actions as notifications
from storage.connections import fetch, id_array

REASONS = 20
"""Newest reasons kept of a case. Each edit of a held item may add some."""

# Leaves out removed rules, and does not lock rules against other items.
JOIN_WORDS = """
    INSERT INTO moderation_case_words (case_id, wordrule_id)
    SELECT %(case)s, rule.id FROM (
        SELECT id FROM moderation_wordrule WHERE id = ANY(%(rules)s::bigint[]) ORDER BY id FOR KEY SHARE
    ) rule
    ON CONFLICT DO NOTHING RETURNING id
"""


class DecidedError(Exception):
    """Another moderator decided the case meanwhile."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.case = case


class ChangedError(Exception):
    """The item was edited after the moderator looked."""


# --- Cases -----------------------------------------------------------------------------------------------
def open_case(*, item: Item, source: str, reasons: list[str], rules: set[int] | None = None) -> Case:
    """Add reasons to the item's open case, or open one, with the item locked."""
    return _open_case({"item": item}, {"host_id": item.sender_id}, source, reasons, rules)


def open_session_case(session_id: int, host: User, source: str, reasons: list[str], rules: set[int] | None) -> Case:
    """Add reasons to the live session's open case, or open one, with the host locked."""
    return _open_case({"session_id": session_id}, {"host": host}, source, reasons, rules)


def open_account_case(account: User) -> Case:
    """Open a case of a reported account, or find the open one, with the account locked."""
    return _open_case({"host": account, "item": None, "session_id": None}, {}, CaseSource.REPORT, [], None)


def _open_case(
    subject: dict[str, Any], fields: dict[str, Any], source: str, reasons: list[str], rules: set[int] | None
) -> Case:
    case = Case.objects.select_for_update(no_key=True).filter(**subject, state=CaseState.OPEN).first()
    if case is None:
        case = Case.objects.create(**subject, **fields, source=source, reasons=reasons)
    elif more := [reason for reason in reasons if reason not in case.reasons]:
        case.reasons = (case.reasons + more)[-REASONS:]
        case.save(update_fields=["reasons"])
    if rules:
        fetch(JOIN_WORDS, {"case": case.pk, "rules": id_array(rules)})
    return case


@transaction.atomic
def record_hold(*, item: Item, reasons: list[str], rules: set[int]) -> Case:
    """Open the case of a held item, and log it."""
    case = open_case(item=item, source=CaseSource.RULE, reasons=reasons, rules=rules)
    log_decision(None, Verb.HOLD, item=item, note="; ".join(reasons), after={"status": item.status})
    return case


@transaction.atomic
def record_session_hold(*, session_id: int, host: User, reasons: list[str], rules: set[int]) -> Case:
    """Open the case of a held live session, and log it."""
    case = open_session_case(session_id, host, CaseSource.RULE, reasons, rules)
    held = {"status": review.ReviewStatus.IN_REVIEW}
    log_decision(None, Verb.HOLD, session_id=session_id, user=host, note="; ".join(reasons), after=held)
    return case


def approve(*, case: Case, by: User, note: str = "", state: str = CaseState.OPEN, modified_at: Any = None) -> Case:
    """Publish the item, or dismiss its reports. Raises DecidedError, ChangedError, JudgeError.

    `state` and `modified_at`: what the moderator saw, so that no later edit is approved unseen.
    """
    return _decide(case, by, CaseState.APPROVED, note, state, modified_at)


@transaction.atomic
def approve_and_warn(
    *, case: Case, by: User, grounds: Grounds, note: str = "", state: str = CaseState.OPEN, modified_at: Any = None
) -> Case:
    """Publish the item, and warn its author."""
    decided = _decide(case, by, CaseState.APPROVED, note, state, modified_at, has_acted=True)
    about = "" if decided.is_of_account else _quoted(subjects.subject_of(decided))
    warn(user=decided.sender, by=by, grounds=grounds, note=note, about=about, item=decided.item)
    return decided


def publish_after_appeal(*, case: Case, by: User) -> Case:
    """Publish a rejected item again. Reporters hear nothing: their report was heard."""
    return _decide(case, by, CaseState.APPROVED, "", CaseState.REJECTED, None, is_after_appeal=True)


def reject(*, case: Case, by: User, note: str = "", state: str = CaseState.OPEN, grounds: Grounds = NONE) -> Case:
    """Hide the item from all but its sender, and tell them. Raises DecidedError, JudgeError."""
    return _decide(case, by, CaseState.REJECTED, note, state, None, grounds=grounds)


@transaction.atomic
def reject_and_limit(
    *, case: Case, by: User, note: str = "", state: str = CaseState.OPEN, grounds: Grounds = NONE
) -> Case:
    """Reject the item, and hold all later ones of its sender for review."""
    _lock_account(case)
    decided = _decide(case, by, CaseState.REJECTED, note, state, None, grounds=grounds, has_acted=True)
    senders.limit(user=decided.sender, by=by, reason=note, grounds=grounds)
    return decided


@transaction.atomic
def reject_and_ban(
    *,
    case: Case,
    by: User,
    note: str = "",
    state: str = CaseState.OPEN,
    grounds: Grounds = NONE,
    until: datetime | None = None,
) -> Case:
    """Reject the item and ban its sender."""
    _lock_account(case)
    decided = _decide(case, by, CaseState.REJECTED, note, state, None, grounds=grounds, has_acted=True)
    senders.ban(user=decided.sender, by=by, reason=note, grounds=grounds, until=until)
    return decided


def _lock_account(case: Case) -> None:
    if case.host and case.is_of_account:  # as a report of the account does
        User.objects.locked().get(pk=case.host.pk)


@transaction.atomic
def _decide(
    case: Case,
    by: User,
    to: CaseState,
    note: str,
    state: str,
    modified_at: Any,
    *,
    grounds: Grounds = NONE,
    has_acted: bool = False,
    is_after_appeal: bool = False,
) -> Case:
    subject = subjects.lock(case.item_id, case.session_id)
    case = Case.objects.select_for_update(no_key=True).get(pk=case.pk)
    review.check_judge(case.sender, by)
    if case.state != state or case.state == to:
        raise DecidedError(case)
    if modified_at is not None and subject and subject.modified_at > modified_at:
        raise ChangedError
    before = {"status": subject and subject.status, "case": case.state}
    has_changed = False
    if subject:
        has_changed = subjects.set_review_status(
            case, review.ReviewStatus.PUBLISHED if to == CaseState.APPROVED else review.ReviewStatus.REJECTED
        )
        subject = subjects.subject_of(case)
    case.state, case.decided_by, case.note = to, by, note
    case.decided_at = Now()
    case.save(update_fields=["state", "decided_by", "decided_at", "note"])
    case.refresh_from_db(fields=["decided_at"])
    verb = Verb.APPROVE if to == CaseState.APPROVED else Verb.REJECT
    after = {"status": subject and subject.status, "case": case.state}
    who = {"item": case.item} if case.item else {"session_id": case.session_id, "user": case.host}
    facts: dict[str, Any] = {**who, "note": note, "before": before, "after": after}
    if has_changed and to == CaseState.REJECTED:
        log_for_subject(by, verb, grounds=grounds, about=_quoted(subject), **facts)
    else:
        log_decision(by, verb, **facts)
    if not is_after_appeal:
        _notify_reporters(case, by, has_acted=has_acted)
    return case


def _quoted(subject: review.Subject | None) -> str:
    return " ".join(filter(None, (subject.title, subject.text))) if subject else ""


def _notify_reporters(case: Case, by: User, *, has_acted: bool) -> None:
    """Tell who reported it that moderators looked, and whether they did something. The decider knows.

    Rejecting an account's case does nothing by itself.
    """
    outcome = "reviewed" if case.state == CaseState.REJECTED else ""
    if has_acted or (case.state == CaseState.REJECTED and not case.is_of_account):
        outcome = "done"
    reporters = list(case.reports.exclude(reporter=by).values_list("reporter", flat=True))
    if reporters:
        notifications.notify_of_report(user_ids=reporters, detail=outcome)


# --- Without a report ------------------------------------------------------------------------------------
@transaction.atomic
def open_by_hand(*, by: User, note: str = "", item_id: int | None = None, session_id: int | None = None) -> Case | None:
    """Open a case without rule or report. None if there is one. Raises JudgeError."""
    subject = _lock_subject(item_id, session_id, by)
    if subject is None or subject.status == review.ReviewStatus.DELETED or _has_open_case(item_id, session_id):
        return None
    case = _case_by_hand(subject, item_id, session_id, by, note)
    about = {"item": case.item} if item_id else {"session_id": session_id, "user": subject.author}
    log_decision(by, Verb.OPEN, **about, note=note, after={"case": CaseState.OPEN})
    return case


@transaction.atomic
def hold_by_hand(*, by: User, note: str = "", item_id: int | None = None, session_id: int | None = None) -> bool:
    """Hold a published item or session for review. Raises JudgeError."""
    subject = _lock_subject(item_id, session_id, by)
    if subject is None or subject.status != review.ReviewStatus.PUBLISHED:
        return False
    case = _case_by_hand(subject, item_id, session_id, by, note)
    subjects.set_review_status(case, review.ReviewStatus.IN_REVIEW)
    about = {"item": case.item} if item_id else {"session_id": session_id, "user": subject.author}
    log_decision(
        by,
        Verb.HOLD,
        **about,
        note=note,
        before={"status": subject.status},
        after={"status": review.ReviewStatus.IN_REVIEW},
    )
    return True


@transaction.atomic
def reject_by_hand(
    *,
    by: User,
    note: str = "",
    grounds: Grounds = NONE,
    item_id: int | None = None,
    session_id: int | None = None,
) -> bool:
    """Reject an item or session, by its open case or a new one. Raises JudgeError."""
    subject = _lock_subject(item_id, session_id, by)
    if subject is None or subject.status in (review.ReviewStatus.DELETED, review.ReviewStatus.REJECTED):
        return False
    reject(case=_case_by_hand(subject, item_id, session_id, by, note), by=by, note=note, grounds=grounds)
    return True


@transaction.atomic
def end_session(*, session_id: int, by: User, note: str = "", grounds: Grounds = NONE) -> bool:
    """End or cancel a live session. Raises JudgeError."""
    subject = _lock_subject(None, session_id, by)
    if subject is None or not review.sessions.end(session_id):
        return False
    log_for_subject(
        by,
        Verb.END,
        session_id=session_id,
        user=subject.author,
        note=note,
        grounds=grounds,
        about=subject.title,
    )
    return True


@transaction.atomic
def warn(*, user: User, by: User, grounds: Grounds, note: str = "", about: str = "", item: Item | None = None) -> bool:
    """Warn a user. `about`: the text in question. False if inactive. Raises JudgeError."""
    review.check_judge(user, by)
    if not user.is_active:
        return False
    log_for_subject(by, Verb.WARN, user=user, item=item, note=note, grounds=grounds, about=about)
    return True


def _lock_subject(item_id: int | None, session_id: int | None, by: User) -> review.Subject | None:
    subject = subjects.lock(item_id, session_id)
    review.check_judge(subject and subject.author, by)
    return subject


def _has_open_case(item_id: int | None, session_id: int | None) -> bool:
    subject = Q(item=item_id) if item_id else Q(session_id=session_id)
    return Case.objects.filter(subject, state=CaseState.OPEN).exists()


def _case_by_hand(subject: review.Subject, item_id: int | None, session_id: int | None, by: User, note: str) -> Case:
    reasons = [f"moderator: @{by.username}{': ' if note else ''}{note}"]
    if item_id:
        return open_case(
            item=Item.objects.select_related("sender").get(pk=item_id), source=CaseSource.MODERATOR, reasons=reasons
        )
    assert session_id is not None  # noqa: S101 (one of the two is given)
    return open_session_case(session_id, subject.author, CaseSource.MODERATOR, reasons, None)


# --- Words -----------------------------------------------------------------------------------------------
@transaction.atomic
def save_word_rule(*, rule: WordRule, by: User) -> WordRule:
    """Add or change a rule for items published later."""
    before = WordRule.objects.select_for_update(no_key=True).filter(pk=rule.pk).first() if rule.pk else None
    rule.save()
    log_decision(
        by, Verb.WORD, note=rule.text, before=_word_rule_facts(before) if before else None, after=_word_rule_facts(rule)
    )
    return rule


@transaction.atomic
def add_words(*, texts: Iterable[str], whole: bool, note: str, by: User) -> int:
    """Add new rules, as one log entry. Returns how many are new. Raises ValidationError."""
    rules: dict[str, WordRule] = {}
    for text in texts:
        rule = WordRule(text=text, whole=whole, note=note)
        rule.clean_fields()
        rules.setdefault(rule.comparable(), rule)
    known = {fold(text) for text in WordRule.objects.values_list("text", flat=True)}
    new = [rule for folded, rule in rules.items() if folded not in known]
    if new:
        WordRule.objects.bulk_create(new, ignore_conflicts=True)
        log_decision(
            by, Verb.WORD, note=f"{len(new)} at once", after={"texts": [rule.text for rule in new], "whole": whole}
        )
    return len(new)


@transaction.atomic
def delete_word_rule(*, rule: WordRule, by: User) -> None:
    """Remove a rule. Its lock waits for items being held by it."""
    rule = WordRule.objects.select_for_update().get(pk=rule.pk)
    before = _word_rule_facts(rule)
    rule.delete()
    log_decision(by, Verb.UNWORD, note=rule.text, before=before)


def _word_rule_facts(rule: WordRule) -> dict[str, Any]:
    return {"text": rule.text, "whole": rule.whole, "is_enabled": rule.is_enabled, "note": rule.note}
