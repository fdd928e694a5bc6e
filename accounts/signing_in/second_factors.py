"""Second factors: authenticator apps (TOTP), passkeys (WebAuthn) and recovery codes.

pyotp computes codes, fido2 checks passkeys. The locked row makes an app's code count once, and no earlier one after it,
and the guard counts attempts. Recovery codes come with the first factor and go with the last.

See docs/decisions.md: Own sign-in flows.
"""

import hmac
import logging
import secrets
import struct
import time
from typing import Any

import pyotp
from django.contrib.sessions.backends.base import SessionBase
from django.db import transaction
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from accounts import addresses, proofs
from accounts.about.site import current
from accounts.models import Authenticator, User
from accounts.signing_in import sealing

logger = logging.getLogger(__name__)

Type = Authenticator.Type
FACTORS = [Type.TOTP, Type.WEBAUTHN]
"""Types asked for at sign-in. Recovery codes replace them."""
PASSKEYS = 10
"""Most passkeys per user."""
MALFORMED = (ValueError, TypeError, LookupError, AttributeError, RuntimeError, struct.error)
"""Errors of fido2 for malformed bytes. It has none of its own for CBOR that ends early, nests deeply (RuntimeError) or
names an unknown algorithm.
"""
CHALLENGE = "passkey_challenge"
"""Session key of the challenge that a passkey must answer next."""
NAME_LENGTH = 50
CODE_LENGTH = 20
RECOVERY_CODES = 10
RECOVERY_DIGITS = 8
SECRETS: dict[str, str] = {Type.TOTP: "secret", Type.RECOVERY_CODES: "seed"}
"""Key of the secret in a row's data, by type."""
COUNTER = "counter"
"""Key of a passkey's last counter in its row's data."""
AT_ONCE = 500
"""Rows re-encrypted per transaction."""


class SecondFactorRefusedError(Exception):
    """The code or passkey is not accepted."""


class PasskeyCapError(Exception):
    """The user has `PASSKEYS` passkeys."""


def has_factor(user: User) -> bool:
    """Whether the user has a second factor."""
    return bool(Authenticator.objects.filter(user=user, type__in=FACTORS).exists())


def has_passkey(user: User) -> bool:
    """Whether the user has a passkey."""
    return any(row.type == Type.WEBAUTHN for row in authenticators_of(user))


def authenticators_of(user: User) -> list[Authenticator]:
    """The user's factors and recovery codes, oldest first."""
    return list(Authenticator.objects.filter(user=user).order_by("pk"))


@transaction.atomic
def use_code(*, user: User, code: str) -> None:
    """Use up a code. Raises SecondFactorRefusedError."""
    code = _normalized_code(code)
    types = [Type.TOTP, Type.RECOVERY_CODES]
    rows = Authenticator.objects.select_for_update().filter(user=user, type__in=types).order_by("pk")
    if not code or not any(_accepts_code(row, code) for row in rows):
        raise SecondFactorRefusedError


def _accepts_code(row: Authenticator, code: str) -> bool:
    """Whether a factor accepts the code. It uses the code up and re-encrypts a secret of an old key."""
    field = SECRETS[row.type]
    try:
        if row.type == Type.RECOVERY_CODES:
            number = next((each for each, one in _unused_codes(row).items() if constant_time_compare(one, code)), None)
            mark = None if number is None else ("used_mask", row.data["used_mask"] | 1 << number)
        else:
            step = _time_step(sealing.unseal(row.data[field]), code, after=row.data.get("last_step", 0))
            mark = None if step is None else ("last_step", step)
    except sealing.SealError as error:
        logger.error("second factor %s of user %s cannot be checked: %s", row.pk, row.user_id, error)
        return False
    if mark is None:
        return False
    row.data |= dict([mark]) | {field: sealing.reencrypt(row.data[field])}
    row.last_used_at = timezone.now()
    row.save(update_fields=["data", "last_used_at"])
    return True


def _normalized_code(code: str) -> str:
    """A code without spaces and dashes."""
    return "".join(sign for sign in code if sign.isalnum())[:CODE_LENGTH]


