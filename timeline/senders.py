"""The senders and hashtags of a page: home, home with followed hashtags, or a list.

See docs/decisions.md: A followed hashtag is an outbox.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from accounts.models import User
from relations.rules import (
    READER,
    followed_tags,
    followees,
    followees_without_reposts,
    is_wanted,
    is_wanted_at_home,
    members,
)
from storage.connections import fetch

# IS TRUE makes PostgreSQL look ids up in a hash.
POSTS_ONLY = f"IN ({followees_without_reposts(READER)})"


class Scope(NamedTuple):
    """A reader's home, or one of the reader's lists."""

    reader_id: int
    list_id: int = 0
    has_tags: bool = False
    """Whether the reader follows hashtags."""

    @classmethod
    def home_of(cls, reader: User) -> "Scope":
        """The scope of the reader's home."""
        return cls(reader.pk, has_tags=reader.followed_tag_count > 0)


class Feed(NamedTuple):
    """The SQL parts in which the statements of home, home with hashtags and lists differ."""

    senders: str
    """A query of the senders, as (id, posts_only). Blocks and mutes are checked later, only for senders on a page."""
    wanted: Callable[[str, str], str]
    """The condition of relations.rules on a reader and a sender, including blocks and mutes."""
    tags: str = ""
    """A query of the followed hashtags, as (id, name, epoch). It ends with a condition. Empty if there are none."""

    def tags_cte(self, also: str = "") -> str:
        """SQL of the CTE `tags`, to put before other CTEs. "" without hashtags. `also`: a further condition."""
        return f"tags AS MATERIALIZED ({self.tags} {also}),\n    " if self.tags else ""

    def with_tags_clause(self) -> str:
        """SQL of a WITH clause that has only the CTE `tags`. "" without hashtags."""
        return f"WITH tags AS MATERIALIZED ({self.tags})" if self.tags else ""


HOME = Feed(
    f"""
    {followees(READER, f"followee_id AS id, (followee_id {POSTS_ONLY}) IS TRUE AS posts_only")}
    UNION ALL SELECT {READER}::bigint, false
    """,
    is_wanted_at_home,
)
TAGGED = HOME._replace(tags=followed_tags(READER, "g.id, g.name, g.epoch"))
"""The home of a reader who follows hashtags."""
LIST = Feed(members("%(list)s", f"member_id AS id, (member_id {POSTS_ONLY}) IS TRUE AS posts_only"), is_wanted)
"""Members are followed. Lists also show senders whom an exclusive list removes from home."""


class Statement(NamedTuple):
    """One SQL statement in three versions: for home, for home with hashtags, and for lists."""

    of_home: str
    of_tagged: str
    of_list: str

    def rows(self, params: dict[str, Any], scope: Scope, into: Any = None) -> list[Any]:
        """Run the version for this home or list, and return its rows."""
        params["reader"] = scope.reader_id
        if scope.list_id:
            return fetch(self.of_list, params | {"list": scope.list_id}, into=into)
        return fetch(self.of_tagged if scope.has_tags else self.of_home, params, into=into)


def statement(build: Callable[[Feed], str]) -> Statement:
    """Build all three versions of a statement."""
    return Statement(build(HOME), build(TAGGED), build(LIST))
