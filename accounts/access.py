"""Access to pages: views for signed-in users only."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec
from urllib.parse import urlencode

from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from accounts.models import User
from web.pages import PageRequest, View, wants_part

P = ParamSpec("P")


def signed_in(view: Callable[Concatenate[PageRequest, User, P], HttpResponseBase]) -> View[P]:
    """Give the page its reader; who is not signed in is asked to, and comes back afterwards."""

    @wraps(view)
    def guard(request: PageRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if isinstance(request.user, User):
            return view(request, request.user, *args, **kwargs)
        if wants_part(request):  # a session that ended under an open page: the whole page goes to the login
            return HttpResponseClientRedirect(_login(request.htmx.current_url_abs_path or ""))
        return redirect(_login(request.get_full_path() if request.method == "GET" else ""))

    return guard


def _login(back: str) -> str:
    query = f"?{urlencode({'next': back})}" if back and back != "/" else ""
    return reverse("login") + query
