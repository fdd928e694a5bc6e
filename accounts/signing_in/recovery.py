"""Setting another password without the old one, by a link that goes to the proven e-mail address of the account.

A request writes one row, whatever was typed, and answers; a worker finds out whether there is such an account
(`work_off`). So neither the time nor the bytes of the answer tell. The link is signed over the password, the address,
the last sign-in and the session epoch of the account, and dated: setting a password by it, signing in, another address
and logging out everywhere make it worthless. It signs no user in, so second factors are asked as always.
"""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models.functions import Now
from django.urls import reverse
from django.utils.http import base36_to_int, int_to_base36

from accounts.actions import check_password_shape, end_tokens
from accounts.mail import actions as mail
from accounts.models import ResetRequest, User
from accounts.signing_in import addresses
from storage.draws import Draw
from storage.queue import enqueue
from web import rates

AT_ONCE = 100
"""Requests that one task works off."""
KEPT = timedelta(hours=24)
"""How long a request waits for a worker."""


class SpentError(Exception):
    """A link that does not count, or not any more."""


class Tokens(PasswordResetTokenGenerator):
    """Django's, which end with the sessions of their time, too."""

    key_salt = "accounts.recovery"

    def _make_hash_value(self, user: Any, timestamp: int) -> str:
        return f"{super()._make_hash_value(user, timestamp)}{user.session_epoch}"


tokens = Tokens()


@transaction.atomic
def ask(*, asked: str, language: str) -> None:
    """Note that a letter is wanted for the account of this name or address, if there is one."""
    ResetRequest.objects.create(asked=asked.strip()[:254], language=language)
    transaction.on_commit(lambda: enqueue("accounts.send_resets"))


def work_off() -> int:
    """Write the letters that were asked for; how many requests were met. Each is met once."""
    ResetRequest.objects.filter(created_at__lt=Now() - KEPT).delete()
    met = 0
    while met < AT_ONCE and _work_off_one():
        met += 1
    return met


@transaction.atomic
def _work_off_one() -> bool:
    request = ResetRequest.objects.select_for_update(skip_locked=True).order_by("pk").first()
    if request is None:
        return False
    user = account_of(request.asked)
    address = addresses.proven(user) if user is not None else ""
    if user is not None and address and rates.hit("reset_name", str(user.pk)) is None:
        mail.send(
            kind="reset",
            to=address,
            language=user.language or request.language,
            context={"name": user.username, "link": link(user)},
            user_id=user.pk,
            life=timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT),
        )
    request.delete()
    return True


def account_of(name_or_address: str) -> User | None:
    """The active account of a username, with or without its @, or of a proven address."""
    text = name_or_address.strip()
    if "@" in text.lstrip("@"):
        return addresses.owner(text)
    return User.objects.active().named(text.lstrip("@")).first()


def link(user: User) -> str:
    """The address of the page that sets another password."""
    return (
        f"{settings.SITE_URL}{reverse('password-reset-link', args=[int_to_base36(user.pk), tokens.make_token(user)])}"
    )


def of_link(number: str, token: str) -> User | None:
    """The account whose password a link sets; None for a link that does not count."""
    try:
        user = User.objects.active().filter(pk=base36_to_int(number)).first()
    except (ValueError, OverflowError):
        return None
    return user if user is not None and tokens.check_token(user, token) else None


@transaction.atomic
def set_password(*, number: str, token: str, new: str) -> User:
    """Set another password by a link. Every session and API token ends. Raises SpentError, and ValidationError as
    `accounts.actions.change_password` does.
    """
    user = of_link(number, token)
    if user is None:
        raise SpentError
    try:
        check_password_shape(new, user)
    except ValidationError as error:
        raise ValidationError({"new_password": error.error_list}) from error
    before = user.password
    user.set_password(new)
    # The link of two calls at once is spent by the first.
    changed = {"password": user.password, "session_generation": Draw()}
    if not User.objects.active().filter(pk=user.pk, password=before).update(**changed):
        raise SpentError
    end_tokens(user=user)
    addresses.tell(user, "password_changed")
    return user
