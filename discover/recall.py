from datetime import datetime
from typing import NamedTuple, Protocol

from accounts.models import User


class RecalledItem(NamedTuple):
    """An item that recall found. `score` is a logarithm, because the decay of old items underflows. `reason`: see
    discover.reasons.
    """

    item_id: int
    sender_id: int
    score: float
    reason: str


class Recall(Protocol):
    """A way to find candidates. Its callers filter them."""

    def candidates(self, reader: User, *, count: int, now: datetime) -> list[RecalledItem]:
        """At most `count` public posts from before `now`, best first. Raises RecallUnavailableError."""
        ...


class RecallUnavailableError(Exception):
    """The server did not answer in time."""
