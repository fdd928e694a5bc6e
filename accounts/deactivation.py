"""Hides users and shows them again. Windows keep their items, and pages leave them out."""

from django.db import transaction

from accounts.actions import end_everything
from accounts.models import User


@transaction.atomic
def deactivate(*, user: User) -> bool:
    """Hide a user, and end their sessions and tokens. False if they are not active."""
    if not User.objects.active().filter(pk=user.pk).update(is_active=False):
        return False
    end_everything(user=user)
    return True


def reactivate(*, user: User) -> bool:
    """Show a user again. False if active or deleted."""
    return bool(User.objects.filter(pk=user.pk, is_active=False, deleted_at=None).update(is_active=True))
