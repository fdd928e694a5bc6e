"""Keeps strangers out of a members-only site. New pages are closed by default."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from accounts.about.site import current

OPEN = frozenset(
    {
        *("about", "terms", "privacy", "moderation-figures", "theme", "dismiss-announcement", "language"),
        *("signup", "signup-waiting", "invite", "first-admin", "login", "logout"),
        *("login-code", "login-passkey", "login-passkey-options", "verify-email"),
        *("password-reset", "password-reset-asked", "password-reset-link"),
        *("drawn-avatar", "drawn-banner", "schema", "docs", "robots", "manifest"),
        *("worker", "offline", "icon"),
        *("oauth-metadata", "oauth-token", "oauth-revoke", "nodeinfo-links", "nodeinfo"),
    }
)
"""URL names of pages that everyone may open."""
OPEN_ADDRESSES = frozenset(
    {
        *("/api/v1/site", "/api/v1/users", "/api/v1/auth/token", "/api/v1/auth/password-reset", "/favicon.ico"),
        # An app reads these before its user signs in.
        *("/api/v1/instance", "/api/v1/instance/", "/api/v2/instance", "/api/v2/instance/", "/api/v1/apps"),
        *("/api/v1/apps/verify_credentials", "/api/v1/instance/rules"),
        *("/api/v1/instance/privacy_policy", "/api/v1/instance/terms_of_service"),
    }
)
API = "/api/"
UNAUTHORIZED = 401


class MembersOnlyMiddleware:
    """Sends strangers to the sign-in. API views check `request.is_for_members` after authentication."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, args: Any, options: Any) -> HttpResponse | None:
        """Redirect strangers, or let the view run."""
        if not current().is_for_members or is_open(request):
            return None
        if request.path_info.startswith(API):
            request.is_for_members = True  # type: ignore[attr-defined]
            return None
        if request.user.is_authenticated:
            return None
        if request.headers.get("HX-Request"):
            return HttpResponse(status=UNAUTHORIZED)
        address = request.get_full_path()
        query = f"?{urlencode({'next': address})}" if request.method == "GET" and address != "/" else ""
        return redirect(f"{reverse(settings.LOGIN_URL)}{query}")


def is_open(request: HttpRequest) -> bool:
    """Whether everyone may open this address."""
    match = request.resolver_match
    if match is None or "admin" in match.app_names:
        return True
    return match.url_name in OPEN or request.path_info in OPEN_ADDRESSES
