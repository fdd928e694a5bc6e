"""The reader's language and time zone for each request: the account's, else the browser's, else the site's. The API
answers programs in English and UTC.
"""

import zoneinfo
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo

from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _
from django.utils.translation import pgettext_lazy
from django.utils.translation.trans_real import parse_accept_lang_header

from accounts.about.site import current
from accounts.access import READER_HEADER
from accounts.models import User
from web.times import zone_names

ZONE_COOKIE = "time_zone"
"""Cookie with the browser's time zone. site.js sets it."""
PLAIN = ("/api/", "/avatars/", "/healthz", "/readyz")
"""Addresses for programs. No user is looked up for them."""


PLACES = {
    "Africa/Cairo": pgettext_lazy("city", "Cairo"),
    "Africa/Johannesburg": pgettext_lazy("city", "Johannesburg"),
    "Africa/Lagos": pgettext_lazy("city", "Lagos"),
    "Africa/Nairobi": pgettext_lazy("city", "Nairobi"),
    "America/Argentina/Buenos_Aires": pgettext_lazy("city", "Buenos Aires"),
    "America/Chicago": pgettext_lazy("city", "Chicago"),
    "America/Denver": pgettext_lazy("city", "Denver"),
    "America/Los_Angeles": pgettext_lazy("city", "Los Angeles"),
    "America/Mexico_City": pgettext_lazy("city", "Mexico City"),
    "America/New_York": pgettext_lazy("city", "New York"),
    "America/Sao_Paulo": pgettext_lazy("city", "São Paulo"),
    "America/Toronto": pgettext_lazy("city", "Toronto"),
    "America/Vancouver": pgettext_lazy("city", "Vancouver"),
    "Asia/Bangkok": pgettext_lazy("city", "Bangkok"),
    "Asia/Dubai": pgettext_lazy("city", "Dubai"),
    "Asia/Ho_Chi_Minh": pgettext_lazy("city", "Ho Chi Minh City"),
    "Asia/Hong_Kong": pgettext_lazy("city", "Hong Kong"),
    "Asia/Jakarta": pgettext_lazy("city", "Jakarta"),
    "Asia/Kolkata": pgettext_lazy("city", "Kolkata"),
    "Asia/Kuala_Lumpur": pgettext_lazy("city", "Kuala Lumpur"),
    "Asia/Macau": pgettext_lazy("city", "Macau"),
    "Asia/Manila": pgettext_lazy("city", "Manila"),
    "Asia/Seoul": pgettext_lazy("city", "Seoul"),
    "Asia/Shanghai": pgettext_lazy("city", "Shanghai"),
    "Asia/Singapore": pgettext_lazy("city", "Singapore"),
    "Asia/Taipei": pgettext_lazy("city", "Taipei"),
    "Asia/Tokyo": pgettext_lazy("city", "Tokyo"),
    "Asia/Urumqi": pgettext_lazy("city", "Urumqi"),
    "Australia/Melbourne": pgettext_lazy("city", "Melbourne"),
    "Australia/Sydney": pgettext_lazy("city", "Sydney"),
    "Europe/Amsterdam": pgettext_lazy("city", "Amsterdam"),
    "Europe/Berlin": pgettext_lazy("city", "Berlin"),
    "Europe/Istanbul": pgettext_lazy("city", "Istanbul"),
    "Europe/London": pgettext_lazy("city", "London"),
    "Europe/Madrid": pgettext_lazy("city", "Madrid"),
    "Europe/Moscow": pgettext_lazy("city", "Moscow"),
    "Europe/Paris": pgettext_lazy("city", "Paris"),
    "Europe/Rome": pgettext_lazy("city", "Rome"),
    "Europe/Zurich": pgettext_lazy("city", "Zurich"),
    "Pacific/Auckland": pgettext_lazy("city", "Auckland"),
}
"""Cities with translated names. Others show the IANA name."""


LOCAL = "%Y-%m-%dT%H:%M"
"""The format of a `datetime-local` field."""


def named_zone(name: str) -> tzinfo:
    """The zone with an IANA name, else the reader's."""
    return zoneinfo.ZoneInfo(name) if name in zone_names() else timezone.get_current_timezone()


def zone_city(name: str) -> str:
    """The city of an IANA zone, translated if in `PLACES`."""
    if name in PLACES:
        return str(PLACES[name])
    return name.partition("/")[2].replace("_", " ").replace("/", " / ") or name


def parse_local_time(text: str, zone: tzinfo) -> datetime:
    """The moment of a `datetime-local` field. Raises ValidationError."""
    try:
        naive = datetime.fromisoformat(text.strip())
        if naive.tzinfo is not None:
            raise ValueError(text)
        moment = naive.replace(tzinfo=zone)
        if moment.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != naive:
            raise ValidationError(_("The clocks skip this time on that day. Choose another."))
    except (ValueError, OverflowError):
        raise ValidationError(_("Choose a day and a time.")) from None
    return moment


def language_of(request: HttpRequest) -> str:
    """One of `LANGUAGES`."""
    chosen = request.user.language if isinstance(request.user, User) else ""
    return chosen if chosen in dict(settings.LANGUAGES) else browser_language(request)


def browser_language(request: HttpRequest) -> str:
    """The browser's language, else the site's default."""
    found = translation.get_language_from_request(request)
    default = current().language
    if found != settings.LANGUAGE_CODE or default not in dict(settings.LANGUAGES):
        return found
    asked = [code for code, _weight in parse_accept_lang_header(request.headers.get("Accept-Language", ""))]
    is_asked = any(code.partition("-")[0] == found for code in asked)
    return found if is_asked or request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME) == found else default


def zone_of(request: HttpRequest) -> tzinfo:
    """The reader's zone, else the site's."""
    chosen = request.user.time_zone if isinstance(request.user, User) else ""
    return zoneinfo.ZoneInfo(chosen) if chosen in zone_names() else browser_zone(request)


def browser_zone(request: HttpRequest) -> tzinfo:
    """The browser's zone, else the site's."""
    name = request.COOKIES.get(ZONE_COOKIE, "")
    return zoneinfo.ZoneInfo(name) if name in zone_names() else current().zone


def set_language_cookie(response: HttpResponseBase, language: str) -> None:
    """Remember a language in this browser. "": forget it."""
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
    """Sets language and zone, also for the API when pages call it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer in the reader's language and zone."""
        is_plain = request.path_info.startswith(PLAIN)
        if is_plain and READER_HEADER not in request.headers:
            return self.get_response(request)
        language, zone = language_of(request), timezone.get_default_timezone() if is_plain else zone_of(request)
        # The user is loaded. Pages read them a hundred times, each time slower by Django's lazy object.
        request.user = getattr(request.user, "_wrapped", request.user)
        if request.path_info.startswith(f"/{settings.ADMIN_PATH}") and language not in settings.ADMIN_LANGUAGES:
            language = settings.LANGUAGE_CODE
        # Reset afterwards: a thread serves many readers.
        with translation.override(language), timezone.override(zone):
            response = self.get_response(request)
        response.headers.setdefault("Content-Language", language)
        patch_vary_headers(response, ("Accept-Language", "Cookie"))
        return response
