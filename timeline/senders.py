"""The senders whom a page reads: those of the reader's home, or of one of the reader's lists.

The statements of a list are those of home, with the members of the list in the place of the followees.

See docs/decisions.md: A list is read by the statements of home.
"""

from functools import cache
from typing import Any

from relations.rules import READER, followees, followees_without_reposts, members, unlisted
from storage.connections import fetch

# The senders whom the reader follows, and the reader. Blocks and mutes are asked of the few whose items can be on a
# page. IS TRUE: ids are looked up in a hash, which is empty for most readers.
POSTS_ONLY = f"IN ({followees_without_reposts(READER)})"
SENDERS = f"""
    {followees(READER, f"followee_id AS id, (followee_id {POSTS_ONLY}) IS TRUE AS posts_only")}
    UNION ALL SELECT %(reader)s::bigint, false
"""

# A list is asked of its members alone, and also of those whom it takes out of home. Members are followed.
MEMBERS = members("%(list)s", f"member_id AS id, (member_id {POSTS_ONLY}) IS TRUE AS posts_only")
OF_LIST = {SENDERS: MEMBERS, unlisted(READER, "stream.id"): "true", unlisted(READER, "i.sender_id"): "true"}
OF_HOME = ("l.is_exclusive", f"{READER}::bigint, false")
"""Pieces of the texts that `OF_LIST` replaces, which no statement of a list has: the rule of exclusive lists, and the
reader among the senders.
"""


@cache
def of_list(statement: str) -> str:
    """A statement about a reader's home, for one of the reader's lists, the parameter `list`, instead.

    Raises ValueError where there is nothing to replace, or something of home would be left: then a list would be shown
    as if it were home.
    """
    listed = statement
    for home, instead in OF_LIST.items():
        listed = listed.replace(home, instead)
    if listed == statement or any(piece in listed for piece in OF_HOME):
        raise ValueError(f"a statement of home that does not become one of a list: {statement}")
    return listed


def rows_of(statement: str, params: dict[str, Any], list_id: int, into: Any = None) -> list[Any]:
    """The rows of a statement about a reader's home, or where `list_id` is not 0 about this list of theirs."""
    if list_id:
        statement, params = of_list(statement), params | {"list": list_id}
    return fetch(statement, params, into=into)
