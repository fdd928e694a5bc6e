"""Where a sign-in is decided, for the page, the API and the admin: how often, by which name, by what proof.

1. The name: a username, or a proven e-mail address, which stands for its owner's name in all counts.
2. The guard counts the attempt (accounts/signing_in/guard.py) before the password is looked at.
3. The password, or a passkey, which is both factors at once.
4. The second factor where the account has one. Only after the right password is its caller told that it takes a code.

`begin` starts the session of a user who was let in; a letter tells the owner of a browser that was not known.

See docs/decisions.md: Own sign-in flows on allauth's parts.
"""

import time
import unicodedata
from typing import Any

from allauth.account.models import EmailAddress
from django.contrib.auth import authenticate, login
from django.http import HttpRequest
from django.utils import timezone

from accounts.joining import applications
from accounts.models import User
from accounts.signing_in import addresses, guard, places, second_factors

PENDING = "sign_in"
"""The key of the session under which a right password waits for its second factor."""
PENDING_SECONDS = 600
BACKEND = "accounts.signing_in.sessions.Backend"


class WaitError(Exception):
    """Too many attempts; `seconds` are to be waited."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class WrongError(Exception):
    """No such account, a wrong password, or an account that may not sign in: it is not said which."""


class WaitingError(WrongError):
    """The name and password are those of an application that waits for an admin: its owner may know."""


class CodeNeededError(Exception):
    """The password is right, and `user` has a second factor."""

    def __init__(self, user: User) -> None:
        super().__init__(user)
        self.user = user


class WrongCodeError(Exception):
    """The password is right, the code of the second factor is not."""


CODE_ERRORS = (WaitError, CodeNeededError, WrongCodeError)
"""The errors after the right password."""


def decide(request: HttpRequest, *, name: str, password: str, code: str = "") -> User:
    """The user who may sign in. An attempt without a password is counted, too.

    Raises WaitError, WrongError, CodeNeededError, WrongCodeError.
    """
    username = username_of(name)
    wait = guard.attempt(request, username, typed=name)
    if wait is not None:
        raise WaitError(wait)
    if not password:
        raise WrongError
    user = authenticate(request, username=username, password=password)
    if not isinstance(user, User):
        raise WaitingError if applications.is_waiting(username, password) else WrongError
    if second_factors.is_set(user):
        if not code:
            raise CodeNeededError(user)
        check_code(request, user=user, code=code)
    return user


def username_of(name: str) -> str:
    """The username that somebody means who types a name or an address. One statement, whether there is such an account
    or not.
    """
    text = unicodedata.normalize("NFKC", name[: guard.NAME_LENGTH]).replace("\0", "").strip()
    if "@" not in text.lstrip("@"):
        return text.removeprefix("@")
    rows = EmailAddress.objects.filter(email=text.lower(), verified=True)
    found: str | None = rows.values_list("user__username", flat=True).first()
    return found or text


def check_code(request: HttpRequest, *, user: User, code: str) -> None:
    """Count an attempt, and take a code of the user's second factor, if it is one. Raises WaitError, WrongCodeError."""
    wait = guard.attempt_code(request, user)
    if wait is not None:
        raise WaitError(wait)
    try:
        second_factors.use_code(user=user, code=code)
    except second_factors.RefusedError as error:
        raise WrongCodeError from error


# --- Between the password and the second factor ----------------------------------------------------------
def put_off(request: HttpRequest, user: User) -> None:
    """Remember in the session that the password was right. The session gets another key, so a planted one is not it."""
    request.session.cycle_key()
    request.session[PENDING] = {
        "user": user.pk,
        "until": time.time() + PENDING_SECONDS,
        "standing": user.get_session_auth_hash(),
    }


def put_off_user(request: HttpRequest) -> User | None:
    """The user whose password was right in this session a short while ago, and holds still."""
    pending: Any = request.session.get(PENDING)
    if not pending or pending["until"] < time.time():
        return None
    user = User.objects.active().filter(pk=pending["user"]).first()
    return user if user is not None and user.get_session_auth_hash() == pending["standing"] else None


# --- Afterwards ------------------------------------------------------------------------------------------
def begin(request: HttpRequest, user: User) -> None:
    """Begin a session of this user; the caller lets the browser be known by `guard.remember`."""
    is_new = user.last_login is not None and not guard.known_device(request, user)
    request.session.pop(PENDING, None)
    login(request, user, backend=BACKEND)
    if is_new:
        tell(request, user)


def tell(request: HttpRequest, user: User) -> None:
    """Tell the owner by a letter that somebody signed in from a browser or program that was not known."""
    addresses.tell(user, "new_sign_in", **whence(request))


def whence(request: HttpRequest) -> dict[str, str]:
    """From where and when a request came, in the words of letters: none of them is the caller's."""
    return {
        "device": places.device_kind(places.agent_of(request)),
        "ip": places.ip_of(request),
        "when": f"{timezone.now():%Y-%m-%d %H:%M} UTC",
    }
