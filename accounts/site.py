"""The admin's own door, with the same lock as the site's."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext_noop
from django.views.decorators.cache import never_cache

from accounts import guard
from accounts.actions import end_streams
from accounts.models import User
from web.pages import too_many

SAID_BY_DJANGO = (
    gettext_noop("Model name"),
    gettext_noop("Add link"),
    gettext_noop("Change or view list link"),
    gettext_noop("After you’ve created a user, you’ll be able to edit more user options."),  # noqa: RUF001 (as Django has it)
)
"""Texts of Django's admin that Django's own Chinese catalogue lacks; here they get into the site's catalogue."""


class AdminSite(admin.AdminSite):
    """Django's, where attempts to sign in are counted as everywhere, and what a session has open ends with it."""

    @method_decorator(never_cache)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Sign in, unless the address or the name has tried too often."""
        if request.method != "POST":
            return super().login(request, extra_context)
        wait = guard.attempt(request, request.POST.get("username", ""))
        if wait is not None:
            return too_many(request, wait)
        response = super().login(request, extra_context)
        if isinstance(request.user, User):
            guard.remember(response, request.user)
        return response

    @method_decorator(never_cache)
    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Sign out, and end the user's open streams."""
        user_id = request.user.pk
        response = super().logout(request, extra_context)
        if user_id and request.method == "POST":
            end_streams(user_id=user_id)
        return response
