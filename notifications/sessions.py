"""Live sessions as notifications show them. The room above, which has the sessions, says how to find them at start-up.

See docs/decisions.md: Notifications learn of sessions at start-up.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from accounts.models import User


class SessionCard(msgspec.Struct):
    """A live session, as far as a notification tells of it; `state` is the one it is in now."""

    id: str
    title: str
    state: str


def _none(session_ids: Iterable[int], reader: User) -> Mapping[int, SessionCard]:
    return {}


@dataclass
class SessionCards:
    """`shown` is SQL: whether the reader may see the session `n.session_id` (with the parameter `reader`). `cards`
    tells of those of the sessions that the reader may see, in one query.
    """

    shown: str = "false"
    cards: Callable[[Iterable[int], User], Mapping[int, SessionCard]] = _none


sessions = SessionCards()
