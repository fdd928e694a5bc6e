"""Live sessions as notifications show them. The room above, which has the sessions, says how to find them at start-up.

See docs/decisions.md: Imports point down.
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


def _hidden(reader: str) -> str:
    return "false"


def _none(session_ids: Iterable[int], reader: User) -> Mapping[int, SessionCard]:
    return {}


@dataclass
class SessionCards:
    """`shown` makes SQL of an expression of the reader's id: whether this reader may see the session `n.session_id`.
    `cards` gives the sessions that the reader may see, in one query.
    """

    shown: Callable[[str], str] = _hidden
    cards: Callable[[Iterable[int], User], Mapping[int, SessionCard]] = _none


sessions = SessionCards()
