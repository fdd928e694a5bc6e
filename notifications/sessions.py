"""Live sessions in notifications: the package `live` registers its functions here at start-up."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from accounts.models import User


class SessionCard(msgspec.Struct):
    """A live session with its current state."""

    id: str
    title: str
    state: str


def _always_false(reader: str) -> str:
    return "false"


def _no_cards(session_ids: Iterable[int], reader: User) -> Mapping[int, SessionCard]:
    return {}


@dataclass
class SessionCards:
    """Functions for live sessions, which package live sets at start-up. `shown`: SQL whether a reader may see the
    session `n.session_id`. `cards`: cards of the visible sessions, in one query.
    """

    shown: Callable[[str], str] = _always_false
    cards: Callable[[Iterable[int], User], Mapping[int, SessionCard]] = _no_cards


sessions = SessionCards()
