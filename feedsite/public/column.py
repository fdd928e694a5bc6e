"""The column beside every page on a wide screen, which narrow ones find in Discover: what the page itself has not.

The page asks for it once it is shown (column.js), so no page waits for it, and the browser keeps it for a minute.
"""

from dataclasses import dataclass, field

from django.contrib.auth.models import AnonymousUser
from django.utils.translation import gettext as _

from accounts.models import User
from items.trending import Trend, trends
from live.hosting import coming, live_now
from live.hydrate import SessionBody
from relations.suggestions import followed_by, known_followers, suggestions
from relations.visibility import visible_user

PEOPLE = 3
TAGS = 5
SESSIONS = 3
COMING = 5
KNOWN = 5


@dataclass(frozen=True, slots=True)
class Proposed:
    """A user whom the reader may follow, and up to two names of whom the reader follows and who follow them."""

    person: User
    followed_by: list[str]


@dataclass(frozen=True, slots=True)
class Column:
    """Everything that the column shows."""

    people: list[Proposed] = field(default_factory=list)
    trends: list[Trend] = field(default_factory=list)
    sessions: list[SessionBody] = field(default_factory=list)
    coming: list[SessionBody] = field(default_factory=list)
    """At Live: the next sessions of others than whom the reader follows."""
    known: list[User] = field(default_factory=list)
    """On a profile: followers of its user whom the reader follows."""
    searches: list[tuple[str, str]] = field(default_factory=list)
    """At search: words for a narrower query, and the query."""


def column_of(reader: User | AnonymousUser, *, at: str = "", name: str = "", query: str = "") -> Column:
    """The column for this reader, on the page `at`: live, people (which proposes some itself), profile (of `name`), or
    search (for `query`); home and others otherwise. Strangers are proposed no people.
    """
    if at == "live":
        return Column(people=_proposed(reader), coming=coming(reader, limit=COMING))
    if at == "search":
        return Column(searches=_narrower(query, reader), sessions=live_now(reader, limit=SESSIONS))
    if at == "profile" and (known := _known(reader, name)):
        return Column(known=known, trends=trends(reader)[:TAGS])
    people = [] if at == "people" else _proposed(reader)
    return Column(people=people, trends=trends(reader)[:TAGS], sessions=live_now(reader, limit=SESSIONS))


def _proposed(reader: User | AnonymousUser) -> list[Proposed]:
    if not isinstance(reader, User):
        return []
    people = suggestions(reader, count=PEOPLE)
    why = followed_by(reader, people)
    return [Proposed(person, why.get(person.pk, [])) for person in people]


def _known(reader: User | AnonymousUser, name: str) -> list[User]:
    user = visible_user(name, reader) if isinstance(reader, User) else None
    return known_followers(reader, user, count=KNOWN) if user and isinstance(reader, User) else []


def _narrower(query: str, reader: User | AnonymousUser) -> list[tuple[str, str]]:
    """Narrower queries than this one, of plain words."""
    words = query.split()
    if not words or any(mark in query for mark in '"“”#:@'):
        return []
    found = [(_("Exactly these words"), f'"{" ".join(words)}"')] if len(words) > 1 else []
    if len(words) == 1:
        found.append((_("As a hashtag"), f"#{words[0]}"))
    if isinstance(reader, User):
        found.append((_("Only from you"), f"from:{reader.username} {query}"))
    return found
