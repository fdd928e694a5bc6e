"""Setting a forgotten password by a link to the confirmed e-mail address.

A request writes one row for any input, so the answer reveals nothing. The link signs date, password, address, last
sign-in and session epoch. It signs nobody in, so second factors still count. A suspended user may set a password, too:
logging in then leads to the page where they appeal.
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

from accounts import addresses, passwords
from accounts.actions import check_password_shape, write_password
from accounts.mail import actions as mail
from accounts.models import ResetRequest, User
from accounts.signing_in import sign_in
from storage.queue import only_if_rows, task
from web import rates

AT_ONCE = 100
"""Requests per task."""
KEPT = timedelta(hours=24)
"""How long a request waits."""


class SpentResetError(Exception):
    """The link is invalid or used."""


class ResetTokens(PasswordResetTokenGenerator):
    """Django's tokens that also end with the sessions."""

    key_salt = "accounts.recovery"

    def _make_hash_value(self, user: Any, timestamp: int) -> str:
        return f"{super()._make_hash_value(user, timestamp)}{user.session_epoch}"


tokens = ResetTokens()


@transaction.atomic
def request_reset(*, asked: str, language: str) -> None:
    """Request a letter for this name or address."""
    ResetRequest.objects.create(asked=asked.strip()[:254], language=language)
    process_reset_requests.delay_on_commit()


@task("accounts.send_resets")
@only_if_rows("accounts.send_resets", "SELECT created_at FROM accounts_resetrequest", work="password resets")
def process_reset_requests() -> int:
    """Send the letters of waiting requests, one for each. Beat starts it too, because tasks can get lost."""
    ResetRequest.objects.filter(created_at__lt=Now() - KEPT).delete()
    met = 0
    while met < AT_ONCE and _process_one():
        met += 1
    return met


@transaction.atomic
def _process_one() -> bool:
    request = ResetRequest.objects.select_for_update(skip_locked=True).order_by("pk").first()
    if request is None:
        return False
    user = account_of(request.asked)
    address = addresses.confirmed_address(user) if user is not None else ""
    if user is not None and address and rates.hit("reset_name", str(user.pk)) is None:
        mail.send(
            kind="reset",
            to=address,
            language=user.language or request.language,
            context={"name": user.username, "link": reset_link(user)},
            user_id=user.pk,
            life=timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT),
        )
    request.delete()
    return True


def account_of(name_or_address: str) -> User | None:
    """The account with this name or confirmed address, if its user may log in or is suspended."""
    text = name_or_address.strip()
    if "@" in text.lstrip("@"):
        user = addresses.user_with_address(text) or addresses.user_with_address(text, is_active=False)
    else:
        user = User.objects.named(text.lstrip("@")).first()
    return user if user is not None and _may_prove(user) else None


def _may_prove(user: User) -> bool:
    """Whether a right password leads anywhere: to the site, or to the page of a suspension."""
    try:
        sign_in.check_active(user)
    except sign_in.LoginRefusedError:
        return False
    return user.deleted_at is None


def reset_link(user: User) -> str:
    """The address to set a password."""
    return (
        f"{settings.SITE_URL}{reverse('password-reset-link', args=[int_to_base36(user.pk), tokens.make_token(user)])}"
    )


def user_of_link(number: str, token: str) -> User | None:
    """The account of a valid link."""
    try:
        user = User.objects.filter(pk=base36_to_int(number)).first()
    except (ValueError, OverflowError):
        return None
    return user if user is not None and tokens.check_token(user, token) and _may_prove(user) else None


@transaction.atomic
def set_password(*, number: str, token: str, new: str) -> User:
    """Set a password by link. Raises SpentResetError and ValidationError."""
    user = user_of_link(number, token)
    if user is None:
        raise SpentResetError
    try:
        check_password_shape(new, user)
    except ValidationError as error:
        raise ValidationError({"new_password": error.error_list}) from error
    hashed = passwords.hashed(new)  # takes long, so before the lock
    held = User.objects.locked().filter(pk=user.pk).first()
    if held is None or not tokens.check_token(held, token) or not _may_prove(held):  # used or ended meanwhile
        raise SpentResetError
    write_password(user=user, hashed=hashed)
    addresses.send_notice(user, "password_changed")
    return user
