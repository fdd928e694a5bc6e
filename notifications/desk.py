"""What waits for moderators, for the navigation of staff. `moderation` registers its SQL here at start-up."""

from collections.abc import Callable
from dataclasses import dataclass


def _nothing(reader: str) -> str:
    return "SELECT NULL::bigint"


@dataclass
class Desk:
    """`waiting`: a statement of the number that waits for a reader. NULL: they are no moderator."""

    waiting: Callable[[str], str] = _nothing


desk = Desk()
