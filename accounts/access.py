"""Access to pages: views for signed-in users only, and open pages for their own reader only."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse

from accounts.models import User
from web.pages import PageRequest, View, next_page, wants_part

P = ParamSpec("P")

READER_HEADER = "X-Reader"
"""The header by which an open page names whom it was made for (base.html)."""
READER_FIELD = "page_reader"
"""The field by which a form says the same (asking.js)."""
API = "/api/"
FORBIDDEN = 403
UNAUTHORIZED = 401
"""The answer to an open page whose session ended."""


def signed_in(view: Callable[Concatenate[PageRequest, User, P], HttpResponseBase]) -> View[P]:
    """Give the page its reader; who is not signed in is asked to, and comes back afterwards."""

    @wraps(view)
    def guard(request: PageRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if isinstance(request.user, User):
            return view(request, request.user, *args, **kwargs)
        if wants_part(request):  # the open page stays, and tells its reader (asking.js)
            return HttpResponse(status=UNAUTHORIZED)
        return redirect(_login(request.get_full_path() if request.method == "GET" else next_page(request)))

    return guard


class ReaderMiddleware:
    """Refuses what an open page asks for after another user has logged in, or its reader out, in the same browser: the
    token of the moment comes with the request, and the page's words would be said, or its buttons pressed, by another.

    Scripts are answered 401, forms by a page with the status 403. Only logging out is open to every page. What names no
    reader was asked for by no open page of a signed-in reader.

    See docs/decisions.md: A page names its reader.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, args: Any, options: Any) -> HttpResponse | None:
        """The refusal of a request from another user's page; None lets the view run."""
        named = request.headers.get(READER_HEADER)
        if named is not None:
            return None if named == str(request.user.pk) else HttpResponse(status=UNAUTHORIZED)
        if request.method != "POST" or request.path_info.startswith(API) or request.path_info == reverse("logout"):
            return None
        named = request.POST.get(READER_FIELD)
        if named is None or not request.user.is_authenticated or named == str(request.user.pk):
            return None
        return render(request, "403_reader.html", status=FORBIDDEN)


def _login(back: str) -> str:
    query = f"?{urlencode({'next': back})}" if back and back != "/" else ""
    return reverse("login") + query
