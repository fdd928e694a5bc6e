"""Decides sign-ins for pages, API and admin.

The guard counts the attempt before the password is checked. A passkey is both factors. The caller learns of a second
factor only after the right password.

See docs/decisions.md: Own sign-in flows.
"""

import time
import unicodedata
from typing import Any

from django.contrib.auth import SESSION_KEY, login
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from accounts import addresses, passwords, proofs
from accounts.joining import applications
from accounts.models import EmailAddress, User
from accounts.signing_in import guard, places, second_factors
from accounts.signing_in.suspension import Suspension, suspension_of

PENDING = "sign_in"
"""Session key of a right password that waits for its second factor."""
PENDING_SECONDS = 600
BACKEND = "accounts.signing_in.sessions.Backend"


class TooManyAttemptsError(Exception):
    """Too many attempts. Wait `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class LoginRefusedError(Exception):
    """Unknown account, wrong password or sign-in not allowed."""


class ApplicationPendingError(LoginRefusedError):
    """Name and password belong to an application that still waits."""


class SuspendedError(LoginRefusedError):
    """The password, and the code if needed, are right, but `user` is suspended."""

    def __init__(self, user: User, suspension: Suspension) -> None:
        super().__init__(user)
        self.user, self.suspension = user, suspension


class CodeNeededError(Exception):
    """The password is right, and `user` has a second factor."""

    def __init__(self, user: User) -> None:
        super().__init__(user)
        self.user = user


class WrongCodeError(Exception):
    """The password is right, the code is not."""


CODE_ERRORS = (TooManyAttemptsError, CodeNeededError, WrongCodeError)
"""Errors about attempts and codes, not about name and password."""


def verify_login(request: HttpRequest, *, name: str, password: str, code: str = "") -> User:
    """The user who may sign in. Raises TooManyAttemptsError, LoginRefusedError, CodeNeededError, WrongCodeError.

    Only who proved everything learns of a suspension (SuspendedError).
    """
    username = username_of(name)
    wait = guard.count_login_attempt(request, username, typed=name)
    if wait is not None:
        raise TooManyAttemptsError(wait)
    if not password:
        raise LoginRefusedError
    user = User.objects.filter(deleted_at=None).named(username).first()
    match = passwords.compare(password, user.password if user is not None else UNUSABLE_PASSWORD_PREFIX)
    if user is None or not match.is_right:
        raise ApplicationPendingError if applications.is_waiting(username, password) else LoginRefusedError
    if match.is_old:
        _renew_hash(user, password)
    suspension = check_active(user)
    if second_factors.has_factor(user):
        if not code:
            raise CodeNeededError(user)
        check_code(request, user=user, code=code)
    if suspension:
        raise SuspendedError(user, suspension)
    return user


def check_active(user: User) -> Suspension | None:
    """The suspension of a user who proved who they are. None for an active one. Raises LoginRefusedError if they are
    inactive without it.
    """
    if user.is_active:
        return None
    suspension = suspension_of(user)
    if suspension is None:  # it may have ended just now
        user.refresh_from_db(fields=["is_active"])
        if not user.is_active:
            raise LoginRefusedError
    return suspension


def _renew_hash(user: User, password: str) -> None:
    """Hash a right password again, unless another has been set meanwhile."""
    hashed = passwords.hashed(password)
    if User.objects.filter(pk=user.pk, password=user.password).update(password=hashed):
        user.password = hashed


def username_of(name: str) -> str:
    """The username for a typed name or address."""
    text = unicodedata.normalize("NFKC", name[: guard.NAME_LENGTH]).replace("\0", "").strip()
    if "@" not in text.lstrip("@"):
        return text.removeprefix("@")
    rows = EmailAddress.objects.filter(email=text.lower(), verified=True)
    found: str | None = rows.values_list("user__username", flat=True).first()
    return found or text


def check_code(request: HttpRequest, *, user: User, code: str) -> None:
    """Use up a code. Raises WaitError, WrongCodeError."""
    wait = guard.count_code_attempt(request, user)
    if wait is not None:
        raise TooManyAttemptsError(wait)
    try:
        second_factors.use_code(user=user, code=code)
    except second_factors.SecondFactorRefusedError as error:
        raise WrongCodeError from error


# --- Between the password and the second factor ----------------------------------------------------------
def remember_first_step(request: HttpRequest, user: User) -> None:
    """Remember that the password was right. A new session key prevents session fixation."""
    request.session.cycle_key()
    request.session[PENDING] = {
        "user": user.pk,
        "until": time.time() + PENDING_SECONDS,
        "standing": user.get_session_auth_hash(),
    }


def remembered_user(request: HttpRequest) -> User | None:
    """The user whose password was right in this session lately."""
    pending: Any = request.session.get(PENDING)
    if not pending or not 0 <= pending["until"] - time.time() <= PENDING_SECONDS:  # a clock may have been set back
        return None
    user = User.objects.filter(pk=pending["user"], deleted_at=None).first()
    return user if user is not None and user.get_session_auth_hash() == pending["standing"] else None


# --- Afterwards ------------------------------------------------------------------------------------------
def start_session(request: HttpRequest, user: User) -> None:
    """Start a session. The caller then calls `guard.set_device_cookie`. Raises EndedError.

    The session names the password and epoch that were proven, so what changes them later ends it.
    """
    is_new = user.last_login is not None and not guard.known_device(request, user)
    request.session.pop(PENDING, None)
    if SESSION_KEY in request.session:
        request.session.flush()  # deleting a user's session writes that user's row, so before the lock
    with transaction.atomic():
        proofs.lock_if_valid(user)
        login(request, user, backend=BACKEND)
        if is_new:
            send_notice(request, user)


def send_notice(request: HttpRequest, user: User) -> None:
    """Write the owner about a sign-in from somewhere new."""
    addresses.send_notice(user, "new_sign_in", **request_origin(request))


def request_origin(request: HttpRequest) -> dict[str, str]:
    """Where and when a request came from."""
    return {
        "device": places.device_kind(places.agent_of(request)),
        "ip": places.ip_of(request),
        "when": f"{timezone.now():%Y-%m-%d %H:%M} UTC",
    }
