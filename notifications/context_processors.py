"""What waits for the reader, for every page's template."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from accounts.models import User
from notifications import feed


def nav_counts(request: HttpRequest) -> dict[str, Any]:
    """`nav_counts` (feed.Waiting), counted only if used."""

    def count() -> feed.Waiting:
        user = getattr(request, "user", None)
        return feed.waiting(user) if isinstance(user, User) else feed.NOTHING

    return {"nav_counts": SimpleLazyObject(count)}
