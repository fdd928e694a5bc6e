"""What waits for moderators, for the navigation of staff. The package `moderation` registers its SQL here at start-up.

See docs/decisions.md: Imports point down.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from accounts.models import User
from notifications.feed import ANYTHING_NEW, STILL, Unread, count_unread
from relations.rules import READER
from storage.connections import fetch


def _nothing(reader: str) -> str:
    return "SELECT NULL::bigint"


@dataclass
class Desk:
    """`waiting`: a statement of the number that waits for a reader. NULL: they are no moderator."""

    waiting: Callable[[str], str] = _nothing


desk = Desk()


@cache
def _statement() -> str:
    return f"SELECT EXISTS ({ANYTHING_NEW}), ({desk.waiting(READER)})"


def staff_counts(reader: User) -> tuple[Unread, int | None]:
    """The unread count of a member of staff, and what waits for them, usually by one query."""
    has_news, waiting = fetch(_statement(), {"reader": reader.pk, "still": STILL})[0]
    return (count_unread(reader) if has_news else Unread(0, False)), waiting
