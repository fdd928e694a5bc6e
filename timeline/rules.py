"""The rules of a reader's home, as SQL text for the statements that fill windows, read past them, verify and explain.

An item is asked four things, each a part with a name. It is of a **kind** that timelines hold (`IN_TIMELINE`). It
**belongs** to the reader (`BELONGS`): it is the reader's own, or of a followee whose posts, or posts and reposts, the
reader wants at home. It is **held** just now (`HELD`): its sender is active, and follows back where the item is for
mutuals. Its original, where it is a repost, is **shown** (`original_shown`). `%(reader)s` is the reader's id; an item
is `i`, its sender `s`.

`timeline/pull.py` asks the same of streams, in which items of one sender and circle stand in order.
`timeline/oracle.py` says it in Python, and the tests of properties compare every page with that.

See docs/decisions.md: The first look at a page asks for senders, and for no originals.
See docs/decisions.md: Windows keep what a suspension or a missing follow-back hides.
See docs/decisions.md: Reposts that are left out are no entries.
"""

from items.visibility import for_mutuals, for_others, is_no_reply, is_published, original_visible
from relations.rules import (
    READER,
    follows,
    is_wanted_at_home,
    leaves_reposts_out,
    mutes,
)


# --- One item --------------------------------------------------------------------------------------------
def _all(conditions: dict[str, str]) -> str:
    return " AND ".join(conditions.values())


KINDS = {
    "status": is_published("i"),
    "reply": is_no_reply("i"),
    "self": f"({for_others('i')} OR i.sender_id = %(reader)s)",
}
IN_TIMELINE = _all(KINDS)
"""Whether a sender's item belongs into a home timeline at all, of one row."""
FOLLOWED = follows(READER, "i.sender_id")
REPOSTS_WANTED = f"(i.repost_of_id IS NULL OR NOT {leaves_reposts_out(READER, 'i.sender_id')})"
WANTED = f"{is_wanted_at_home(READER, 'i.sender_id')} AND {REPOSTS_WANTED}"
BELONGS = f"{IN_TIMELINE} AND (i.sender_id = %(reader)s OR ({FOLLOWED} AND {WANTED}))"
"""Whether one item `i` belongs into the reader's home, shown just now or not."""


def belongs_among(senders: str) -> str:
    """`BELONGS` of an item `i` whose sender is among an array, an expression: follows, blocks and mutes are asked once
    for each of these. An item of another sender than these and the reader does not belong.
    """
    known = f"unnest({senders}) AS one (id)"
    circle = f"""
    SELECT {READER}::bigint
    UNION ALL SELECT one.id FROM {known} WHERE {follows(READER, "one.id")} AND {is_wanted_at_home(READER, "one.id")}
    """  # noqa: S608 (constants)
    posts_only = f"SELECT one.id FROM {known} WHERE {leaves_reposts_out(READER, 'one.id')}"  # noqa: S608
    return f"""
    {IN_TIMELINE} AND i.sender_id = ANY (ARRAY({circle}))
        AND (i.repost_of_id IS NULL OR i.sender_id <> ALL (ARRAY({posts_only})))
    """


def _holds(sender: str, is_active: str, for_mutuals: str) -> dict[str, str]:
    """Conditions on others' items that belong into the reader's home, to be entries of it just now. OFFSET 0: a
    probe, not a hash of all who follow the reader.
    """
    return {
        "inactive": is_active,
        "mutuals": f"""(NOT {for_mutuals} OR {follows(sender, READER)})""",
    }


def _is_held(sender: str, is_active: str, for_mutuals: str) -> str:
    """Whether what belongs into the reader's home is an entry of it just now."""
    return f"({sender} = %(reader)s OR {_all(_holds(sender, is_active, for_mutuals))})"


OF_ITEM = ("i.sender_id", "s.is_active", f"({for_mutuals('i')})")
HOLDS, HELD = _holds(*OF_ITEM), _is_held(*OF_ITEM)
"""`_holds` and `_is_held`, of one item `i` and its sender `s`."""


def original_shown(entry: str) -> str:
    """Whether an entry is no repost, or its original may be seen by the reader, who does not mute its sender."""
    return original_visible(entry, also=f"AND NOT {mutes(READER, 'o.sender_id')}")


SHOWN = f"({HELD} AND {original_shown('i')})"
"""Whether the reader is shown just now what belongs into their timeline."""


# --- Streams: the items of one sender for one circle -----------------------------------------------------
STREAM_BELONGS = f"(stream.id = %(reader)s OR {is_wanted_at_home(READER, 'stream.id')})"
"""Whether the entries of a `stream` belong into the reader's windows."""
STREAM_HELD = f"{STREAM_BELONGS} AND " + _is_held(
    "stream.id",
    "EXISTS (SELECT FROM accounts_user u WHERE u.id = stream.id AND u.is_active OFFSET 0)",
    "(stream.circle = 'mutuals')",
)
"""Whether they belong there, and are in the reader's home just now."""
