"""The verbs that take users out of sight and bring them back. An inactive user can neither sign in nor be seen."""

from django.db import transaction

from accounts.models import User
from accounts.signals import reactivated


def deactivate(*, user: User) -> bool:
    """Hide a user and all they published; True if they were active. Windows forget the items when they are read."""
    return bool(User.objects.active().filter(pk=user.pk).update(is_active=False))


@transaction.atomic
def reactivate(*, user: User) -> bool:
    """Let a user be seen again; True if they were not active. Windows may have forgotten what they published."""
    if User.objects.active().filter(pk=user.pk).exists():
        return False
    # The receivers lock many users, this one among them, in the order of ids: so the row is written after them.
    reactivated.send(sender=User, user=user)
    return bool(User.objects.filter(pk=user.pk, is_active=False).update(is_active=True))
