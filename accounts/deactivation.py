"""Hides users and shows them again. Windows keep their items, and pages leave them out. Their files are renamed,
and others' counts leave them out."""

from django.db import transaction

from accounts import recounting
from accounts.actions import end_sessions_and_tokens
from accounts.models import User
from media import renaming


@transaction.atomic
def deactivate(*, user: User) -> bool:
    """Hide a user, and end their sessions and tokens. False if they are not active."""
    if not User.objects.active().filter(pk=user.pk).update(is_active=False):
        return False
    renaming.begin(user.pk)
    recounting.begin(user.pk)
    end_sessions_and_tokens(user=user)
    return True


@transaction.atomic
def reactivate(*, user: User) -> bool:
    """Show a user again. False if active or deleted."""
    if not User.objects.filter(pk=user.pk, is_active=False, deleted_at=None).update(is_active=True):
        return False
    renaming.end(user.pk)
    recounting.begin(user.pk)
    return True
