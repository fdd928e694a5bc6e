"""Bans, black list and white list. Each action is one transaction and, except reactivating, logs a decision."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from accounts import addresses
from accounts.actions import end_sessions_and_tokens
from accounts.deactivation import deactivate, reactivate
from accounts.models import User
from accounts.review import check_judge
from moderation.decisions import NONE, Grounds, log_for_subject
from moderation.log import log_decision
from moderation.models import SenderKind, SenderRule, Verb

REASON_LENGTH = 200
ENDED_AT_ONCE = 500
"""Suspensions that a run ends."""
OVER = "SELECT until FROM moderation_senderrule WHERE until <= now()"
"""Since when ended suspensions wait."""


def may_be_banned(user: User, by: User | None) -> bool:
    """Whether `by` (None: the operator) may ban the user. Nobody may ban staff or themselves."""
    return not (user.is_staff or user.is_superuser or user == by)


@transaction.atomic
def ban(
    *, user: User, by: User | None, reason: str = "", grounds: Grounds = NONE, until: datetime | None = None
) -> bool:
    """Deactivate a user and end sessions and tokens. False if already banned. Raises PermissionError.

    `reason`: for colleagues. `grounds`: for the user. `until`: it ends by itself (`end_suspensions`).
    """
    user = User.objects.locked().get(pk=user.pk)
    if not may_be_banned(user, by):
        raise PermissionError("Staff is not banned here.")
    before = _rule_of(user)
    if before and before.kind == SenderKind.BAN:
        return False
    _save_rule(user, SenderKind.BAN, by, reason, until)
    end_sessions_and_tokens(user=user)
    was_active = deactivate(user=user)
    log_for_subject(
        by,
        Verb.BAN,
        user=user,
        note=reason,
        grounds=grounds,
        until=until,
        before={"list": before.kind if before else None, "is_active": was_active},
        after={"list": SenderKind.BAN, "is_active": False},
    )
    return True


@transaction.atomic
def unban(*, user: User, by: User | None, reason: str = "", is_told: bool = True) -> bool:
    """Lift a ban, and write the user if `is_told`. False without one. Rejected items stay so. Raises JudgeError."""
    check_judge(user, by)
    rule = _rule_of(User.objects.locked().get(pk=user.pk))
    if rule is None or rule.kind != SenderKind.BAN:
        return False
    _lift(rule, by, reason)
    if is_told:
        addresses.send_notice(user, "suspension_lifted")
    return True


def end_suspensions() -> int:
    """End the suspensions whose time is over."""
    over = SenderRule.objects.filter(until__lte=Now()).order_by("until").values_list("user", flat=True)
    return sum(end_suspension(user_id=user_id) for user_id in over[:ENDED_AT_ONCE])


@transaction.atomic
def end_suspension(*, user_id: int) -> bool:
    """End a suspension if its time is over."""
    rule = _rule_of(User.objects.locked().get(pk=user_id))
    if rule is None or rule.kind != SenderKind.BAN or rule.until is None or rule.until > timezone.now():
        return False
    _lift(rule, None, "")
    return True


def _lift(rule: SenderRule, by: User | None, reason: str) -> None:
    rule.delete()
    is_active = reactivate(user=rule.user)
    before = {"list": SenderKind.BAN, "is_active": False}
    after = {"list": None, "is_active": is_active}
    log_decision(by, Verb.UNBAN, user=rule.user, note=reason, before=before, after=after)


@transaction.atomic
def reactivate_unless_banned(*, user: User) -> bool:
    """Reactivate a user unless they are banned. False if nothing changed."""
    rule = _rule_of(User.objects.locked().get(pk=user.pk))
    return (rule is None or rule.kind != SenderKind.BAN) and reactivate(user=user)


@transaction.atomic
def list_sender(
    *, user: User, kind: str, by: User, reason: str = "", until: datetime | None = None, grounds: Grounds = NONE
) -> SenderRule:
    """Replace a sender's rule by a list or ban. Raises PermissionError and JudgeError."""
    if kind == SenderKind.BAN:
        ban(user=user, by=by, reason=reason, grounds=grounds, until=until)
        return SenderRule.objects.get(user=user)
    unban(user=user, by=by, reason=reason)
    before = _rule_of(user)
    rule = _save_rule(user, kind, by, reason)
    facts: dict[str, Any] = {"before": {"list": before.kind if before else None}, "after": {"list": kind}}
    if kind == SenderKind.BLACK:
        log_for_subject(by, Verb.LIST, user=user, note=reason, grounds=grounds, **facts)
    else:
        log_decision(by, Verb.LIST, user=user, note=reason, **facts)
    return rule


@transaction.atomic
def limit(*, user: User, by: User, reason: str = "", grounds: Grounds = NONE) -> bool:
    """Hold all later items of a user for review. False if already so, or banned. Raises JudgeError."""
    check_judge(user, by)
    before = _rule_of(User.objects.locked().get(pk=user.pk))
    if before and before.kind in (SenderKind.BLACK, SenderKind.BAN):
        return False
    list_sender(user=user, kind=SenderKind.BLACK, by=by, reason=reason, grounds=grounds)
    return True


@transaction.atomic
def unlist_sender(*, user: User, by: User, reason: str = "") -> bool:
    """Remove a sender's rule, and lift a ban. False without a rule. Raises JudgeError."""
    if unban(user=user, by=by, reason=reason):
        return True
    rule = _rule_of(user)
    if rule is None:
        return False
    rule.delete()
    log_decision(by, Verb.UNLIST, user=user, note=reason, before={"list": rule.kind}, after={"list": None})
    return True


def _rule_of(user: User) -> SenderRule | None:
    """The user's rule, or None. The user must be locked, so that nobody else writes it."""
    return SenderRule.objects.filter(user=user).first()


def _save_rule(user: User, kind: str, by: User | None, reason: str, until: datetime | None = None) -> SenderRule:
    fields = {"kind": kind, "by": by, "reason": reason[:REASON_LENGTH], "until": until}
    return SenderRule.objects.update_or_create(user=user, defaults=fields)[0]
