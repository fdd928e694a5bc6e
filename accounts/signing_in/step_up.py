"""Recent proof of identity, required before dangerous changes.

Pages that ask for the password anyway require it only of accounts with a second factor. A token proves nothing: it may
be years old, so its calls send a code.
"""

import time
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import APIException, PermissionDenied, Throttled, ValidationError
from rest_framework.request import Request

from accounts.actions import check_own_password
from accounts.models import User
from accounts.signing_in import second_factors, sign_in
from web.pages import PageRequest, next_page

P = ParamSpec("P")

PROVEN = "proven_at"
"""Session key of the last proof, in seconds since 1970."""
SECONDS = 900
"""How long a proof counts."""
OPEN_SECONDS = 3_600
"""How long an admin form may stay open after its proof, so that no text is lost."""


def record_proof(request: HttpRequest) -> None:
    """Record a proof in the session."""
    request.session[PROVEN] = time.time()


def is_proven(request: HttpRequest, seconds: int = SECONDS) -> bool:
    """Whether there was a proof in the last `seconds`."""
    proven: Any = request.session.get(PROVEN, 0)
    return bool(time.time() - seconds < proven <= time.time() + seconds)


Page = Callable[Concatenate[PageRequest, User, P], HttpResponseBase]


def proof_required(view: Page[P]) -> Page[P]:
    """Show a page only after a recent proof."""

    @wraps(view)
    def guard(request: PageRequest, reader: User, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        return view(request, reader, *args, **kwargs) if is_proven(request) else _redirect_to_confirm(request)

    return guard


def proof_required_to_post(view: Page[P]) -> Page[P]:
    """Run a POST only after a recent proof. The proof page keeps the POST and sends it on."""

    @wraps(view)
    def guard(request: PageRequest, reader: User, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if request.method != "POST" or is_proven(request):
            return view(request, reader, *args, **kwargs)
        query = urlencode({"act": request.path})
        return HttpResponseRedirect(f"{reverse('confirm-identity')}?{query}", preserve_request=True)

    return guard


def proof_required_with_factor(view: Page[P]) -> Page[P]:
    """Like `proof_required`, but accounts without a second factor need no proof."""

    @wraps(view)
    def guard(request: PageRequest, reader: User, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        may = is_proven(request) or not second_factors.has_factor(reader)
        return view(request, reader, *args, **kwargs) if may else _redirect_to_confirm(request)

    return guard


# --- Calls of the API ------------------------------------------------------------------------------------
def check_proof(request: Request, user: User) -> None:
    """Require a recent proof of calls without a body. A token has none, so it is refused if there is a second factor.

    Raises PermissionDenied.
    """
    if _is_by_session(request):
        if not is_proven(request._request):
            raise _proof_needed()
    elif second_factors.has_factor(user):
        said = "This account has a second factor: send the password and a code by POST."
        raise PermissionDenied({"detail": said, "code": "code_needed"})


def check_password(request: Request, user: User, *, password: str, field: str, code: str) -> None:
    """Require the password, and a code or a recent proof if there is a second factor.

    The password comes first, so that guesses use up no codes. Raises ValidationError, PermissionDenied, and what
    `code_error` makes.
    """
    check_own_password(user=user, password=password, field=field)
    is_by_session = _is_by_session(request)
    if (is_by_session and is_proven(request._request)) or not second_factors.has_factor(user):
        return
    if not code and is_by_session:
        raise _proof_needed()
    try:
        if not code:
            raise sign_in.CodeNeededError(user)
        sign_in.check_code(request._request, user=user, code=code)
    except sign_in.CODE_ERRORS as error:
        raise code_error(error) from error


def code_error(error: Exception) -> APIException:
    """An API error for one of `sign_in.CODE_ERRORS`."""
    if isinstance(error, sign_in.TooManyAttemptsError):
        return Throttled(error.seconds)
    if isinstance(error, sign_in.CodeNeededError):
        said = "This account has a second factor: send a code of its app, or a recovery code."
    else:
        said = "This code does not count."
    return ValidationError({"code": [said]})


def _is_by_session(request: Request) -> bool:
    return isinstance(request.successful_authenticator, SessionAuthentication)


def _proof_needed() -> PermissionDenied:
    return PermissionDenied({"detail": f"Prove who you are at {reverse('confirm-identity')}.", "code": "proof_needed"})


def _redirect_to_confirm(request: HttpRequest) -> HttpResponseBase:
    return redirect_to_proof(
        request.path if request.method == "GET" else next_page(request) or reverse("settings-account")
    )


def redirect_to_proof(back: str) -> HttpResponseBase:
    """Redirect to the proof page, and then to `back`."""
    return redirect(f"{reverse('confirm-identity')}?{urlencode({'next': back})}")
