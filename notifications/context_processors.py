"""The unread count for every page's template."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from accounts.models import User
from notifications.feed import Unread, unread_count


def unread(request: HttpRequest) -> dict[str, Any]:
    """`unread_notifications` (feed.Unread), counted only if used."""

    def count() -> Unread:
        user = getattr(request, "user", None)
        return unread_count(user) if isinstance(user, User) else Unread(0, False)

    return {"unread_notifications": SimpleLazyObject(count)}
