"""The one rule of who may see an item, as SQL text for every query that shows items.

Queries that fill windows, list or count use parts that an index supports. The whole rule, or `timeline/rules.py` for
home, decides. `reader` is an SQL expression of an id, 0 for strangers.

See docs/decisions.md: Who may see what is SQL text in one place.
"""

from collections.abc import Iterable

from relations.rules import READER, blocks, follows, is_one_reader, mutes, unblocked

HIGHEST = 40
"""Items above a reply that are checked for a hidden one."""


# --- The circles of readers ------------------------------------------------------------------------------
def in_circle(item: str, circle: str) -> str:
    """Whether an item has this visibility. `circle` is SQL: one visibility, or ANY of some."""
    return f"{item}.visibility = {circle}"


def for_all(item: str) -> str:
    """Whether an item is public."""
    return in_circle(item, "'public'")


def for_followers(item: str) -> str:
    """Whether all followers may see an item, as the timeline indexes have it."""
    return f"{item}.visibility IN ('public', 'followers')"


def for_mutuals(item: str) -> str:
    """Whether an item is for mutuals."""
    return in_circle(item, "'mutuals'")


def for_sender(item: str) -> str:
    """Whether an item is for its sender alone."""
    return in_circle(item, "'self'")


def for_others(item: str) -> str:
    """Whether an item is not for its sender alone."""
    return f"{item}.visibility <> 'self'"


def is_listed(item: str) -> str:
    """Whether timelines, profiles and search may have an item: it is no private mention."""
    return f"{item}.visibility <> 'mentioned'"


def for_mentioned(item: str) -> str:
    """Whether an item is a private mention."""
    return in_circle(item, "'mentioned'")


# --- The kinds of items ----------------------------------------------------------------------------------
def is_published(item: str) -> str:
    """Whether an item is published."""
    return f"{item}.status = 'published'"


def is_not_reply(item: str) -> str:
    """Whether an item is a post or a repost."""
    return f"{item}.reply_to_id IS NULL"


def in_timelines(item: str) -> str:
    """Whether timelines and outboxes may hold an item, as their indexes have it."""
    return f"{is_published(item)} AND {is_not_reply(item)}"


# --- The rule --------------------------------------------------------------------------------------------
def visible_alone(item: str, sender: str, reader: str = READER) -> str:
    """Whether the reader may see an item, ignoring its thread and private mentions.

    The conditions on followers and mutuals share one probe of the follow: change them together with the circles above.
    """
    return f"""
    (({item}.sender_id = {reader} AND {item}.status <> 'deleted') OR (
        {is_published(item)} AND {sender}.is_active
        AND ({for_all(item)} OR ({item}.visibility IN ('followers', 'mutuals')
            AND {follows(reader, f"{item}.sender_id", is_probe=not is_one_reader(reader))}
            AND ({item}.visibility = 'followers' OR {follows(f"{item}.sender_id", reader)})))
        AND {unblocked(reader, f"{item}.sender_id")}))
    """


def post_visible(item: str, sender: str, reader: str = READER) -> str:
    """Whether the reader may see an item that is neither repost nor private mention. Others need the root of its
    thread.
    """
    return f"""
    ({visible_alone(item, sender, reader)} AND ({item}.root_id IS NULL OR {item}.sender_id = {reader} OR EXISTS (
        SELECT FROM items_item root JOIN accounts_user rs ON rs.id = root.sender_id
        WHERE root.id = {item}.root_id AND {visible_alone("root", "rs", reader)} OFFSET 0)))
    """


def private_mention_visible(item: str, sender: str, reader: str = READER) -> str:
    """Whether an item is a private mention to the reader. OFFSET 0: one probe, not a hash of all participants."""
    return f"""
    ({for_mentioned(item)} AND {is_published(item)} AND {sender}.is_active
        AND EXISTS (SELECT FROM items_participant p
            WHERE p.conversation_id = coalesce({item}.conversation_id, {item}.id) AND p.user_id = {reader} OFFSET 0)
        AND {unblocked(reader, f"{item}.sender_id")})
    """


