"""The reader's language and time zone, for the pages of one request.

Who is signed in chooses both in the settings; what they leave open, and everything for strangers, is as the browser
says: its language by the cookie of the language switch or Accept-Language, its zone by the cookie that site.js sets.
Without either it is the site's zone.
The API speaks English and UTC, whoever asks.
"""

import zoneinfo
from collections.abc import Callable
from datetime import tzinfo
from functools import cache

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers

from accounts.models import User

ZONE_COOKIE = "time_zone"
"""Spelled in site.js too."""
PLAIN = ("/api/", "/healthz", "/readyz")
"""Addresses that programs ask for: nothing there depends on who reads, so nobody is looked up."""


@cache
def zone_names() -> frozenset[str]:
    """Every IANA name that this machine knows."""
    return frozenset(zoneinfo.available_timezones())


def language_of(request: HttpRequest) -> str:
    """The code of one of `LANGUAGES`."""
    chosen = request.user.language if isinstance(request.user, User) else ""
    return chosen if chosen in dict(settings.LANGUAGES) else translation.get_language_from_request(request)


def zone_of(request: HttpRequest) -> tzinfo:
    """The zone whose times the reader is shown; the site's if none is chosen, or its name is unknown."""
    chosen = request.user.time_zone if isinstance(request.user, User) else ""
    for name in (chosen, request.COOKIES.get(ZONE_COOKIE, "")):
        if name in zone_names():
            return zoneinfo.ZoneInfo(name)
    zone: zoneinfo.ZoneInfo = settings.SITE_ZONE
    return zone


def set_language_cookie(response: HttpResponseBase, language: str) -> None:
    """Let this browser keep a language, also for whoever is not signed in; "" lets it forget."""
    if not language:
        response.delete_cookie(settings.LANGUAGE_COOKIE_NAME, samesite="Lax")
        return
    response.set_cookie(
        settings.LANGUAGE_COOKIE_NAME,
        language,
        max_age=settings.LANGUAGE_COOKIE_AGE,
        secure=settings.HTTPS,
        httponly=True,
        samesite="Lax",
    )


class ReaderLocaleMiddleware:
    """Shows every page in its reader's language and zone. It costs no query: pages look up their reader anyway."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(PLAIN):
            return self.get_response(request)
        language = language_of(request)
        # Both end with the request: threads serve one reader after another, and programs in between.
        with translation.override(language), timezone.override(zone_of(request)):
            response = self.get_response(request)
        response.headers.setdefault("Content-Language", language)
        patch_vary_headers(response, ("Accept-Language", "Cookie"))
        return response
