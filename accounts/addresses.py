"""Users' e-mail addresses: adding, confirming, changing, removing.

They are kept in lower case. A user has at most one confirmed address, which is
`primary`, and one unconfirmed. `User.email` copies the confirmed one. An address that only `User.email` has was entered
by an admin, and counts as confirmed. Of two users the first to confirm gets an address.

Links and codes end with the sessions, so those of a session thief fail after a new password. Only the letter tells
whether another account has an address.
"""

import secrets
from datetime import timedelta

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext as _

from accounts import proofs
from accounts.mail import actions as mail
from accounts.models import AddressCheck, EmailAddress, User
from storage.site_key import known_keys

LIFE = timedelta(hours=24)
"""How long link and code work."""
TRIES = 5
"""Wrong codes until a code is invalid."""
CODE_DIGITS = 6


class SpentLinkError(Exception):
    """The link or code is invalid or used."""


def confirmed_address(user: User) -> str:
    """The user's confirmed address, or "". It first confirms one that only `User.email` has."""
    row = EmailAddress.objects.filter(user=user, verified=True).order_by("-primary", "pk").first()
    return row.email if row is not None else _confirm_user_email(user)


def unconfirmed_address(user: User) -> str:
    """The user's unconfirmed address, or ""."""
    row = EmailAddress.objects.filter(user=user, verified=False).order_by("-pk").first()
    return row.email if row is not None else ""


def user_with_address(address: str, *, is_active: bool = True) -> User | None:
    """The active user, or an inactive one, with this confirmed address. An unknown address takes the same queries."""
    address = address.strip().lower()
    rows = EmailAddress.objects.filter(email=address, verified=True, user__is_active=is_active)
    row = rows.select_related("user").first()
    found = list(User.objects.filter(is_active=is_active).with_email(address)[:2])
    if row is not None:
        user: User = row.user
        return user
    return found[0] if len(found) == 1 and _confirm_user_email(found[0]) == address else None


def _confirm_user_email(user: User) -> str:
    """Confirm the address of the user's column, if it is free."""
    address = user.email.strip().lower()
    if not mail.is_address(address) or EmailAddress.objects.filter(user=user).exists():
        return ""
    if User.objects.with_email(address).exclude(pk=user.pk).exists():
        return ""
    try:
        with transaction.atomic():
            EmailAddress.objects.create(user=user, email=address, verified=True, primary=True)
    except IntegrityError:
        return ""
    return address


@transaction.atomic
def add(*, user: User, address: str) -> None:
    """Add an unconfirmed address in place of an earlier one, and send a letter. Raises ValidationError by field, and
    EndedError.

    If another account has it, the letter only says so.
    """
    address = address.strip().lower()
    if not mail.is_address(address):
        raise ValidationError(
            {"email": ValidationError(_("This isn't an email address. Check it for typos."), code="invalid")}
        )
    proofs.lock_if_valid(user)  # of two calls at once, the second replaces the first
    if confirmed_address(user) == address:
        return
    EmailAddress.objects.filter(user=user, verified=False).delete()
    row = EmailAddress.objects.create(user=user, email=address)
    _send(row)


@transaction.atomic
def send_again(*, user: User) -> bool:
    """Send a new letter for the unconfirmed address. It invalidates the last. False if every address is confirmed.
    Raises EndedError.
    """
    proofs.lock_if_valid(user)
    row = EmailAddress.objects.filter(user=user, verified=False).order_by("-pk").first()
    if row is None:
        return False
    _send(row)
    return True


def _send(row: EmailAddress) -> None:
    key, code = secrets.token_urlsafe(24), f"{secrets.randbelow(10**CODE_DIGITS):0{CODE_DIGITS}}"
    holder = user_with_address(row.email)
    AddressCheck.objects.update_or_create(
        address=row,
        defaults={
            "key_digest": _digest(key, row),
            "code_digest": _digest(code, row),
            "tries": 0,
            "expires_at": timezone.now() + LIFE,
        },
    )
    user = row.user
    link = f"{settings.SITE_URL}{reverse('verify-email', args=[f'{row.pk}.{key}'])}"
    mail.send(
        kind="verify_address" if holder is None else "address_taken",
        to=row.email,
        language=user.language or translation.get_language() or "",
        context={"name": user.username, "link": link, "code": code} if holder is None else {"name": holder.username},
        user_id=user.pk,
        life=LIFE,
    )