def original_visible(item: str, reader: str = READER, also: str = "") -> str:
    """Whether `item` is no repost, or its original is visible. `also`: conditions on `o` and `os`."""
    return f"""
    ({item}.repost_of_id IS NULL OR EXISTS (
        SELECT FROM items_item o JOIN accounts_user os ON os.id = o.sender_id
        WHERE o.id = {item}.repost_of_id AND {is_published("o")} AND {post_visible("o", "os", reader)} {also}
        OFFSET 0))
    """


def quoted_visible(item: str, quoted: str, sender: str, reader: str = READER) -> str:
    """Whether the reader may see the quoted item."""
    return f"""
    (NOT {item}.is_quote_revoked AND {is_published(quoted)} AND {post_visible(quoted, sender, reader)}
        AND NOT {mutes(reader, f"{quoted}.sender_id")} AND NOT {blocks(f"{quoted}.sender_id", f"{item}.sender_id")})
    """


def may_reply(root: str, reader: str = READER) -> str:
    """Whether a reader who sees a thread may reply in it. `root` is its first item, whose sender decides.

    Ignores private mentions: who is in a conversation may reply in it. CASE: the follow is asked only if it decides.
    """
    return f"""
    (CASE WHEN {root}.repliable_by = 'everyone' OR {root}.sender_id = {reader} THEN {reader} <> 0
        WHEN {root}.repliable_by = 'followers' THEN {follows(reader, f"{root}.sender_id")}
        ELSE {root}.repliable_by = 'mentioned' AND coalesce({reader} = ANY({root}.repliers), false) END)
    """


def is_hidden_reply(item: str, reader: str = READER) -> str:
    """Whether the sender of a thread hid this reply. Its own sender sees it where it was."""
    return f"""
    ({item}.sender_id <> {reader} AND EXISTS (SELECT FROM items_hiddenreply h WHERE h.reply_id = {item}.id OFFSET 0))
    """


def is_below_hidden_reply(item: str) -> str:
    """Whether a reply above this one is a hidden one. Only threads with hidden replies are walked, up to `HIGHEST`."""
    return f"""
    (EXISTS (SELECT FROM items_hiddenreply h WHERE h.root_id = {item}.root_id OFFSET 0) AND EXISTS (
        WITH RECURSIVE up AS (
            SELECT a.id, a.sender_id, a.reply_to_id, 1 AS distance FROM items_item a WHERE a.id = {item}.reply_to_id
            UNION ALL
            SELECT a.id, a.sender_id, a.reply_to_id, up.distance + 1 FROM up JOIN items_item a ON a.id = up.reply_to_id
            WHERE up.distance < {HIGHEST}
        ) SELECT FROM up WHERE {is_hidden_reply("up")}))
    """


def is_public(item: str) -> str:
    """Whether an item is published and public, whatever its sender and root."""
    return f"{is_published(item)} AND {for_all(item)}"


def public_post(item: str) -> str:
    """Whether an item is a public post: the condition of the index item_public."""
    return f"{is_public(item)} AND {is_not_reply(item)} AND {item}.repost_of_id IS NULL"


def visible_circles(sender: str, circles: Iterable[str]) -> str:
    """A query of those `circles`, as `visibility`, that the reader may see of a sender: the rule once per sender."""
    return f"""
    SELECT i.visibility FROM (
        SELECT {sender}::bigint AS sender_id, 'published' AS status,
            unnest(ARRAY[{", ".join(map(repr, circles))}]) AS visibility
    ) i JOIN accounts_user s ON s.id = i.sender_id WHERE {visible_alone("i", "s")}
    """


def visible(item: str, sender: str, reader: str = READER) -> str:
    """Whether the reader may see an item. A repost needs its original."""
    said = f"({post_visible(item, sender, reader)} AND {original_visible(item, reader)})"
    return f"({said} OR {private_mention_visible(item, sender, reader)})"


VISIBLE = visible("i", "s")
"""Whether the reader may see an item `i` of a sender `s`."""
