"""The one rule of who may see an item, as SQL text for every query that shows items.

Queries that fill windows or lists, or count, ask a part of it that an index has, by the names of the parts below; the
whole rule, or for the entries of home `timeline/rules.py`, decides what is shown.

`reader` is an expression of the reader's id: the parameter `reader`, or a column of a statement about many readers. For
readers who are not signed in it is 0, an id that no user follows or blocks.

See docs/decisions.md: Who may see what is SQL text in one place.
"""

from collections.abc import Iterable

from relations.rules import READER, blocks, follows, is_one_reader, mutes, unblocked


# --- The circles of readers ------------------------------------------------------------------------------
def in_circle(item: str, circle: str) -> str:
    """Whether an item is for one circle: an expression of a visibility, or ANY of several."""
    return f"{item}.visibility = {circle}"


def for_all(item: str) -> str:
    """Whether an item is for all readers."""
    return in_circle(item, "'public'")


def for_followers(item: str) -> str:
    """Whether an item is for all followers of its sender, by the condition of the indexes of their stream."""
    return f"{item}.visibility IN ('public', 'followers')"


def for_mutuals(item: str) -> str:
    """Whether an item is for those alone whom its sender follows back."""
    return in_circle(item, "'mutuals'")


def for_sender(item: str) -> str:
    """Whether an item is for its sender alone."""
    return in_circle(item, "'self'")


def for_others(item: str) -> str:
    """Whether an item is for others than its sender."""
    return f"{item}.visibility <> 'self'"


def is_listed(item: str) -> str:
    """Whether an item may stand in lists of items: timelines, profiles, search. A private mention stands in none."""
    return f"{item}.visibility <> 'mentioned'"


def for_mentioned(item: str) -> str:
    """Whether an item is a private mention."""
    return in_circle(item, "'mentioned'")


# --- The kinds of items ----------------------------------------------------------------------------------
def is_published(item: str) -> str:
    """Whether an item is published."""
    return f"{item}.status = 'published'"


def is_no_reply(item: str) -> str:
    """Whether an item is a post or a repost: replies are listed under what they answer."""
    return f"{item}.reply_to_id IS NULL"


def in_timelines(item: str) -> str:
    """Whether an item is of a kind that timelines and outboxes hold, by the condition of the indexes of a stream."""
    return f"{is_published(item)} AND {is_no_reply(item)}"


# --- The rule --------------------------------------------------------------------------------------------
def visible_alone(item: str, sender: str, reader: str = READER) -> str:
    """Whether the reader may see an item, unless it is a private mention of another, for its own sake; the aliases name
    its row and its sender's.

    Published, sender active, no block either way, visibility met. A sender sees their own in every status but deleted.
    """
    return f"""
    (({item}.sender_id = {reader} AND {item}.status <> 'deleted') OR (
        {item}.status = 'published' AND {sender}.is_active
        AND ({for_all(item)} OR ({item}.visibility IN ('followers', 'mutuals')
            AND {follows(reader, f"{item}.sender_id", is_probe=not is_one_reader(reader))}
            AND ({item}.visibility = 'followers' OR {follows(f"{item}.sender_id", reader)})))
        AND {unblocked(reader, f"{item}.sender_id")}))
    """


def said_visible(item: str, sender: str, reader: str = READER) -> str:
    """Whether the reader may see what an item says itself: the whole rule of an item that is neither repost nor private
    mention.

    A reply is not shown to readers who may not see what its thread is about; its own sender keeps seeing it.
    """
    return f"""
    ({visible_alone(item, sender, reader)} AND ({item}.root_id IS NULL OR {item}.sender_id = {reader} OR EXISTS (
        SELECT FROM items_item root JOIN accounts_user rs ON rs.id = root.sender_id
        WHERE root.id = {item}.root_id AND {visible_alone("root", "rs", reader)} OFFSET 0)))
    """


def told_visible(item: str, sender: str, reader: str = READER) -> str:
    """Whether an item is a private mention whose conversation the reader is in. OFFSET 0: a probe, not a hash of all
    who are in any.

    What its thread is about does not matter: what others said stays when the first message goes.
    """
    return f"""
    ({for_mentioned(item)} AND {is_published(item)} AND {sender}.is_active
        AND EXISTS (SELECT FROM items_participant p
            WHERE p.conversation_id = coalesce({item}.conversation_id, {item}.id) AND p.user_id = {reader} OFFSET 0)
        AND {unblocked(reader, f"{item}.sender_id")})
    """


def original_visible(item: str, reader: str = READER, also: str = "") -> str:
    """Whether `item` is no repost, or the reader may see what it reposts, by the rule of what it reposts. `also`: more
    that must hold of the original (aliases `o`, and its sender `os`).

    See docs/decisions.md: Windows keep what may come back without an event.
    """
    return f"""
    ({item}.repost_of_id IS NULL OR EXISTS (
        SELECT FROM items_item o JOIN accounts_user os ON os.id = o.sender_id
        WHERE o.id = {item}.repost_of_id AND o.status = 'published' AND {said_visible("o", "os", reader)} {also}
        OFFSET 0))
    """


def quoted_visible(item: str, quoted: str, sender: str, reader: str = READER) -> str:
    """Whether the reader may see, inside the item, what it quotes: the rule of a repost's original in home, and the
    quote stands. It does not where the quoted item's sender took it off, or blocks whom quotes it.
    """
    return f"""
    (NOT {item}.is_quote_revoked AND {quoted}.status = 'published' AND {said_visible(quoted, sender, reader)}
        AND NOT {mutes(reader, f"{quoted}.sender_id")} AND NOT {blocks(f"{quoted}.sender_id", f"{item}.sender_id")})
    """


def public(item: str) -> str:
    """Whether an item is one that all may see, but for its sender, and for what it reposts or answers."""
    return f"{item}.status = 'published' AND {for_all(item)}"


def public_post(item: str) -> str:
    """Whether an item is a post that all may see, but for its sender: the condition of the index item_public."""
    return f"{public(item)} AND {item}.reply_to_id IS NULL AND {item}.repost_of_id IS NULL"


def circles_of(sender: str, circles: Iterable[str]) -> str:
    """A query of those of the circles, as `visibility`, whose published items of one sender the reader sees for their
    own sake: the rule asked once for a sender, and not of each item.
    """
    return f"""
    SELECT i.visibility FROM (
        SELECT {sender}::bigint AS sender_id, 'published' AS status,
            unnest(ARRAY[{", ".join(map(repr, circles))}]) AS visibility
    ) i JOIN accounts_user s ON s.id = i.sender_id WHERE {visible_alone("i", "s")}
    """  # noqa: S608 (constants)


def visible(item: str, sender: str, reader: str = READER) -> str:
    """Whether the reader may see an item wherever they meet it. A repost is nothing without its original, and shows no
    private mention.
    """
    said = f"({said_visible(item, sender, reader)} AND {original_visible(item, reader)})"
    return f"({said} OR {told_visible(item, sender, reader)})"


VISIBLE = visible("i", "s")
"""For an item `i` and its sender `s`."""