def address_of_link(key: str) -> EmailAddress | None:
    """The address that a link confirms, if valid."""
    number, _dot, secret = key.partition(".")
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        return None
    fresh = AddressCheck.objects.filter(expires_at__gt=timezone.now()).select_related("address__user")
    check = fresh.filter(pk=int(number)).first()
    if check is None or not _matches_digest(check.key_digest, secret, check.address):
        return None
    row: EmailAddress = check.address
    return row


def prove_by_link(*, key: str) -> User:
    """Confirm an address by link. Raises SpentLinkError."""
    row = address_of_link(key)
    if row is None:
        raise SpentLinkError
    with transaction.atomic():
        held = User.objects.active().locked().filter(pk=row.user_id).first()
        row = address_of_link(key)
        if held is None or row is None:  # used or ended meanwhile
            raise SpentLinkError
        return _confirm(row)


def prove_by_code(*, user: User, code: str) -> User:
    """Confirm the user's address by code. Raises SpentLinkError, EndedError."""
    with transaction.atomic():
        proofs.lock_if_valid(user)
        row = EmailAddress.objects.filter(user=user, verified=False).select_related("user").order_by("-pk").first()
        fresh = AddressCheck.objects.filter(expires_at__gt=timezone.now(), tries__lt=TRIES)
        check = fresh.filter(pk=row.pk).first() if row is not None else None
        if row is not None and check is not None and _matches_digest(check.code_digest, code.strip(), row):
            return _confirm(row)
        if check is not None:
            AddressCheck.objects.filter(pk=check.pk).update(tries=F("tries") + 1)
    raise SpentLinkError


def _confirm(row: EmailAddress) -> User:
    """Confirm an address of a locked user. Raises SpentLinkError if another account was first."""
    try:
        with transaction.atomic():
            return _confirm_and_replace(row)
    except IntegrityError as error:
        raise SpentLinkError from error


def _confirm_and_replace(row: EmailAddress) -> User:
    if user_with_address(row.email) is not None:
        raise SpentLinkError
    user: User = row.user
    before = confirmed_address(user)
    EmailAddress.objects.filter(user=user).exclude(pk=row.pk).delete()
    if not EmailAddress.objects.filter(pk=row.pk, verified=False).update(verified=True, primary=True):
        raise SpentLinkError
    AddressCheck.objects.filter(pk=row.pk).delete()
    User.objects.filter(pk=user.pk).update(email=row.email)
    user.email = row.email
    if before:
        send_notice(user, "address_changed", to=before)
    return user


@transaction.atomic
def remove(*, user: User) -> bool:
    """Remove the user's addresses, and write the confirmed one about it. False if there were none. Raises
    EndedError, and ValidationError if the site requires an address.
    """
    if settings.EMAIL_REQUIRED:
        raise ValidationError(_("This site requires an email address."), code="required")
    proofs.lock_if_valid(user)
    before = confirmed_address(user)
    gone, _rows = EmailAddress.objects.filter(user=user).delete()
    User.objects.filter(pk=user.pk).update(email="")
    if before:
        send_notice(user, "address_removed", to=before)
    return bool(gone)


@transaction.atomic
def confirm_entered(*, user: User) -> None:
    """Confirm the address that an admin entered for the user, unless another account has it."""
    User.objects.locked().get(pk=user.pk)
    before = confirmed_address(user)
    EmailAddress.objects.filter(user=user).delete()
    after = _confirm_user_email(user)
    if before and before != after:
        send_notice(user, "address_changed" if after else "address_removed", to=before)


def send_notice(user: User, kind: str, *, to: str = "", **context: str) -> None:
    """Write the user about their account."""
    address = to or confirmed_address(user)
    if address:
        language = user.language or translation.get_language() or ""
        mail.send(kind=kind, to=address, language=language, context={"name": user.username, **context}, user_id=user.pk)


def forget_checks() -> int:
    """Delete expired links and codes."""
    return AddressCheck.objects.filter(expires_at__lt=Now()).delete()[0]


def _digest(secret: str, row: EmailAddress, key: str | None = None) -> str:
    said = f"{row.pk} {secret} {row.user._get_session_auth_hash(key)}"
    return salted_hmac("accounts.addresses", said, secret=key, algorithm="sha256").hexdigest()


def _matches_digest(digest: str, secret: str, row: EmailAddress) -> bool:
    """Whether a link or code that was sent with this digest has this secret."""
    return any(constant_time_compare(digest, _digest(secret, row, key)) for key in known_keys())
