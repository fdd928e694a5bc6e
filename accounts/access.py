"""Pages for signed-in users, and requests of open pages."""

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import User
from accounts.proofs import LoginEndedError
from web.pages import FORM_METHODS, PageRequest, View, next_page, wants_part

P = ParamSpec("P")

READER_HEADER = "X-Reader"
"""An open page names its reader in this header (base.html)."""
READER_FIELD = "page_reader"
"""A form names its reader in this field (asking.js)."""
API = "/api/"
FORBIDDEN = 403
UNAUTHORIZED = 401
"""Answer to an open page after its session ended."""


def signed_in(view: Callable[Concatenate[PageRequest, User, P], HttpResponseBase]) -> View[P]:
    """Pass the reader to the view. Strangers sign in first, and readers whose login ends meanwhile."""

    @wraps(view)
    def guard(request: PageRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if isinstance(request.user, User):
            with suppress(LoginEndedError):
                return view(request, request.user, *args, **kwargs)
        if wants_part(request):  # the open page stays and asks its reader to sign in (asking.js)
            return HttpResponse(status=UNAUTHORIZED)
        return redirect(_login_url(request.get_full_path() if request.method == "GET" else next_page(request)))

    return guard


def member_page(view: Callable[Concatenate[PageRequest, User, P], HttpResponseBase]) -> View[P]:
    """Decorate a page for signed-in users that changes nothing."""
    return require_safe(signed_in(view))


def member_act(view: Callable[Concatenate[PageRequest, User, P], HttpResponseBase]) -> View[P]:
    """Decorate the target of a signed-in user's form or button."""
    return require_POST(signed_in(view))


def member_form(view: Callable[Concatenate[PageRequest, User, P], HttpResponseBase]) -> View[P]:
    """Decorate a page with a form that signed-in users send to the page itself."""
    return require_http_methods(FORM_METHODS)(signed_in(view))


class ReaderMiddleware:
    """Refuses requests of a page that was loaded for another reader, except log-out.

    See docs/decisions.md: A page names its reader.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, args: Any, options: Any) -> HttpResponse | None:
        """Refuse another reader's page, or let the view run."""
        named = request.headers.get(READER_HEADER)
        if named is not None:
            return None if named == str(request.user.pk) else HttpResponse(status=UNAUTHORIZED)
        if request.method != "POST" or request.path_info.startswith(API) or request.path_info == reverse("logout"):
            return None
        named = request.POST.get(READER_FIELD)
        if named is None or not request.user.is_authenticated or named == str(request.user.pk):
            return None
        return render(request, "403_reader.html", status=FORBIDDEN)


def _login_url(back: str) -> str:
    query = f"?{urlencode({'next': back})}" if back and back != "/" else ""
    return reverse("login") + query
