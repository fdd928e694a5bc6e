"""The verbs that take users out of sight and bring them back. An inactive user can neither sign in nor be seen.

Windows keep what an inactive sender published, and pages do not show it; so a user who comes back is seen again on the
next request, and no follower's window has to be built anew.
"""

from django.db import transaction

from accounts.actions import log_out_everywhere
from accounts.models import User


@transaction.atomic
def deactivate(*, user: User) -> bool:
    """Hide a user and all they published; True if they were active. Their sessions and API tokens end for good: they do
    not come back with the user.
    """
    if not User.objects.active().filter(pk=user.pk).update(is_active=False):
        return False
    log_out_everywhere(user=user)
    return True


def reactivate(*, user: User) -> bool:
    """Let a user be seen again; True if they were not active. Deleted accounts stay so: nothing of them is left."""
    return bool(User.objects.filter(pk=user.pk, is_active=False, deleted_at=None).update(is_active=True))
