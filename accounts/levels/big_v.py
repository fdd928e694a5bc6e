"""Makes and unmakes big-Vs: senders that most followers pull.

A manual demotion turns off automatic tagging (`User.is_auto_big_v`). A manual promotion or `allow_tagging` turns it on.

See docs/decisions.md: Push or pull is decided by sender.
"""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import transaction

from accounts.models import BigVChange, User
from accounts.signals import big_v_demotion_requested, big_v_made
from storage.draws import Draw


class NotActiveError(Exception):
    """A deactivated user cannot become big-V."""


@transaction.atomic
def make_big_v(*, user: User, by: User | None = None) -> bool:
    """Make a user big-V, and cancel a demotion. False if nothing changed. Raises NotActiveError."""
    user = User.objects.locked().get(pk=user.pk)
    if not user.is_active:
        raise NotActiveError
    return _promote(user, by=by, origin=_origin(by))


@transaction.atomic
def demote(*, user: User, by: User | None = None) -> bool:
    """Start to demote a big-V: a job backfills inboxes, then removes the flag. False if already, or not big-V."""
    user = User.objects.locked().get(pk=user.pk)
    if not user.is_big_v:
        return False
    User.objects.filter(pk=user.pk).update(is_auto_big_v=False)
    if not _any_response(big_v_demotion_requested.send(sender=User, user=user)):
        return False
    _record_change(user, BigVChange.Kind.DEMOTION, by=by, origin=_origin(by))
    return True


@transaction.atomic
def allow_tagging(*, user: User, by: User | None = None) -> bool:
    """Allow automatic tagging again. False if already allowed."""
    if not User.objects.filter(pk=user.pk, is_auto_big_v=False).update(is_auto_big_v=True):
        return False
    _record_change(user, BigVChange.Kind.ALLOWED, by=by, origin=_origin(by))
    return True


def complete_demotion(*, user: User) -> None:
    """Remove the flag after the backfill, with the user locked."""
    User.objects.filter(pk=user.pk).update(is_big_v=False)
    _record_change(user, BigVChange.Kind.DEMOTED, by=None, origin=BigVChange.Origin.AUTOMATIC)


def upgrade_big_vs(user_ids: Sequence[int]) -> list[int]:
    """Make users big-V who reached settings.BIG_V_THRESHOLD (0: none do). Returns their ids."""
    if not settings.BIG_V_THRESHOLD or not user_ids:
        return []
    reached = _users_to_upgrade().filter(pk__in=user_ids).order_by("pk")
    return [user_id for user_id in reached.values_list("pk", flat=True) if _upgrade(user_id)]


@transaction.atomic
def _upgrade(user_id: int) -> bool:
    """Make one user big-V. It checks the threshold again under the lock: an admin may have acted."""
    user = _users_to_upgrade().locked().filter(pk=user_id).first()
    return user is not None and _promote(user, by=None, origin=BigVChange.Origin.AUTOMATIC)


def _users_to_upgrade() -> Any:
    return User.objects.active().filter(
        is_big_v=False, is_auto_big_v=True, follower_count__gte=settings.BIG_V_THRESHOLD
    )


def _promote(user: User, *, by: User | None, origin: BigVChange.Origin) -> bool:
    was_big_v, was_auto = user.is_big_v, user.is_auto_big_v
    if not was_big_v:
        User.objects.filter(pk=user.pk).update(is_big_v=True, is_auto_big_v=True, promotion=Draw())
        user.refresh_from_db(fields=["is_big_v", "is_auto_big_v", "promotion"])
    elif not was_auto:
        User.objects.filter(pk=user.pk).update(is_auto_big_v=True)
    is_taken_back = _any_response(big_v_made.send(sender=User, user=user))
    if not was_big_v:
        _record_change(user, BigVChange.Kind.MADE, by=by, origin=origin)
    elif is_taken_back:
        _record_change(user, BigVChange.Kind.TAKEN_BACK, by=by, origin=origin)
    elif not was_auto:
        _record_change(user, BigVChange.Kind.ALLOWED, by=by, origin=origin)
    return not (was_big_v and was_auto) or is_taken_back


def _any_response(answers: Sequence[tuple[Any, Any]]) -> bool:
    return any(answer for _, answer in answers)


def _origin(by: User | None) -> BigVChange.Origin:
    return BigVChange.Origin.ADMIN if by else BigVChange.Origin.COMMAND


def _record_change(user: User, kind: BigVChange.Kind, *, by: User | None, origin: BigVChange.Origin) -> None:
    BigVChange.objects.create(user=user, kind=kind, by=by, origin=origin)
