"""The column beside every page on a wide screen, which narrow ones find in Discover: people, hashtags, live sessions.

The page asks for it once it is shown (column.js), so no page waits for it, and the browser keeps it for a minute.
"""

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from items.trending import Trend, trends
from live.hosting import live_now
from live.hydrate import SessionBody
from relations.suggestions import followed_by, suggestions

PEOPLE = 3
TAGS = 5
SESSIONS = 3


@dataclass(frozen=True, slots=True)
class Proposed:
    """A user whom the reader may follow, and up to two names of whom the reader follows and who follow them."""

    person: User
    followed_by: list[str]


@dataclass(frozen=True, slots=True)
class Column:
    """Everything that the column shows."""

    people: list[Proposed]
    trends: list[Trend]
    sessions: list[SessionBody]


def column_of(reader: User | AnonymousUser) -> Column:
    """The column for this reader; strangers are proposed no people."""
    people = suggestions(reader, count=PEOPLE) if isinstance(reader, User) else []
    why = followed_by(reader, people) if isinstance(reader, User) else {}
    return Column(
        people=[Proposed(person, why.get(person.pk, [])) for person in people],
        trends=trends(reader)[:TAGS],
        sessions=live_now(reader, limit=SESSIONS),
    )
