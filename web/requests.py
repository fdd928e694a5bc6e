import logging
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.signals import request_finished
from django.dispatch import receiver
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import ResolverMatch, resolve
from django.utils.functional import SimpleLazyObject, empty

from runtime import afterwards, logs, metrics
from storage import replica

logger = logging.getLogger("feedsite.access")

READING = frozenset({"GET", "HEAD", "OPTIONS"})
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OUTAGE = 503
READINESS = "readyz"
"""The route whose 503 reports a server, and is no failed request."""
NOWHERE = "(none)"
"""The route of unknown addresses, because the addresses themselves have no bound."""

_children: dict[tuple[str, str, int], Any] = {}


class RequestMiddleware:
    """Gives each request an id, counts, times and logs it, and runs what follows the answer (runtime.afterwards). It is
    the outermost middleware, to record all answers.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer a request, and record the answer."""
        began = time.perf_counter()
        about = logs.valid_or_new_id(request.META.get("HTTP_X_REQUEST_ID", ""))
        logs.request_id.set(about)
        with afterwards.collected() as acts:
            response = self.get_response(request)
        response._resource_closers.insert(0, acts.run)  # type: ignore[attr-defined]  # called when the server closes it
        response.headers[logs.HEADER] = about
        if may_have_written(request, response):
            replica.record_write(known_user(request))
        count_and_log(request, response, time.perf_counter() - began)
        return response


@receiver(request_finished)
def clear_request_id(**kwargs: Any) -> None:
    """Clear the request's id after the answer. Not in the middleware, because Django may log errors later."""
    logs.request_id.set("")


def count_and_log(request: HttpRequest, response: HttpResponseBase, seconds: float) -> None:
    """Count an answered request, and log it."""
    route, method, status = route_of(request), method_of(request), response.status_code
    child = _children.get((route, method, status))
    if child is None:  # looking labels up costs more than counting
        child = _children[route, method, status] = metrics.http_seconds.labels(route, method, str(status))
    child.observe(seconds)
    if status >= 500 and route != READINESS:
        metrics.http_failures.inc()
    if settings.ACCESS_LOG:
        fields: dict[str, Any] = {
            "route": route,
            "method": method,
            "status": status,
            "ms": round(seconds * 1000, 1),
            "user": known_user(request),
            "source": response.headers.get("X-Feed-Source"),
        }
        fields = {name: value for name, value in fields.items() if value is not None}
        logger.info(" ".join(f"{name}={value}" for name, value in fields.items()), extra=fields)


def may_have_written(request: HttpRequest, response: HttpResponseBase) -> bool:
    """Whether the request may have written something that its user looks for next."""
    if request.method in READING or response.status_code == OUTAGE:
        return False
    view = getattr(getattr(request.resolver_match, "func", None), "cls", None)
    return not getattr(view, "only_reads", False)


@lru_cache(1_000)
def match_of(path: str, urlconf: str) -> ResolverMatch:
    """What an address leads to. Raises Resolver404. Django may try hundreds of patterns."""
    match = resolve(path, urlconf)
    match.tried = []  # those patterns take 30 kB
    return match


def find_view(request: HttpRequest) -> ResolverMatch:
    """The view of a request, looked up once. Raises Resolver404."""
    if request.resolver_match is None:
        request.resolver_match = match_of(request.path_info, getattr(request, "urlconf", settings.ROOT_URLCONF))
    return request.resolver_match


def route_of(request: HttpRequest) -> str:
    """The pattern of the request's address, without names or ids."""
    match = getattr(request, "resolver_match", None)
    if match is None or getattr(getattr(match.func, "cls", None), "is_of_unknown_addresses", False):
        return settings.STATIC_URL if request.path_info.startswith(settings.STATIC_URL) else NOWHERE
    route: str = match.route
    if route.startswith(settings.ADMIN_PATH):
        return "admin/"  # hundreds of routes with few requests
    return NOWHERE if route == "^api/" else route or "/"


def method_of(request: HttpRequest) -> str:
    """The request's method, or `other`, because callers may invent methods."""
    return request.method if request.method in METHODS else "other"


def known_user(request: HttpRequest) -> int | None:
    """The id of the request's user, if a view has read them."""
    return request.user.pk if is_user_known(request) else None


def is_user_known(request: HttpRequest) -> bool:
    """Whether a view has read the request's user."""
    user: Any = getattr(request, "user", None)
    return user is not None and not (isinstance(user, SimpleLazyObject) and user.__dict__.get("_wrapped") is empty)