def _time_step(secret: str, code: str, *, after: int) -> int | None:
    """The code's time step, if valid and later than `after`. A clock may be half a minute off."""
    app = pyotp.TOTP(secret)
    now = int(time.time()) // app.interval
    steps = range(max(now - 1, after + 1), now + 2)
    return next((step for step in steps if constant_time_compare(app.generate_otp(step), code)), None)


def _unused_codes(row: Authenticator) -> dict[int, str]:
    """Unused recovery codes by number, computed as allauth did, which wrote the first rows. Raises SealError."""
    made, codes = hmac.new(sealing.unseal(row.data["seed"]).encode(), digestmod="sha1"), {}
    for number in range(RECOVERY_CODES):
        made.update(f"{number:3},".encode())
        if not row.data["used_mask"] >> number & 1:
            codes[number] = f"{int.from_bytes(made.digest()[:4], 'big') % 10**RECOVERY_DIGITS:0{RECOVERY_DIGITS}}"
    return codes


def _add_recovery_codes(user: User) -> None:
    """Make recovery codes for a user who has none."""
    data = {"seed": sealing.seal(secrets.token_hex(40)), "used_mask": 0}
    Authenticator.objects.get_or_create(user=user, type=Type.RECOVERY_CODES, defaults={"data": data})


# --- Authenticator apps ----------------------------------------------------------------------------------
def app_address(user: User, secret: str) -> str:
    """What an app reads from the picture."""
    return pyotp.TOTP(secret).provisioning_uri(name=user.username, issuer_name=current().name)


@transaction.atomic
def set_up_app(*, user: User, secret: str, code: str) -> None:
    """Accept an app after its first code. Raises SecondFactorRefusedError, EndedError."""
    proofs.lock_if_valid(user)
    step = _time_step(secret, _normalized_code(code), after=0)
    if step is None or Authenticator.objects.filter(user=user, type=Type.TOTP).exists():
        raise SecondFactorRefusedError
    data = {SECRETS[Type.TOTP]: sealing.seal(secret), "last_step": step}
    Authenticator.objects.create(user=user, type=Type.TOTP, data=data)
    _add_recovery_codes(user)
    addresses.send_notice(user, "factor_added", factor="app")


# --- Passkeys --------------------------------------------------------------------------------------------
def _webauthn() -> Any:
    from accounts.signing_in import webauthn

    return webauthn


def _passkeys(user: User) -> list[Authenticator]:
    return list(Authenticator.objects.filter(user=user, type=Type.WEBAUTHN))


def _pop_challenge(session: SessionBase) -> Any:
    """What the last challenge needs. It counts once. Raises SecondFactorRefusedError."""
    state = session.pop(CHALLENGE, None)
    if state is None:
        raise SecondFactorRefusedError
    return state


def new_passkey_options(*, user: User, session: SessionBase) -> dict[str, Any]:
    """Options to create a passkey."""
    options: dict[str, Any]
    options, session[CHALLENGE] = _webauthn().registration_challenge(user, _passkeys(user))
    return options


@transaction.atomic
def add_passkey(*, user: User, session: SessionBase, name: str, credential: Any) -> None:
    """Add a passkey. Raises SecondFactorRefusedError, FullError, EndedError."""
    proofs.lock_if_valid(user)
    if len(_passkeys(user)) >= PASSKEYS:
        raise PasskeyCapError
    try:
        _webauthn().check_registration(_pop_challenge(session), credential)
    except MALFORMED as error:
        raise SecondFactorRefusedError from error
    data = {"name": name[:NAME_LENGTH], "credential": credential}
    Authenticator.objects.create(user=user, type=Type.WEBAUTHN, data=data)
    _add_recovery_codes(user)
    addresses.send_notice(user, "factor_added", factor="passkey")


def passkey_options(*, user: User | None, session: SessionBase) -> dict[str, Any]:
    """Options for a proof by a passkey. Without a user, by anybody's."""
    options: dict[str, Any]
    options, session[CHALLENGE] = _webauthn().authentication_challenge(_passkeys(user) if user is not None else [])
    return options


