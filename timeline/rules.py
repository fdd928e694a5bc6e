"""The rules of a reader's home, as SQL text for the statements that fill windows, read past them, verify and explain.

An item is asked four things, each a part with a name. It is of a **kind** that timelines hold (`IN_TIMELINE`). It
**belongs** to the reader (`BELONGS`): it is the reader's own, or of a followee whose posts, or posts and reposts, the
reader wants at home. It is **held** just now (`HELD`): its sender is active, and follows back where the item is for
mutuals. Its original, where it is a repost, is **shown** (`original_shown`). An item is `i`, its sender `s`.

The constants are for home and one reader, the parameter `reader`. The functions take an expression of the reader's id,
which may be a column of many readers, and `wanted`, the condition on senders: a list asks less than home
(timeline.senders.Feed).

A public post with a hashtag that the reader follows is an entry too, whoever its sender is (`carried`). By that alone
it is shown if its sender is active and wanted at home (`welcome`). Else it is a hidden entry, as is a repost whose
original is hidden.

`timeline/pull.py` asks the same of streams, in which items of one sender and circle stand in order.
`timeline/oracle.py` says it in Python, and the tests of properties compare every page with that.

See docs/decisions.md: Windows first, then one statement.
See docs/decisions.md: Windows keep what may come back without an event.
"""

from collections.abc import Callable

from items.visibility import for_mutuals, for_others, is_listed, is_no_reply, is_published, original_visible
from relations.rules import (
    READER,
    follows,
    is_wanted_at_home,
    leaves_reposts_out,
    mutes,
)

Wanted = Callable[[str, str], str]
"""A condition of relations.rules on a reader and a sender."""


# --- One item --------------------------------------------------------------------------------------------
def _all(conditions: dict[str, str]) -> str:
    return " AND ".join(conditions.values())


def kinds(reader: str = READER) -> dict[str, str]:
    """The conditions on an item to be in a home timeline at all, by the name of what each excludes."""
    return {
        "status": is_published("i"),
        "reply": is_no_reply("i"),
        "mentioned": is_listed("i"),
        "self": f"({for_others('i')} OR i.sender_id = {reader})",
    }


def reposts_wanted(reader: str = READER) -> str:
    """Whether an item is a post, or the reader wants reposts of its sender at home."""
    return f"(i.repost_of_id IS NULL OR NOT {leaves_reposts_out(reader, 'i.sender_id')})"


def belongs(reader: str = READER, wanted: Wanted = is_wanted_at_home) -> str:
    """Whether one item `i` belongs into the reader's home, shown just now or not."""
    sender = "i.sender_id"
    followed = f"{follows(reader, sender)} AND {wanted(reader, sender)} AND {reposts_wanted(reader)}"
    return f"{_all(kinds(reader))} AND ({sender} = {reader} OR ({followed}))"


BELONGS = belongs()


def belongs_among(senders: str) -> str:
    """`belongs` of an item `i` whose sender is among an array, an expression: follows, blocks and mutes are asked once
    for each of these. An item of another sender than these and the reader does not belong.
    """
    known = f"unnest({senders}) AS one (id)"
    circle = f"""
    SELECT {READER}::bigint
    UNION ALL SELECT one.id FROM {known} WHERE {follows(READER, "one.id")} AND {is_wanted_at_home(READER, "one.id")}
    """  # noqa: S608 (constants)
    posts_only = f"SELECT one.id FROM {known} WHERE {leaves_reposts_out(READER, 'one.id')}"  # noqa: S608
    return f"""
    {_all(kinds())} AND i.sender_id = ANY (ARRAY({circle}))
        AND (i.repost_of_id IS NULL OR i.sender_id <> ALL (ARRAY({posts_only})))
    """


def _holds(sender: str, is_active: str, for_mutuals: str, reader: str) -> dict[str, str]:
    """Conditions on others' items that belong into the reader's home, to be entries of it just now. OFFSET 0: a
    probe, not a hash of all who follow the reader.
    """
    return {
        "inactive": is_active,
        "mutuals": f"""(NOT {for_mutuals} OR {follows(sender, reader)})""",
    }


def holds(reader: str = READER) -> dict[str, str]:
    """The conditions on another's item `i` to be an entry just now, by the name of what each excludes."""
    return _holds("i.sender_id", "s.is_active", f"({for_mutuals('i')})", reader)


def held(reader: str = READER) -> str:
    """Whether an item `i` that belongs into the reader's home is an entry of it just now."""
    return f"(i.sender_id = {reader} OR {_all(holds(reader))})"


HELD = held()


def original_shown(entry: str, reader: str = READER) -> str:
    """Whether an entry is no repost, or its original may be seen by the reader, who does not mute its sender."""
    return original_visible(entry, reader, also=f"AND NOT {mutes(reader, 'o.sender_id')}")


def shown(reader: str = READER, wanted: Wanted = is_wanted_at_home) -> str:
    """Whether an item `i` belongs into the reader's home, and the reader is shown it just now."""
    return f"{belongs(reader, wanted)} AND ({held(reader)} AND {original_shown('i', reader)})"


# --- Hashtags that the reader follows: of statements with the CTE `tags` -----------------------------------
def carried(item: str) -> str:
    """The hashtags of an item that the reader follows, in order, if it is a public post and has any; else NULL. IS
    TRUE: each hashtag of the item is looked up in a hash.
    """
    return f"""(
        SELECT array_agg(t.tag ORDER BY t.tag) FROM items_itemtag t
        WHERE t.item_id = {item} AND t.is_public_post AND (t.tag IN (SELECT name FROM tags)) IS TRUE)
    """  # noqa: S608 (constants)


def welcome(sender: str, is_active: str) -> str:
    """Whether the reader is shown what a sender's public posts bring by a hashtag alone."""
    return f"({is_active} AND {is_wanted_at_home(READER, sender)})"


def welcome_among(senders: str) -> str:
    """`welcome` of an item `i` and its sender `s`, asked once for each sender of an array, an expression."""
    wanted = f"SELECT one.id FROM unnest({senders}) AS one (id) WHERE {is_wanted_at_home(READER, 'one.id')}"  # noqa: S608
    return f"(s.is_active AND i.sender_id = ANY (ARRAY({wanted})))"


def is_active(user: str) -> str:
    """Whether a user is active; a probe."""
    return f"EXISTS (SELECT FROM accounts_user u WHERE u.id = {user} AND u.is_active OFFSET 0)"


# --- Streams: the items of one sender for one circle -----------------------------------------------------
def stream_belongs(wanted: Wanted) -> str:
    """Whether the entries of a `stream` belong into the reader's windows."""
    return f"(stream.id = {READER} OR {wanted(READER, 'stream.id')})"


def stream_held(wanted: Wanted) -> str:
    """Whether the entries of a `stream` belong into the reader's windows, and are in the reader's home just now."""
    conditions = _holds("stream.id", is_active("stream.id"), "(stream.circle = 'mutuals')", READER)
    return f"{stream_belongs(wanted)} AND (stream.id = {READER} OR {_all(conditions)})"
