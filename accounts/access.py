"""Access to pages: views for signed-in users only."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec
from urllib.parse import urlencode

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from accounts.models import User
from web.pages import PageRequest, View, next_page, wants_part

P = ParamSpec("P")

READER = "X-Reader"
"""The header by which an open page names whom it was made for (base.html)."""
UNAUTHORIZED = 401
"""The answer to an open page whose session ended."""


def signed_in(view: Callable[Concatenate[PageRequest, User, P], HttpResponseBase]) -> View[P]:
    """Give the page its reader; who is not signed in is asked to, and comes back afterwards."""

    @wraps(view)
    def guard(request: PageRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if isinstance(request.user, User) and is_reader_of_page(request, request.user):
            return view(request, request.user, *args, **kwargs)
        if wants_part(request):  # the open page stays, and tells its reader (asking.js)
            return HttpResponse(status=UNAUTHORIZED)
        return redirect(_login(request.get_full_path() if request.method == "GET" else next_page(request)))

    return guard


def is_reader_of_page(request: PageRequest, user: User) -> bool:
    """Whether `user` is whom the open page was made for; another tab may have logged in as another user since."""
    return request.headers.get(READER, str(user.pk)) == str(user.pk)


def _login(back: str) -> str:
    query = f"?{urlencode({'next': back})}" if back and back != "/" else ""
    return reverse("login") + query
