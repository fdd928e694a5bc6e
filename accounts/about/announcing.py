"""The announcement on every page, dismissed by a cookie."""

import hashlib

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

COOKIE = "dismissed"
LIFE_SECONDS = 31_536_000


def undismissed_news(request: HttpRequest, news: str) -> str:
    """The announcement, or "" if dismissed here."""
    return "" if news and request.COOKIES.get(COOKIE) == news_digest(news) else news


def dismiss(response: HttpResponseBase, news: str) -> None:
    """Hide the announcement in this browser."""
    response.set_cookie(
        COOKIE,
        news_digest(news),
        max_age=LIFE_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def news_digest(news: str) -> str:
    """A hash that identifies an announcement."""
    return hashlib.sha256(news.encode()).hexdigest()[:16]