@transaction.atomic
def use_passkey(*, user: User | None, session: SessionBase, answer: Any) -> User:
    """The passkey's user, who may be suspended. Raises SecondFactorRefusedError."""
    webauthn = _webauthn()
    try:
        pk = user.pk if user is not None else webauthn.user_id_of(answer)
        held = (
            User.objects.locked().filter(pk=pk, deleted_at=None).first()
        )  # of two answers at once, the second is later
        if held is None:
            raise SecondFactorRefusedError
        row, counter = webauthn.check_authentication(_pop_challenge(session), _passkeys(held), answer)
        _store_counter(row, counter)
    except MALFORMED as error:
        raise SecondFactorRefusedError from error
    return user or held


def _store_counter(row: Authenticator, counter: int) -> None:
    """Store a passkey's counter. Raises SecondFactorRefusedError unless it grew: a copy of the passkey may be about.

    Many passkeys never count and send 0 (WebAuthn, 7.2).
    """
    before = row.data.get(COUNTER, _webauthn().registered_data(row).counter)
    if (counter or before) and counter <= before:
        logger.warning("passkey %s of user %s counts backwards: %s after %s", row.pk, row.user_id, counter, before)
        raise SecondFactorRefusedError
    row.data[COUNTER] = counter
    row.last_used_at = timezone.now()
    row.save(update_fields=["data", "last_used_at"])


# --- Either ----------------------------------------------------------------------------------------------
@transaction.atomic
def remove(*, user: User, row_id: int) -> bool:
    """Remove a factor, and the recovery codes with the last one. False if there is no such factor.

    Raises EndedError.
    """
    proofs.lock_if_valid(user)
    gone, _rows = Authenticator.objects.filter(user=user, pk=row_id, type__in=FACTORS).delete()
    if not gone:
        return False
    if not has_factor(user):
        Authenticator.objects.filter(user=user).delete()
    addresses.send_notice(user, "factor_removed")
    return True


def recovery_codes(user: User) -> list[str]:
    """Unused recovery codes. Empty if the secret key was lost."""
    row = Authenticator.objects.filter(user=user, type=Type.RECOVERY_CODES).first()
    try:
        return list(_unused_codes(row).values()) if row is not None else []
    except sealing.SealError as error:
        logger.error("recovery codes of user %s cannot be read: %s", user.pk, error)
        return []


@transaction.atomic
def renew_recovery_codes(*, user: User) -> None:
    """Replace the recovery codes. Raises SecondFactorRefusedError, EndedError."""
    proofs.lock_if_valid(user)
    if not has_factor(user):
        raise SecondFactorRefusedError
    Authenticator.objects.filter(user=user, type=Type.RECOVERY_CODES).delete()
    _add_recovery_codes(user)
    addresses.send_notice(user, "recovery_codes_renewed")


@transaction.atomic
def remove_all(*, user: User) -> bool:
    """Remove all factors, for an admin. False without any."""
    User.objects.locked().get(pk=user.pk)
    gone, _rows = Authenticator.objects.filter(user=user).delete()
    if gone:
        addresses.send_notice(user, "factor_removed")
    return bool(gone)


# --- Another secret key ----------------------------------------------------------------------------------
def reencrypt_secrets() -> tuple[int, int]:
    """Re-encrypt all secrets. Returns numbers of changed and unreadable ones."""
    changed = lost = after = 0
    while True:
        with transaction.atomic():
            rows = Authenticator.objects.select_for_update().filter(pk__gt=after, type__in=SECRETS).order_by("pk")
            batch = list(rows[:AT_ONCE])
            for row in batch:
                sealed = _reencrypt_secret(row)
                lost += sealed is None
                changed += bool(sealed)
        if not batch:
            return changed, lost
        after = batch[-1].pk


def _reencrypt_secret(row: Authenticator) -> bool | None:
    """Re-encrypt a factor's secret. Returns whether it changed, or None if no key decrypts it."""
    field = SECRETS[row.type]
    try:
        stored = sealing.reencrypt(row.data[field])
    except sealing.SealError:
        return None
    if stored == row.data[field]:
        return False
    row.data[field] = stored
    row.save(update_fields=["data"])
    return True
