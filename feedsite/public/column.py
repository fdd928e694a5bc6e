"""The column beside every page on wide screens. Loaded after the page (column.js), and cached by browsers for a
minute.
"""

from dataclasses import dataclass, field

from django.contrib.auth.models import AnonymousUser
from django.utils.translation import gettext as _

from accounts.models import User
from items.tags.trending import Trend, trends
from live.hosting import live_now, upcoming_unfollowed
from live.hydrate import SessionBody
from relations.suggestions import KnownFollowers, followed_by, known_followers, suggestions
from relations.visibility import find_user

PEOPLE = 3
TAGS = 5
SESSIONS = 3
COMING = 5
KNOWN = 5


@dataclass(frozen=True, slots=True)
class SuggestedUser:
    """A user to follow, with the followees who follow them."""

    person: User
    known: KnownFollowers | None


@dataclass(frozen=True, slots=True)
class SideColumn:
    """The content of the column."""

    people: list[SuggestedUser] = field(default_factory=list)
    trends: list[Trend] = field(default_factory=list)
    sessions: list[SessionBody] = field(default_factory=list)
    coming: list[SessionBody] = field(default_factory=list)
    """On Live: next sessions of hosts whom the reader does not follow."""
    known: list[User] = field(default_factory=list)
    """On a profile: its followers whom the reader follows."""
    searches: list[tuple[str, str]] = field(default_factory=list)
    """On search: descriptions of narrower queries, and the queries."""


def column_of(reader: User | AnonymousUser, *, at: str = "", name: str = "", query: str = "") -> SideColumn:
    """The column beside page `at`: live, people, profile (of `name`), search (for `query`), or another.

    Strangers get no people.
    """
    if at == "live":
        return SideColumn(people=_suggested_users(reader), coming=upcoming_unfollowed(reader, limit=COMING))
    if at == "search":
        return SideColumn(searches=_narrower_searches(query, reader), sessions=live_now(reader, limit=SESSIONS))
    if at == "profile" and (known := _known_followers(reader, name)):
        return SideColumn(known=known, trends=trends(reader)[:TAGS])
    people = [] if at == "people" else _suggested_users(reader)
    return SideColumn(people=people, trends=trends(reader)[:TAGS], sessions=live_now(reader, limit=SESSIONS))


def _suggested_users(reader: User | AnonymousUser) -> list[SuggestedUser]:
    if not isinstance(reader, User) or reader.hides_suggestions:
        return []
    people = suggestions(reader, count=PEOPLE)
    why = followed_by(reader, people)
    return [SuggestedUser(person, why.get(person.pk)) for person in people]


def _known_followers(reader: User | AnonymousUser, name: str) -> list[User]:
    user = find_user(name, reader) if isinstance(reader, User) else None
    return known_followers(reader, user, count=KNOWN) if user and isinstance(reader, User) else []


def _narrower_searches(query: str, reader: User | AnonymousUser) -> list[tuple[str, str]]:
    words = query.split()
    if not words or any(mark in query for mark in '"“”#:@'):
        return []
    found = [(_("Exact phrase"), f'"{" ".join(words)}"')] if len(words) > 1 else []
    if len(words) == 1:
        found.append((_("As a hashtag"), f"#{words[0]}"))
    if isinstance(reader, User):
        found.append((_("Only your posts"), f"from:{reader.username} {query}"))
    return found
