"""The announcement at the top of every page, until a browser dismisses it. Another announcement is shown again.

An app dismisses it for its user (accounts.actions.dismiss_announcement), in all apps and in no browser.
"""

import hashlib

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

COOKIE = "dismissed"
LIFE_SECONDS = 31_536_000


def for_browser(request: HttpRequest, news: str) -> str:
    """The announcement for this browser; empty where it was dismissed there."""
    return "" if news and request.COOKIES.get(COOKIE) == mark(news) else news


def dismiss(response: HttpResponseBase, news: str) -> None:
    """Let this browser show the announcement no more."""
    response.set_cookie(
        COOKIE, mark(news), max_age=LIFE_SECONDS, secure=settings.SESSION_COOKIE_SECURE, httponly=True, samesite="Lax"
    )


def mark(news: str) -> str:
    """The name by which a dismissal knows an announcement: its text's own."""
    return hashlib.sha256(news.encode()).hexdigest()[:16]
