"""The pull: a reader's home timeline straight from PostgreSQL, for entries that no window holds.

Bounded work: one index probe a followee finds the newest entry of each; only followees whose newest can be among the
wanted are read further (at most as many as items are wanted). At 1000 followees over a million posts the plain join
takes 25 ms, because its plan flips; this takes what 1000 probes take.

An **entry** of a reader's home is a published post or repost of a sender whom the home holds: the reader, or an active
followee with no block or mute between them (without the reposts of a followee whose reposts the reader leaves out), as
far as the item's own visibility lets the reader see it (`timeline/rules.py`). An index keeps each visibility apart, so
entries that the reader may not see are never passed one by one. An entry is **shown** unless it is a repost whose
original the reader may not see: that is asked of each, of a bounded number of entries.

A reader who follows hashtags has public posts with these as entries, too. They are found as those of senders are: a few
of each hashtag, then more of the hashtags that can be among the wanted. What senders say whom the reader blocks or
mutes is hidden, and takes its place among the entries.

See docs/decisions.md: Windows keep what may come back without an event.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from accounts.levels.policy import EPOCH, INBOX_FROM, PUSH_GENERATION
from items.hydrate import COLUMNS, ORIGINALS, WIDTH, ItemRow, id_of
from items.visibility import for_followers, for_mutuals, for_sender, in_timelines
from storage.connections import fetch
from storage.window import INFINITY, Entry
from timeline.rules import HELD, is_active, original_shown, stream_belongs, stream_held, welcome
from timeline.senders import HOME, Feed, Scope, statement

# --- Streams ---------------------------------------------------------------------------------------------
# The items of one sender for one circle: an ordered index scan, so that readers outside of the circle pass none of it.
STREAMS = {
    "followers": for_followers("i"),
    "posts": f"{for_followers('i')} AND i.repost_of_id IS NULL",
    "mutuals": for_mutuals("i"),
    "self": for_sender("i"),
}
READ_FOR = {
    "followers": "WHERE NOT senders.posts_only",
    "posts": "WHERE senders.posts_only",
    "mutuals": "",
    "self": "WHERE senders.id = %(reader)s",
}
"""The condition on the `senders` of whom a stream is read. Reposts are for all followers, so no other stream has any.
"""


def _scan(circle: str, sender: str, condition: str, count: str, order: str = "DESC") -> str:
    """The first `count` items of one stream that meet a condition on their ids. Of posts alone the index does not hold
    what they repost; a column of another index would lead the planner past the reposts.
    """
    repost_of = "NULL::bigint AS repost_of_id" if circle == "posts" else "i.repost_of_id"
    return f"""
    SELECT i.id, i.sender_id, {repost_of} FROM items_item i
    WHERE i.sender_id = {sender} AND {in_timelines("i")} AND {STREAMS[circle]}
        AND {condition}
    ORDER BY i.id {order} LIMIT {count}
    """  # noqa: S608 (constants)


def _heads(condition: str, order: str = "DESC") -> str:
    """The first item of every stream of the CTE `senders` that has one, as (id, circle, head, repost_of_id)."""
    return " UNION ALL ".join(
        f"""
        SELECT senders.id, '{circle}' AS circle, head.id AS head, head.repost_of_id
        FROM senders CROSS JOIN LATERAL ({_scan(circle, "senders.id", condition, "1", order)}) head
        {READ_FOR[circle]}
        """  # noqa: S608 (constants)
        for circle in STREAMS
    )


def _reached(heads: str, held: str, condition: str, count: str, order: str = "DESC") -> str:
    """The first `count` entries of all streams, of which the CTE `heads` has the heads.

    Only the first `count` heads that are held can be among them: of so many streams and no more it is asked whether
    they are, and they are read further, as far as the last of these heads.
    """
    last, beyond, end = ("min", ">=", 0) if order == "DESC" else ("max", "<=", INFINITY)
    within = f"{condition} AND i.id {beyond} reach.id"
    scans = " UNION ALL ".join(
        f"""
        SELECT item.* FROM stream CROSS JOIN reach
            CROSS JOIN LATERAL ({_scan(circle, "stream.id", within, count, order)}) item
        WHERE stream.circle = '{circle}'
        """  # noqa: S608 (constants)
        for circle in STREAMS
    )
    return f"""
    WITH stream AS MATERIALIZED (
        SELECT * FROM (SELECT * FROM {heads} ORDER BY head {order} OFFSET 0) stream WHERE {held} LIMIT {count}
    ),
    reach AS MATERIALIZED (
        SELECT CASE WHEN count(*) = {count} THEN {last}(head) ELSE {end} END AS id FROM stream
    )
    SELECT * FROM ({scans}) entry ORDER BY id {order} LIMIT {count}
    """  # noqa: S608 (constants)


# --- Hashtags --------------------------------------------------------------------------------------------
def _tag_scan(tag: str, condition: str, count: str, order: str) -> str:
    """The first `count` public posts with a hashtag that meet a condition on their ids: an index-only scan."""
    return f"""
    SELECT i.id FROM (SELECT item_id AS id, tag FROM items_itemtag WHERE is_public_post) i
    WHERE i.tag = {tag} AND {condition} ORDER BY i.id {order} LIMIT {count}
    """  # noqa: S608 (constants)


def _tagged(condition: str, count: str, order: str) -> str:
    """The first `count` public posts with a hashtag of the CTE `tags`, each with the first hashtag of these in order.

    Of each hashtag the first few are found, twice as many as wanted in all. Then it is known how far they reach, and
    only hashtags of which some are within are read further. Several may have the same post.
    """
    last, beyond, end = ("min", ">=", 0) if order == "DESC" else ("max", "<=", INFINITY)
    few = f"least({count}, 1 + 2 * {count} / (SELECT greatest(count(*), 1) FROM tags))"  # noqa: S608 (constants)
    within = f"{condition} AND i.id {beyond} reach.id"
    return f"""
    WITH first AS MATERIALIZED (
        SELECT tags.name, post.id FROM tags CROSS JOIN LATERAL ({_tag_scan("tags.name", condition, few, order)}) post
    ),
    reach AS MATERIALIZED (
        SELECT CASE WHEN count(*) = {count} THEN {last}(id) ELSE {end} END AS id
        FROM (SELECT DISTINCT id FROM first ORDER BY id {order} LIMIT {count}) found
    ),
    tag AS MATERIALIZED (SELECT DISTINCT first.name FROM first JOIN reach ON first.id {beyond} reach.id)
    SELECT post.id, min(tag.name) AS tag FROM reach CROSS JOIN tag
        CROSS JOIN LATERAL ({_tag_scan("tag.name", within, count, order)}) post
    GROUP BY post.id ORDER BY post.id {order} LIMIT {count}
    """  # noqa: S608 (constants)


def any_tagged_below() -> str:
    """Whether a public post with a hashtag of the CTE `tags` stands below the parameter `below`."""
    head = _tag_scan("tags.name", BELOW, "1", "DESC")
    return f"EXISTS (SELECT FROM tags CROSS JOIN LATERAL ({head}) head)"


# --- Entries ---------------------------------------------------------------------------------------------
def _entries(feed: Feed, heads: str, held: str, condition: str, count: str, order: str = "DESC") -> str:
    """The first `count` entries of a feed: of all streams, of which the CTE `heads` has the heads, and of hashtags.
    `tag` is that of an entry by hashtags alone. IS NOT TRUE: ids are looked up in a hash.
    """
    reached = _reached(heads, held, condition, count, order)
    if not feed.tags:
        return reached
    return f"""
    WITH said AS MATERIALIZED ({reached}), tagged AS MATERIALIZED ({_tagged(condition, count, order)})
    SELECT * FROM (
        SELECT said.id, said.sender_id, said.repost_of_id, NULL AS tag FROM said
        UNION ALL
        SELECT tagged.id, i.sender_id, NULL, tagged.tag FROM tagged JOIN items_item i ON i.id = tagged.id
        WHERE (tagged.id IN (SELECT said.id FROM said)) IS NOT TRUE
    ) entry ORDER BY id {order} LIMIT {count}
    """  # noqa: S608 (constants)


def _shown(feed: Feed, entry: str, item: str, is_sender_active: str) -> str:
    """Whether an entry is shown: by its original or, where it is one by hashtags alone, by its sender."""
    shown = original_shown(item)
    if not feed.tags:
        return shown
    return f"CASE WHEN {entry}.tag IS NULL THEN {shown} ELSE {welcome(f'{item}.sender_id', is_sender_active)} END"


def _pulled(feed: Feed, held: str, condition: str) -> str:
    """The newest `count` entries of a feed that meet a condition on their ids, as the CTE `pulled`."""
    return f"""
    {feed.with_tags()}senders AS MATERIALIZED ({feed.senders}),
    heads AS MATERIALIZED ({_heads(condition)}),
    pulled AS MATERIALIZED ({_entries(feed, "heads", held, condition, "%(count)s")})
    """


# --- Statements ------------------------------------------------------------------------------------------
BELOW = "i.id < %(below)s"
# No window is told when a sender is suspended or follows back, so windows hold what both would hide, and the reading
# decides.
PULL_WINDOW = f"""
    WITH {_pulled(HOME, stream_belongs(HOME.wanted), BELOW)}
    SELECT {EPOCH}, {PUSH_GENERATION}, pulled.id, pulled.sender_id
    FROM accounts_user u LEFT JOIN pulled ON true WHERE u.id = %(reader)s ORDER BY pulled.id DESC
