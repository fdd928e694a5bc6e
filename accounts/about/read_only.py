"""The read-only mode (`manage.py readonly`). Writes get 503 with the reason."""

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from accounts.about.site import current
from web.outage import unavailable
from web.rest import SAFE_METHODS

READS = frozenset({"/api/v1/seen/filter", "/api/v1/discover/feed", "/discover", "/announcement/dismiss"})
"""Addresses of POST requests that write nothing."""


class ReadOnlyMiddleware:
    """Refuses writes."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Refuse or pass on."""
        if request.method in SAFE_METHODS or request.path_info in READS or not (why := current().read_only_why):
            return self.get_response(request)
        return unavailable(request, why)
