"""Recall: which items a reader may like that they did not ask for.

One small interface; a setting chooses its server.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from accounts.models import User


@dataclass(frozen=True, slots=True)
class Candidate:
    """An item that was recalled for a reader: how much it is worth to them, and why.

    `score` is the logarithm of its worth, because the decay of what is old underflows any floating-point number; it
    orders what is recalled. `reason` is a code, `kind` or `kind:detail`, that discover.reasons turns into words.
    """

    item_id: int
    sender_id: int
    score: float
    reason: str


class Recall(Protocol):
    """Finds candidates. It knows what the reader likes; what must not be shown to them is left out by its callers."""

    def candidates(self, reader: User, *, count: int, now: datetime) -> list[Candidate]:
        """At most `count` candidates, best first: public, published posts made before `now`, neither replies nor
        reposts; relevance times the decay of their age. Raises RecallUnavailableError.
        """
        ...


class RecallUnavailableError(Exception):
    """The server behind a recall did not answer in time."""