"""  # noqa: S608


def _pull_bodies(feed: Feed, stream: str, item: str) -> str:
    """The entries of the streams that meet the condition `stream`, with the column `item`: whether an entry is held."""
    shown, tag = _shown(feed, "placed", "i", "s.is_active"), ", placed.tag" if feed.tags else ""
    return f"""
    WITH {_pulled(feed, stream, BELOW)},
    placed AS (SELECT pulled.*, row_number() OVER (ORDER BY pulled.id DESC) AS place FROM pulled)
    SELECT placed.id, placed.sender_id, {item}, {shown}, {COLUMNS}, {INBOX_FROM}{tag}
    FROM placed LEFT JOIN items_item i ON i.id = placed.id AND placed.place <= %(bodies)s
        LEFT JOIN accounts_user s ON s.id = i.sender_id {ORIGINALS}
    ORDER BY placed.place
    """  # noqa: S608


PULL_BODIES = statement(lambda feed: _pull_bodies(feed, stream_held(feed.wanted), "true"))
PULL_WINDOW_BODIES = _pull_bodies(HOME, stream_belongs(HOME.wanted), HELD)


def _pull_below(feed: Feed) -> str:
    shown = _shown(feed, "pulled", "pulled", is_active("pulled.sender_id"))
    return f"""
    WITH {_pulled(feed, stream_held(feed.wanted), BELOW)}
    SELECT pulled.id, pulled.repost_of_id, {shown} FROM pulled ORDER BY pulled.id DESC
    """  # noqa: S608 (constants)


PULL_BELOW = statement(_pull_below)
ABOVE = "i.id > %(since)s"


def _pull_above(feed: Feed) -> str:
    """Enough posts that all followers may see, found without reading every sender; else the newest entries.

    Reposts among the posts are passed, of a bounded number of entries.
    """
    shown = _shown(feed, "pulled", "pulled", is_active("pulled.sender_id"))
    tags = feed.with_tags("AND NOT (SELECT are_enough FROM posts)")
    return f"""
    WITH senders AS MATERIALIZED ({feed.senders}),
    posts AS MATERIALIZED (
        SELECT count(*) >= %(enough)s AS are_enough FROM (
            SELECT FROM (
                SELECT entry.repost_of_id
                FROM (SELECT id, 'followers' AS circle FROM senders) stream
                CROSS JOIN LATERAL ({_scan("followers", "stream.id", ABOVE, "%(count)s")}) entry
                WHERE {stream_held(feed.wanted)} LIMIT %(count)s
            ) entry WHERE repost_of_id IS NULL LIMIT %(enough)s
        ) post
    ),
    {tags}heads AS MATERIALIZED (SELECT * FROM ({_heads(ABOVE)}) head WHERE NOT (SELECT are_enough FROM posts)),
    pulled AS MATERIALIZED ({_entries(feed, "heads", stream_held(feed.wanted), ABOVE, "%(count)s")})
    SELECT posts.are_enough, pulled.id, pulled.repost_of_id, {shown}
    FROM posts LEFT JOIN pulled ON true ORDER BY pulled.id DESC
    """  # noqa: S608 (constants)


PULL_ABOVE = statement(_pull_above)


def _around(feed: Feed) -> str:
    held, from_it, below_it = stream_held(feed.wanted), "i.id >= %(last_id)s", "i.id < %(last_id)s"
    return f"""
    WITH {feed.with_tags()}senders AS MATERIALIZED ({feed.senders}),
    heads AS MATERIALIZED ({_heads(below_it)}),
    feet AS MATERIALIZED (
        SELECT * FROM ({_heads(from_it, "ASC")}) foot WHERE %(last_id)s < {INFINITY}
    )
    SELECT id, repost_of_id FROM ({_entries(feed, "feet", held, from_it, "%(above)s", "ASC")}) above
    UNION ALL
    SELECT id, repost_of_id FROM ({_entries(feed, "heads", held, below_it, "%(below)s")}) below
    ORDER BY id DESC
    """  # noqa: S608 (constants)


AROUND = statement(_around)
"""The items around a position."""


def any_below(feed: Feed, head: str = "true") -> str:
    """Whether an entry stands below the parameter `below`. `head`: a condition on the newest item of each stream."""
    return f"""
    EXISTS (
        WITH senders AS ({feed.senders})
        SELECT FROM ({_heads(BELOW)}) stream WHERE {head} AND {stream_held(feed.wanted)})
    """


class InWindow(NamedTuple):
    """A row of `PULL_WINDOW`: an entry, and what the window that takes it is built for."""

    epoch: int | None
    pushes: int
    item_id: int | None
    """None in the only row of a reader whose windows hold nothing, and so is its sender."""
    sender_id: int


class Above(NamedTuple):
    """A row of `PULL_ABOVE`: whether there are posts enough, else an entry."""

    are_enough: bool
    item_id: int | None
    """None in the only row where nothing was pulled."""
    repost_of: int | None
    is_shown: bool


class Pulled(NamedTuple):
    """A row of `PULL_BODIES`: an entry, with its body if it is among the first."""

    item_id: int
    sender_id: int
    is_held: bool
    is_shown: bool
    """Whether it is no repost, or its original is shown; of an entry by hashtags alone, whether its sender is."""
    item: ItemRow | None
    inbox_from: int
    """The policy's."""
    tag: str = ""
    """The hashtag by which alone it is an entry."""

    @classmethod
    def of(cls, row: Sequence[Any]) -> "Pulled":
        """The entry of a row of the pull's columns."""
        item_id, sender_id, is_held, is_shown = row[:4]
        columns, (inbox_from, *tag) = row[4 : 4 + WIDTH], row[4 + WIDTH :]
        item = None if id_of(columns) is None else ItemRow.of(columns)
        return cls(item_id, sender_id, is_held, is_shown, item, inbox_from, *filter(None, tag))

    @property
    def shown(self) -> ItemRow | None:
        """The item, if the reader is shown it."""
        return self.item if self.is_held and self.is_shown else None


