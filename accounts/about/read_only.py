"""The read-only mode, which `manage.py readonly` turns on and off: pages go on, and what would change anything is
answered 503 with the reason. The reason is the announcement meanwhile.
"""

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from accounts.about.site import current
from web.outage import unavailable
from web.rest import SAFE_METHODS

READS = frozenset({"/api/v1/seen/filter", "/api/v1/discover/feed", "/discover", "/announcement/dismiss"})
"""Addresses that are posted to and write nothing into the servers."""


class ReadOnlyMiddleware:
    """Refuses what would change anything, before anything is asked."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        if request.method in SAFE_METHODS or request.path_info in READS or not (why := current().read_only_why):
            return self.get_response(request)
        return unavailable(request, why)
