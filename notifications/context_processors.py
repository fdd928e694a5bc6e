"""The counts of every page's navigation."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from accounts.models import User
from notifications.desk import staff_counts
from notifications.feed import Unread, unread_count


class Counts:
    """What the navigation counts. `waiting`: cases and appeals, for moderators alone."""

    def __init__(self, user: Any) -> None:
        self.unread, self.waiting = Unread(0, False), None
        if isinstance(user, User) and user.is_staff:
            self.unread, self.waiting = staff_counts(user)
        elif isinstance(user, User):
            self.unread = unread_count(user)


def unread(request: HttpRequest) -> dict[str, Any]:
    """`unread_notifications` (feed.Unread) and `nav_counts`, counted only if used, together."""
    counts: Any = SimpleLazyObject(lambda: Counts(getattr(request, "user", None)))
    return {"unread_notifications": SimpleLazyObject(lambda: counts.unread), "nav_counts": counts}
