"""The verbs of moderation about senders: bans, and the black and the white list. Each is one transaction, and writes
its line into the log.
"""

from django.db import transaction

from accounts.actions import log_out_everywhere
from accounts.deactivation import deactivate, reactivate
from accounts.models import User
from moderation.log import write
from moderation.models import SenderKind, SenderRule, Verb

REASON_LENGTH = 200


def may_be_banned(user: User, by: User | None) -> bool:
    """Whether `by`, or the operator (None), may ban the user: staff, and `by` themself, may not be banned."""
    return not (user.is_staff or user.is_superuser or user == by)


@transaction.atomic
def ban(*, user: User, by: User | None, reason: str = "") -> bool:
    """Deactivate a user, end their sessions and tokens, and note the ban as their rule; True if they were not banned.

    All they said is gone on the next request, and so are they. Raises PermissionError for staff and for oneself.
    """
    user = User.objects.held().get(pk=user.pk)
    if not may_be_banned(user, by):
        raise PermissionError("Staff is not banned here.")
    before = _rule_of(user)
    if before and before.kind == SenderKind.BAN:
        return False
    _put_rule(user, SenderKind.BAN, by, reason)
    log_out_everywhere(user=user)
    was_active = deactivate(user=user)
    write(
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
    """Let a banned user come back; True if they were banned. Rejected items stay so, and a deleted account too."""
    rule = _rule_of(User.objects.held().get(pk=user.pk))
    if rule is None or rule.kind != SenderKind.BAN:
        return False
    rule.delete()
    is_active = reactivate(user=user)
    before = {"list": SenderKind.BAN, "is_active": False}
    write(by, Verb.UNBAN, user=user, note=reason, before=before, after={"list": None, "is_active": is_active})
    return True


@transaction.atomic
def reactivate_unless_banned(*, user: User) -> bool:
    """Let a user be seen again whom no ban hides; True if they were not active."""
    rule = _rule_of(User.objects.held().get(pk=user.pk))
    return (rule is None or rule.kind != SenderKind.BAN) and reactivate(user=user)


@transaction.atomic
def list_sender(*, user: User, kind: str, by: User, reason: str = "") -> SenderRule:
    """Give a sender a rule in place of the one that they have: a list, or a ban. A ban that is replaced is lifted.

    Raises PermissionError for a ban of staff or of oneself.
    """
    if kind == SenderKind.BAN:
        ban(user=user, by=by, reason=reason)
        return SenderRule.objects.get(user=user)
    unban(user=user, by=by, reason=reason)
    before = _rule_of(user)
    rule = _put_rule(user, kind, by, reason)
    write(by, Verb.LIST, user=user, note=reason, before={"list": before.kind if before else None}, after={"list": kind})
    return rule


@transaction.atomic
def unlist_sender(*, user: User, by: User, reason: str = "") -> bool:
    """Take away the rule of a sender, and with a ban the ban; True if they had one."""
    if unban(user=user, by=by, reason=reason):
        return True
    rule = _rule_of(user)
    if rule is None:
        return False
    rule.delete()
    write(by, Verb.UNLIST, user=user, note=reason, before={"list": rule.kind}, after={"list": None})
    return True


def _rule_of(user: User) -> SenderRule | None:
    """The rule of a sender, who is held: their rule, which may be none yet, is written by no other until then."""
    return SenderRule.objects.filter(user=user).first()


def _put_rule(user: User, kind: str, by: User | None, reason: str) -> SenderRule:
    fields = {"kind": kind, "by": by, "reason": reason[:REASON_LENGTH]}
    return SenderRule.objects.update_or_create(user=user, defaults=fields)[0]
