"""Bans, black list and white list. Each action is one transaction and, except reactivating, logs a decision."""

from django.db import transaction

from accounts.actions import end_sessions_and_tokens
from accounts.deactivation import deactivate, reactivate
from accounts.models import User
from accounts.review import check_judge
from moderation.log import log_decision
from moderation.models import SenderKind, SenderRule, Verb

REASON_LENGTH = 200


def may_be_banned(user: User, by: User | None) -> bool:
    """Whether `by` (None: the operator) may ban the user. Nobody may ban staff or themselves."""
    return not (user.is_staff or user.is_superuser or user == by)


@transaction.atomic
def ban(*, user: User, by: User | None, reason: str = "") -> bool:
    """Deactivate a user and end sessions and tokens. False if already banned. Raises PermissionError."""
    user = User.objects.locked().get(pk=user.pk)
    if not may_be_banned(user, by):
        raise PermissionError("Staff is not banned here.")
    before = _rule_of(user)
    if before and before.kind == SenderKind.BAN:
        return False
    _save_rule(user, SenderKind.BAN, by, reason)
    end_sessions_and_tokens(user=user)
    was_active = deactivate(user=user)
    log_decision(
        by,
        Verb.BAN,
        user=user,
        note=reason,
        before={"list": before.kind if before else None, "is_active": was_active},
        after={"list": SenderKind.BAN, "is_active": False},
    )
    return True


@transaction.atomic
def unban(*, user: User, by: User | None, reason: str = "") -> bool:
    """Lift a ban. False without one. Rejected items stay so. Raises JudgeError."""
    check_judge(user, by)
    rule = _rule_of(User.objects.locked().get(pk=user.pk))
    if rule is None or rule.kind != SenderKind.BAN:
        return False
    rule.delete()
    is_active = reactivate(user=user)
    before = {"list": SenderKind.BAN, "is_active": False}
    log_decision(by, Verb.UNBAN, user=user, note=reason, before=before, after={"list": None, "is_active": is_active})
    return True


@transaction.atomic
def reactivate_unless_banned(*, user: User) -> bool:
    """Reactivate a user unless they are banned. False if nothing changed."""
    rule = _rule_of(User.objects.locked().get(pk=user.pk))
    return (rule is None or rule.kind != SenderKind.BAN) and reactivate(user=user)


@transaction.atomic
def list_sender(*, user: User, kind: str, by: User, reason: str = "") -> SenderRule:
    """Replace a sender's rule by a list or ban. Raises PermissionError and JudgeError."""
    if kind == SenderKind.BAN:
        ban(user=user, by=by, reason=reason)
        return SenderRule.objects.get(user=user)
    unban(user=user, by=by, reason=reason)
    before = _rule_of(user)
    rule = _save_rule(user, kind, by, reason)
    log_decision(
        by, Verb.LIST, user=user, note=reason, before={"list": before.kind if before else None}, after={"list": kind}
    )
    return rule


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


def _save_rule(user: User, kind: str, by: User | None, reason: str) -> SenderRule:
    fields = {"kind": kind, "by": by, "reason": reason[:REASON_LENGTH]}
    return SenderRule.objects.update_or_create(user=user, defaults=fields)[0]
