"""The ground of the pages: what their requests may ask for, and whole pages or parts as answers.

Everything works without JavaScript. Where htmx asks, the same address answers with the part of the page that changes.
"""

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.conf import settings
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.middleware import HtmxDetails

from feedsite import rates
from feedsite.rest import SAFE_METHODS, parse_id

P = ParamSpec("P")

INVALID = 422
"""The status of a form that is shown again; htmx swaps it in, as base.html tells it to."""


class PageRequest(HttpRequest):
    """A request as the middleware leaves it."""

    htmx: HtmxDetails


def wants_part(request: PageRequest) -> bool:
    """Whether htmx asks for a part, and not a browser for a page."""
    return bool(request.htmx) and not request.htmx.boosted and not request.htmx.history_restore_request


def fetches_ahead(request: HttpRequest) -> bool:
    """Whether a browser asks for a page before anybody wants to see it."""
    return request.headers.get("Sec-Purpose", "").startswith("prefetch")


def position(request: HttpRequest, name: str = "last_id") -> int | None:
    """The position in a list that the query names, or None; no item need be there. Raises BadRequest."""
    values = request.GET.getlist(name)
    if len(values) > 1:
        raise BadRequest(f"{name} is given twice")
    if not values or not values[0]:
        return None
    number = parse_id(values[0])
    if number is None:
        raise BadRequest(f"{name} is not an id")
    return number


def next_page(request: HttpRequest) -> str:
    """Where the request wants to go on, if that is a page of this site; else nothing."""
    target = request.POST.get("next") or request.GET.get("next") or ""
    allowed = url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return target if allowed else ""


def show(
    request: PageRequest,
    template: str,
    context: dict[str, Any] | None = None,
    *,
    part: str = "",
    status: int = 200,
) -> HttpResponse:
    """The page, or where htmx asks for it, its `part`. Templates find in `address` the page that the reader is on, also
    while a part of it is answered from somewhere else: that is where forms lead back to.

    Only the reader's own browser keeps it, and asks before it shows it again; going back in the history stays instant.
    """
    page = request.htmx.current_url_abs_path if wants_part(request) else None
    context = {"address": page or request.get_full_path()} | (context or {})
    response = render(request, part if part and wants_part(request) else template, context, status=status)
    patch_vary_headers(response, ["HX-Request"])
    patch_cache_control(response, private=True, no_cache=True)
    return response


def too_many(request: HttpRequest, seconds: float) -> HttpResponse:
    """The page that asks for patience."""
    response = render(request, "429.html", {"seconds": math.ceil(seconds)}, status=429)
    response["Retry-After"] = str(math.ceil(seconds))
    return response


def stream(request: HttpRequest) -> dict[str, Any]:
    """For every template: where pages of signed-in readers hear what happens, or nothing."""
    return {"stream": "/api/v1/stream" if settings.STREAM else ""}


class ReadingRateMiddleware:
    """Counts every look at a page in the rate `read`, as the API counts its own: by reader, strangers by address.

    What has no name is no page (probes, metrics), and the API counts for itself.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, args: Any, options: Any) -> HttpResponse | None:
        match = request.resolver_match
        if match is None or not match.url_name or request.method not in SAFE_METHODS:
            return None
        wait = rates.hit("read", str(request.user.pk or rates.address(request)))
        return too_many(request, wait) if wait is not None else None


View = Callable[Concatenate[PageRequest, P], HttpResponseBase]


def limited(scope: str) -> Callable[[View[P]], View[P]]:
    """Count the writes of a page in the rate `scope`, together with those of the API."""

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def count(request: PageRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if request.method not in SAFE_METHODS:
                wait = rates.hit(scope, str(request.user.pk or rates.address(request)))
                if wait is not None:
                    return too_many(request, wait)
            return view(request, *args, **kwargs)

        return count

    return decorate
