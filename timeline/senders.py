"""The senders whom a page reads: those of the reader's home, or the members of one of the reader's lists.

A list is read by the same statements as home. Each is built twice, once for each `Feed`.

See docs/decisions.md: Lists have no windows.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from relations.rules import READER, followees, followees_without_reposts, is_wanted, is_wanted_at_home, members
from storage.connections import fetch

# IS TRUE: ids are looked up in a hash, which is empty for most readers.
POSTS_ONLY = f"IN ({followees_without_reposts(READER)})"


class Feed(NamedTuple):
    """The parts of a statement that differ between home and a list."""

    senders: str
    """A query of the senders, as (id, posts_only). Blocks and mutes are checked later, for the few on a page."""
    wanted: Callable[[str, str], str]
    """The condition of relations.rules on a reader and a sender, blocks and mutes included."""


HOME = Feed(
    f"""
    {followees(READER, f"followee_id AS id, (followee_id {POSTS_ONLY}) IS TRUE AS posts_only")}
    UNION ALL SELECT {READER}::bigint, false
    """,
    is_wanted_at_home,
)
LIST = Feed(members("%(list)s", f"member_id AS id, (member_id {POSTS_ONLY}) IS TRUE AS posts_only"), is_wanted)
"""Members are followed. The list also shows those whom an exclusive list takes out of home."""


class Statement(NamedTuple):
    """A statement about a reader's home, and the same about one of the reader's lists."""

    of_home: str
    of_list: str

    def rows(self, params: dict[str, Any], list_id: int, into: Any = None) -> list[Any]:
        """The rows about home, or about this list if `list_id` is not 0; `into` makes an object of each."""
        if list_id:
            return fetch(self.of_list, params | {"list": list_id}, into=into)
        return fetch(self.of_home, params, into=into)


def statement(build: Callable[[Feed], str]) -> Statement:
    """Build a statement for home and for lists."""
    return Statement(build(HOME), build(LIST))
