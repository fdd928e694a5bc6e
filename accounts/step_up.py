"""Proof, lately, that the owner of the account sits at the browser: asked for before dangerous changes.

A session notes when the password, and the second factor where there is one, were proven in it: at sign-in, and on the
page that asks for them again. Pages that ask for the password each time (another password, deleting the account) want
this proof of accounts with a second factor.
"""

import time
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request

from accounts import second_factors
from accounts.models import User
from web.pages import PageRequest, next_page

P = ParamSpec("P")

PROVEN = "proven_at"
"""The key of the session: seconds since 1970."""
SECONDS = 900
"""How long a proof counts."""


def note(request: HttpRequest) -> None:
    """Note that the user of this session proved who they are."""
    request.session[PROVEN] = time.time()


def is_proven(request: HttpRequest) -> bool:
    """Whether they did lately."""
    proven: Any = request.session.get(PROVEN, 0)
    return bool(time.time() - SECONDS < proven <= time.time() + SECONDS)


Page = Callable[Concatenate[PageRequest, User, P], HttpResponseBase]


def proven(view: Page[P]) -> Page[P]:
    """Let a page of a signed-in user be seen after a recent proof; without, they are asked for one, and come back."""

    @wraps(view)
    def guard(request: PageRequest, reader: User, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        return view(request, reader, *args, **kwargs) if is_proven(request) else _ask(request)

    return guard


def proven_by_factor(view: Page[P]) -> Page[P]:
    """As `proven`, for accounts with a second factor: a page that asks for the password itself lets the others in."""

    @wraps(view)
    def guard(request: PageRequest, reader: User, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        may = is_proven(request) or not second_factors.is_set(reader)
        return view(request, reader, *args, **kwargs) if may else _ask(request)

    return guard


def check(request: Request, user: User, *, takes_password: bool) -> None:
    """Let a call of the API by a session pass that a page would let pass, too; tokens were given for the proof.

    `takes_password`: the call brings the password, which is proof of accounts without a second factor. Raises
    PermissionDenied.
    """
    if not isinstance(request.successful_authenticator, SessionAuthentication) or is_proven(request._request):
        return
    if takes_password and not second_factors.is_set(user):
        return
    raise PermissionDenied({"detail": f"Prove who you are at {reverse('confirm-identity')}.", "code": "proof_needed"})


def _ask(request: PageRequest) -> HttpResponseBase:
    back = request.path if request.method == "GET" else next_page(request) or reverse("settings-password")
    return redirect(f"{reverse('confirm-identity')}?{urlencode({'next': back})}")
