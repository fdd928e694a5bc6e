"""Second factors: authenticator apps (TOTP), passkeys (WebAuthn) and recovery codes.

allauth.mfa stores and computes them, but would use a cache for two things. Here the locked row makes an app's code
count once, and no earlier one after it, and the guard counts attempts. Recovery codes come with the first factor and go
with the last.

See docs/decisions.md: Own sign-in flows on allauth's parts.
"""

import logging
import struct
from typing import Any
from urllib.parse import urlsplit

from allauth.core.internal.cryptokit import compare_user_code
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value, yield_hotp_counters_from_time
from allauth.mfa.utils import decrypt
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

import accounts.about.site
from accounts import addresses, proofs
from accounts.models import User
from accounts.signing_in import sealing

logger = logging.getLogger(__name__)

Type = Authenticator.Type
FACTORS = [Type.TOTP, Type.WEBAUTHN]
"""Types asked for at sign-in. Recovery codes replace them."""
PASSKEYS = 10
"""Most passkeys per user."""
MALFORMED = (ValidationError, ValueError, TypeError, LookupError, AttributeError, RuntimeError, struct.error)
"""Errors of allauth and fido2 for malformed bytes. They have none of their own for CBOR that ends early, nests deeply
(RuntimeError) or names an unknown algorithm.
"""
NAME_LENGTH = 50
CODE_LENGTH = 20
SECRETS = {Type.TOTP: "secret", Type.RECOVERY_CODES: "seed"}
"""Key of the secret in a row's data, by type."""
COUNTER = "counter"
"""Key of a passkey's last counter in its row's data."""
AT_ONCE = 500
"""Rows re-encrypted per transaction."""


class RefusedError(Exception):
    """The code or passkey is not accepted."""


class FullError(Exception):
    """The user has `PASSKEYS` passkeys."""


class Adapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth has no types
    """allauth's adapter with the site's names and encrypted secrets."""

    def encrypt(self, text: str) -> str:
        """Encrypt a secret."""
        return sealing.seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        """Decrypt a secret. Raises SealError."""
        return sealing.unseal(encrypted_text)

    def get_totp_issuer(self) -> str:
        """The site's name in authenticator apps."""
        return accounts.about.site.current().name

    def _get_site_name(self) -> str:
        return accounts.about.site.current().name

    def _get_user_identifier(self, user: Any) -> str:
        return str(user.username)


def is_set(user: User) -> bool:
    """Whether the user has a second factor."""
    return bool(Authenticator.objects.filter(user=user, type__in=FACTORS).exists())


def has_passkey(user: User) -> bool:
    """Whether the user has a passkey."""
    return any(row.type == Type.WEBAUTHN for row in rows_of(user))


def rows_of(user: User) -> list[Authenticator]:
    """The user's factors and recovery codes, oldest first."""
    return list(Authenticator.objects.filter(user=user).order_by("pk"))


@transaction.atomic
def use_code(*, user: User, code: str) -> None:
    """Use up a code. Raises RefusedError."""
    code = "".join(code.split())[:CODE_LENGTH]
    types = [Type.TOTP, Type.RECOVERY_CODES]
    rows = Authenticator.objects.select_for_update().filter(user=user, type__in=types).order_by("pk")
    if not code or not any(_counts(row, code) for row in rows):
        raise RefusedError


def _counts(row: Authenticator, code: str) -> bool:
    """Whether a factor accepts the code. It uses the code up and re-encrypts a secret of an old key."""
    field = SECRETS[row.type]
    try:
        secret = decrypt(row.data[field])
    except sealing.SealError as error:
        logger.error("second factor %s of user %s cannot be checked: %s", row.pk, row.user_id, error)
        return False
    if row.type == Type.RECOVERY_CODES:
        codes = RecoveryCodes(row)
        if not codes.validate_code(code):
            return False
        row = codes.instance  # reloaded, without the code
    else:
        step = _step(secret, code, after=row.data.get("last_step", 0))
        if step is None:
            return False
        row.data["last_step"] = step
    row.data[field] = sealing.anew(row.data[field])
    row.last_used_at = timezone.now()
    row.save(update_fields=["data", "last_used_at"])
    return True


def _step(secret: str, code: str, *, after: int) -> int | None:
    """The code's time step, if valid and later than `after`."""
    for step in yield_hotp_counters_from_time():
        if step > after and compare_user_code(actual=code, expected=format_hotp_value(hotp_value(secret, step))):
            return int(step)
    return None


# --- Authenticator apps ----------------------------------------------------------------------------------
@transaction.atomic
def set_up_app(*, user: User, secret: str, code: str) -> None:
    """Accept an app after its first code. Raises RefusedError, EndedError."""
    proofs.hold(user)
    step = _step(secret, "".join(code.split())[:CODE_LENGTH], after=0)
    if step is None or Authenticator.objects.filter(user=user, type=Type.TOTP).exists():
        raise RefusedError
    row = TOTP.activate(user, secret).instance
    row.data["last_step"] = step
    row.save(update_fields=["data"])
    RecoveryCodes.activate(user)
    addresses.tell(user, "factor_added", factor="app")


# --- Passkeys --------------------------------------------------------------------------------------------
def _webauthn() -> Any:
    """allauth's WebAuthn module. It is imported late: fido2 is heavy and most processes never need it."""
    from allauth.mfa.webauthn.internal import auth

    return auth


def offer_passkey(user: User) -> dict[str, Any]:
    """Options to create a passkey."""
    options: dict[str, Any] = _webauthn().begin_registration(user, passwordless=True)
    return options


