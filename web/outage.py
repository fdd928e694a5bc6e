"""Errors outside views: JSON for the APIs, else pages. Outages are a 503, never a 500."""

import logging
import sys
from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist, RequestDataTooBig
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed
from django.shortcuts import render
from django.template import TemplateDoesNotExist, loader
from django.urls import Resolver404
from django.views import defaults

from storage.postgresql import long_statements
from web import uploads
from web.headers import nonce
from web.pages import theme
from web.refusals import RefusalError
from web.requests import find_view, is_user_known
from web.rest import OUTAGES, RETRY_SECONDS, ApiView, FeedResponse, LockedError, OutageError, outage_of

logger = logging.getLogger(__name__)


class OutageMiddleware:
    """Answers refusals, 503 in an outage, and 413 for a body that was not read. The admin's pages may run longer
    statements.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if uploads.TOO_LONG in request.META:
            return too_long(request)
        if request.path_info.startswith(f"/{settings.ADMIN_PATH}"):
            with long_statements():
                return self.get_response(request)
        response = self.get_response(request)
        return wrong_method(request, response) if isinstance(response, HttpResponseNotAllowed) else response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponseBase | None:
        """The answer to a refusal or an outage. None for other errors."""
        if isinstance(exception, ObjectDoesNotExist):
            return not_found(request, exception)
        if isinstance(exception, RefusalError):
            return {403: permission_denied, 404: not_found}.get(exception.status, bad_request)(request, exception)
        if not isinstance(exception, OUTAGES):
            return None
        return unavailable(request, outage=outage_of(exception))


def _view(request: HttpRequest) -> type[ApiView] | None:
    try:
        found = find_view(request)
    except Resolver404:
        return None
    view = getattr(found.func, "cls", None)
    return view if isinstance(view, type) and issubclass(view, ApiView) else None


def _is_api(request: HttpRequest) -> bool:
    return request.path_info.startswith("/api/") or _view(request) is not None


def _problem(request: HttpRequest, status: int, detail: str) -> HttpResponse:
    return FeedResponse((_view(request) or ApiView).problem(detail), status=status)


READ_ONLY_SECONDS = 60
"""Retry-After in read-only mode."""


def unavailable(request: HttpRequest, why: str = "", outage: OutageError | None = None) -> HttpResponse:
    """Answer 503 without asking a server. `why`: the reason if the site is read-only."""
    outage = outage or OutageError()
    if _is_api(request):
        detail = f"The site can be read, and takes no changes for now: {why}" if why else str(outage.detail)
        response = _problem(request, 503, detail)
    else:
        try:  # no context processors: they would read the session
            page = loader.get_template("503.html").render(
                {"why": why, "is_locked": isinstance(outage, LockedError), **nonce(request)}
            )
        except TemplateDoesNotExist:
            page = f"<!doctype html><title>Unavailable</title><h1>{outage.detail}</h1>"
        response = HttpResponse(page, status=503)
    response["Retry-After"] = str(READ_ONLY_SECONDS if why else RETRY_SECONDS)
    return response


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 400 as JSON or a page."""
    if isinstance(exception, RequestDataTooBig):
        return too_long(request)
    if _is_api(request):
        return _problem(request, 400, "The request can't be read.")
    # No context processors: they might read the unreadable request.
    frame = {"user": request.user if is_user_known(request) else None}
    return HttpResponse(loader.get_template("400.html").render(nonce(request) | theme(request) | frame), status=400)


def too_long(request: HttpRequest) -> HttpResponse:
    """Answer 413 as JSON or a page."""
    if _is_api(request):
        return _problem(request, 413, "The body has too many bytes.")
    frame = {"user": request.user if is_user_known(request) else None}
    return HttpResponse(loader.get_template("413.html").render(nonce(request) | theme(request) | frame), status=413)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 403 as JSON or a page."""
    if _is_api(request):
        return _problem(request, 403, "You do not have permission to perform this action.")
    return defaults.permission_denied(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 404 as JSON or a page."""
    if _is_api(request):
        return _problem(request, 404, "Not found.")
    return defaults.page_not_found(request, exception)


def wrong_method(request: HttpRequest, response: HttpResponseNotAllowed) -> HttpResponse:
    """Answer 405, as a page if somebody opens the address of a form."""
    if _is_api(request):
        return response
    page = loader.get_template("405.html").render(nonce(request), request)
    return HttpResponse(page, status=405, headers={"Allow": response["Allow"]})


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500, or 503 for an outage in a middleware."""
    error = sys.exc_info()[1]
    if isinstance(error, OUTAGES):
        return unavailable(request, outage=outage_of(error))
    if _is_api(request):
        return _problem(request, 500, "The server failed.")
    try:  # no context processors, as above
        return HttpResponse(loader.get_template("500.html").render(nonce(request)), status=500)
    except TemplateDoesNotExist:
        return defaults.server_error(request)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer 403 for a missing or wrong CSRF token, as JSON or a page."""
    if _is_api(request):
        return _problem(request, 403, f"CSRF Failed: {reason}")
    if "HX-Request" in request.headers and not request.user.is_authenticated:
        return HttpResponse(status=401)  # the cookies ended with the session: the open page shows that
    return render(request, "403_csrf.html", status=403)