class Candidate(NamedTuple):
    """An entry of a reader's home: what it reposts, if it is a repost, and whether it is shown (`Pulled.is_shown`)."""

    item_id: int
    repost_of: int | None
    is_shown: bool


def pull_entries(reader_id: int, count: int) -> tuple[tuple[int | None, int], list[Entry], int]:
    """The newest `count` entries that belong into a reader's window, as ((policy.EPOCH, policy.PUSH_GENERATION),
    entries, floor), in one snapshot.
    """
    params = {"reader": reader_id, "below": INFINITY, "count": count + 1}
    rows = fetch(PULL_WINDOW, params, into=InWindow._make)
    entries = [Entry(row.item_id, row.sender_id) for row in rows if row.item_id is not None]
    floor = entries[count].item_id if len(entries) > count else 0
    return (rows[0].epoch, rows[0].pushes), entries[:count], floor


def pull_bodies(scope: Scope, *, below: int, count: int, bodies: int, for_window: bool = False) -> list[Pulled]:
    """`count` entries below an id, newest first, the first `bodies` of them hydrated; `for_window` those that belong
    into the reader's windows. Of the others only the ids are meaningful.
    """
    params = {"below": below, "count": count, "bodies": bodies}
    if for_window:
        return fetch(PULL_WINDOW_BODIES, params | {"reader": scope.reader_id}, into=Pulled.of)
    return PULL_BODIES.rows(params, scope, Pulled.of)


def pull_below(scope: Scope, *, below: int, count: int) -> list[Candidate]:
    """`count` entries below an id, newest first."""
    return PULL_BELOW.rows({"below": below, "count": count}, scope, Candidate._make)


def pull_above(scope: Scope, *, since: int, count: int, enough: int) -> list[Candidate] | None:
    """The newest `count` entries above an id, newest first; None where at least `enough` posts stand there, which costs
    less to find out.
    """
    rows: list[Above] = PULL_ABOVE.rows({"since": since, "count": count, "enough": enough}, scope, Above._make)
    if rows[0].are_enough:
        return None
    return [Candidate(row.item_id, row.repost_of, row.is_shown) for row in rows if row.item_id is not None]


def around(scope: Scope, *, last_id: int, above: int, below: int) -> list[tuple[int, int | None]]:
    """The entries next to a position, newest first, and what they repost: `above` of them with ids from `last_id` up,
    `below` with smaller ones.
    """
    params = {"last_id": last_id, "above": above, "below": below}
    return [(item_id, repost_of) for item_id, repost_of in AROUND.rows(params, scope)]