@transaction.atomic
def add_passkey(*, user: User, name: str, credential: Any) -> None:
    """Add a passkey. Raises RefusedError, FullError, EndedError."""
    proofs.hold(user)
    if Authenticator.objects.filter(user=user, type=Type.WEBAUTHN).count() >= PASSKEYS:
        raise FullError
    webauthn = _webauthn()
    try:
        _check_origin(webauthn.parse_registration_response(credential))
        webauthn.complete_registration(credential)
    except MALFORMED as error:
        raise RefusedError from error
    webauthn.WebAuthn.add(user, name[:NAME_LENGTH], credential)
    RecoveryCodes.activate(user)
    addresses.tell(user, "factor_added", factor="passkey")


def ask_passkey(user: User | None) -> dict[str, Any]:
    """Options for a proof by a passkey."""
    options: dict[str, Any] = _webauthn().begin_authentication(user)
    return options


@transaction.atomic
def use_passkey(*, user: User | None, answer: Any) -> User:
    """The passkey's user. Raises RefusedError."""
    webauthn = _webauthn()
    try:
        owner: Any = user or webauthn.extract_user_from_response(answer)
        said = webauthn.parse_authentication_response(answer)
        _check_origin(said)
        held = User.objects.active().held().filter(pk=owner.pk).first()  # of two answers at once, the second is later
        if held is None:
            raise RefusedError
        row = webauthn.complete_authentication(owner, answer)
        _count_use(row, said.response.authenticator_data.counter)
    except MALFORMED as error:
        raise RefusedError from error
    return user or held


def _check_origin(said: Any) -> None:
    """Raise RefusedError unless the browser asked for a page of this site, and in no frame of another.

    fido2 also takes other ports and subdomains, which others may serve.
    """
    client = said.response.client_data
    if client.origin != _origin() or client.cross_origin:
        raise RefusedError


def _origin() -> str:
    """The origin of this site's pages, as browsers write it."""
    parts = urlsplit(settings.SITE_URL)
    port = "" if parts.port in (None, {"http": 80, "https": 443}.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{parts.hostname}{port}"


def _count_use(row: Authenticator, counter: int) -> None:
    """Store a passkey's counter. Raises RefusedError unless it grew: a copy of the passkey may be about.

    Many passkeys never count and send 0 (WebAuthn, 7.2).
    """
    before = row.data.get(COUNTER, row.wrap().authenticator_data.counter)
    if (counter or before) and counter <= before:
        logger.warning("passkey %s of user %s counts backwards: %s after %s", row.pk, row.user_id, counter, before)
        raise RefusedError
    row.data[COUNTER] = counter
    row.last_used_at = timezone.now()
    row.save(update_fields=["data", "last_used_at"])


# --- Either ----------------------------------------------------------------------------------------------
@transaction.atomic
def remove(*, user: User, row_id: int) -> bool:
    """Remove a factor, and the recovery codes with the last one. False if there is no such factor.

    Raises EndedError.
    """
    proofs.hold(user)
    gone, _rows = Authenticator.objects.filter(user=user, pk=row_id, type__in=FACTORS).delete()
    if not gone:
        return False
    if not is_set(user):
        Authenticator.objects.filter(user=user).delete()
    addresses.tell(user, "factor_removed")
    return True


def recovery_codes(user: User) -> list[str]:
    """Unused recovery codes. Empty if the secret key was lost."""
    row = Authenticator.objects.filter(user=user, type=Type.RECOVERY_CODES).first()
    try:
        return RecoveryCodes(row).get_unused_codes() if row is not None else []
    except sealing.SealError as error:
        logger.error("recovery codes of user %s cannot be read: %s", user.pk, error)
        return []


@transaction.atomic
def renew_recovery_codes(*, user: User) -> None:
    """Replace the recovery codes. Raises RefusedError, EndedError."""
    proofs.hold(user)
    if not is_set(user):
        raise RefusedError
    Authenticator.objects.filter(user=user, type=Type.RECOVERY_CODES).delete()
    RecoveryCodes.activate(user)
    addresses.tell(user, "recovery_codes_renewed")


@transaction.atomic
def forget(*, user: User) -> bool:
    """Remove all factors, for an admin. False without any."""
    User.objects.held().get(pk=user.pk)
    gone, _rows = Authenticator.objects.filter(user=user).delete()
    if gone:
        addresses.tell(user, "factor_removed")
    return bool(gone)


# --- Another secret key ----------------------------------------------------------------------------------
def seal_anew() -> tuple[int, int]:
    """Re-encrypt all secrets. Returns numbers of changed and unreadable ones."""
    changed = lost = after = 0
    while True:
        with transaction.atomic():
            rows = Authenticator.objects.select_for_update().filter(pk__gt=after, type__in=SECRETS).order_by("pk")
            batch = list(rows[:AT_ONCE])
            for row in batch:
                sealed = _sealed_anew(row)
                lost += sealed is None
                changed += bool(sealed)
        if not batch:
            return changed, lost
        after = batch[-1].pk


def _sealed_anew(row: Authenticator) -> bool | None:
    """Re-encrypt a factor's secret. Returns whether it changed, or None if no key decrypts it."""
    field = SECRETS[row.type]
    try:
        stored = sealing.anew(row.data[field])
    except sealing.SealError:
        return None
    if stored == row.data[field]:
        return False
    row.data[field] = stored
    row.save(update_fields=["data"])
    return True
