"""The rules of a reader's home as SQL, for the statements that fill windows, pull, verify and explain.

Each item passes four checks:
- It is of a **kind** that timelines hold (`kind_conditions`).
- It **belongs** to the reader: their own, or from a followee wanted at home (`belongs`).
- It is **present** now: its sender is active and, if it is for mutuals, follows back (`HELD`, no word of moderation).
- If it is a repost, its original is **shown** (`original_shown`).

A public post with a followed hashtag (`followed_tags_of_post`) is an entry from any sender, if the sender is `welcome`.

An item is `i`, its sender `s`. `reader` is an SQL expression of the reader's id, `wanted` the condition on senders:
lists require less than home.

See docs/decisions.md: Windows first, then one statement.
See docs/decisions.md: Windows keep what may come back without an event.
"""

from collections.abc import Callable

from items.visibility import for_mutuals, for_others, is_listed, is_not_reply, is_published, original_visible
from relations.rules import (
    READER,
    follows,
    follows_without_reposts,
    is_wanted_at_home,
    mutes,
)

Wanted = Callable[[str, str], str]
"""A condition of relations.rules on a reader and a sender."""


# --- One item --------------------------------------------------------------------------------------------
def _join_conditions(conditions: dict[str, str]) -> str:
    return " AND ".join(conditions.values())


def kind_conditions(reader: str = READER) -> dict[str, str]:
    """SQL conditions on `i` to be in any home. Each key names what its condition excludes."""
    return {
        "status": is_published("i"),
        "reply": is_not_reply("i"),
        "mentioned": is_listed("i"),
        "self": f"({for_others('i')} OR i.sender_id = {reader})",
    }


def reposts_wanted(reader: str = READER) -> str:
    """SQL condition: `i` is a post, or the reader wants its sender's reposts."""
    return f"(i.repost_of_id IS NULL OR NOT {follows_without_reposts(reader, 'i.sender_id')})"


def belongs(reader: str = READER, wanted: Wanted = is_wanted_at_home) -> str:
    """SQL condition: `i` belongs to the reader, shown now or not."""
    sender = "i.sender_id"
    followed = f"{follows(reader, sender)} AND {wanted(reader, sender)} AND {reposts_wanted(reader)}"
    return f"{_join_conditions(kind_conditions(reader))} AND ({sender} = {reader} OR ({followed}))"


def wanted_among(senders: str) -> str:
    """SQL for those of an array of senders who are wanted at home, followed or not: the CTE `wanted` of `…_among`."""
    return f"""
    SELECT one.id, {follows(READER, "one.id")} AS is_followed
    FROM unnest({senders}) AS one (id) WHERE {is_wanted_at_home(READER, "one.id")}
    """


def belongs_among(senders: str) -> str:
    """SQL condition like `belongs`, checked once for each of `senders`, for statements with the CTE `wanted`.

    `senders`: an SQL array of all candidates' senders. The reader may be missing.
    """
    circle = f"SELECT {READER}::bigint UNION ALL SELECT wanted.id FROM wanted WHERE wanted.is_followed"
    posts_only = f"SELECT one.id FROM unnest({senders}) AS one (id) WHERE {follows_without_reposts(READER, 'one.id')}"
    return f"""
    {_join_conditions(kind_conditions())} AND i.sender_id = ANY (ARRAY({circle}))
        AND (i.repost_of_id IS NULL OR i.sender_id <> ALL (ARRAY({posts_only})))
    """


def _presence_of_sender(sender: str, is_active: str, for_mutuals: str, reader: str) -> dict[str, str]:
    """SQL conditions on a sender for their items to be present now. Each key names what its condition excludes."""
    return {
        "inactive": is_active,
        "mutuals": f"""(NOT {for_mutuals} OR {follows(sender, reader)})""",
    }


def presence_conditions(reader: str = READER) -> dict[str, str]:
    """SQL conditions for `i` to be present now. Each key names what its condition excludes."""
    return _presence_of_sender("i.sender_id", "s.is_active", f"({for_mutuals('i')})", reader)


def is_present(reader: str = READER) -> str:
    """SQL condition: `i`, which belongs, is present now."""
    return f"(i.sender_id = {reader} OR {_join_conditions(presence_conditions(reader))})"


HELD = is_present()


def original_shown(entry: str, reader: str = READER) -> str:
    """SQL condition: an entry is no repost, or the reader may see its original and does not mute its sender."""
    return original_visible(entry, reader, also=f"AND NOT {mutes(reader, 'o.sender_id')}")


def shown(reader: str = READER, wanted: Wanted = is_wanted_at_home) -> str:
    """SQL condition: `i` belongs and is shown now."""
    return f"{belongs(reader, wanted)} AND ({is_present(reader)} AND {original_shown('i', reader)})"


# --- Followed hashtags: for statements with the CTE `tags` -------------------------------------------------
def followed_tags_of_post(item: str) -> str:
    """SQL for the followed hashtags of a public post, in order, else NULL.

    IS TRUE makes PostgreSQL look them up in a hash.
    """
    return f"""(
        SELECT array_agg(t.tag ORDER BY t.tag) FROM items_itemtag t
        WHERE t.item_id = {item} AND t.is_public_post AND (t.tag IN (SELECT name FROM tags)) IS TRUE)
    """


def welcome(sender: str, is_active: str) -> str:
    """SQL condition: the reader is shown this sender's posts that only a hashtag brings."""
    return f"({is_active} AND {is_wanted_at_home(READER, sender)})"


WELCOME_AMONG = "(s.is_active AND i.sender_id = ANY (ARRAY(SELECT wanted.id FROM wanted)))"
"""SQL condition like `welcome`, for statements with the CTE `wanted`."""


def is_active(user: str) -> str:
    """SQL condition: the user is active. OFFSET 0 forces an index probe."""
    return f"EXISTS (SELECT FROM accounts_user u WHERE u.id = {user} AND u.is_active OFFSET 0)"


# --- Streams: the items of one sender for one circle -----------------------------------------------------
def stream_belongs(wanted: Wanted) -> str:
    """SQL condition: the items of a `stream` belong to the reader."""
    return f"(stream.id = {READER} OR {wanted(READER, 'stream.id')})"


def stream_is_present(wanted: Wanted) -> str:
    """SQL condition: the items of a `stream` belong to the reader and are present now."""
    conditions = _presence_of_sender("stream.id", is_active("stream.id"), "(stream.circle = 'mutuals')", READER)
    return f"{stream_belongs(wanted)} AND (stream.id = {READER} OR {_join_conditions(conditions)})"
