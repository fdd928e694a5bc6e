"""Whether what a caller proved still counts at the moment when a right is made of it: a token, session, code or factor.

Whatever ends an account's rights writes the user's row first. So does whatever makes one: it locks the row before all
others, and finds here what has ended meanwhile.
"""

from rest_framework.exceptions import AuthenticationFailed

from accounts.models import User


class LoginEndedError(AuthenticationFailed):
    """The password has changed, the sessions have ended, or the account is not active any more."""

    default_detail = "Your login has ended. Log in again."


def lock_if_valid(user: User, *, is_active: bool = True) -> None:
    """Lock the user's row in the caller's transaction. `user`: as they were when the caller proved who they are.
    `is_active`: False for what suspended users may do.

    Raises LoginEndedError.
    """
    users = User.objects.filter(is_active=is_active, deleted_at=None)
    same = users.filter(pk=user.pk, password=user.password, session_epoch=user.session_epoch)
    if not same.locked().values_list("pk").first():
        raise LoginEndedError
