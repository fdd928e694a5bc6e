"""A short path for API requests without a session. All middlewares were half the cost of a constant answer."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponseBase
from django.urls import ResolverMatch
from django.utils.module_loading import import_string

from accounts.access import READER_HEADER
from web.requests import find_view

API = ("/api/v1/", "/api/v2/")


class ApiMiddleware:
    """Answers API requests without a session by a short chain of middlewares.

    The site's own scripts have a session, and need all middlewares.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self.handler = ApiHandler()
        self.handler.load_middleware()

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.handler.answer(request) if is_api_alone(request) else self.get_response(request)


def is_api_alone(request: HttpRequest) -> bool:
    """Whether an API request has no session, not even an ended one."""
    return (
        request.path_info.startswith(API)
        and settings.SESSION_COOKIE_NAME not in request.COOKIES
        and READER_HEADER not in request.headers
    )


class ApiHandler(BaseHandler):
    """Django's handler with `API_MIDDLEWARE`."""

    answer: Callable[[HttpRequest], Any]

    def load_middleware(self, is_async: bool = False) -> None:
        """Build the chain, as Django does."""
        self._view_middleware: list[Any] = []
        self._template_response_middleware: list[Any] = []
        self._exception_middleware: list[Any] = []
        self.answer = convert_exception_to_response(self._get_response)  # type: ignore[attr-defined]
        for name in reversed(settings.API_MIDDLEWARE):
            middleware = import_string(name)(self.answer)
            if hasattr(middleware, "process_view"):
                self._view_middleware.insert(0, middleware.process_view)
            if hasattr(middleware, "process_exception"):
                self._exception_middleware.append(middleware.process_exception)
            self.answer = convert_exception_to_response(middleware)

    def resolve_request(self, request: HttpRequest) -> ResolverMatch:
        """The request's view. Raises Resolver404."""
        # Django's also makes `reverse` lead to the stream's own addresses.
        return super().resolve_request(request) if hasattr(request, "urlconf") else find_view(request)
