"""The pull: reads a reader's home from PostgreSQL, for entries that no window holds.

One index probe for each followee finds their newest entry. Then only followees whose newest may be on the page are read
further. A plain join takes 25 ms at 1000 followees and a million posts, because PostgreSQL changes its plan.

An **entry** is a published post or repost that the rules of home hold (timeline/rules.py), or a public post with a
followed hashtag. It is **shown** unless its original is hidden, or it is by hashtag from a blocked or muted sender.

See docs/decisions.md: Windows keep what may come back without an event.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from accounts.levels.policy import EPOCH, INBOX_FROM, PUSH_GENERATION
from items.hydrate import COLUMNS, ORIGINALS, WIDTH, ItemRow, id_of
from items.visibility import for_followers, for_mutuals, for_sender, in_timelines
from storage.connections import fetch
from storage.window import INFINITY, WindowEntry
from timeline.rules import HELD, is_active, original_shown, stream_belongs, stream_is_present, welcome
from timeline.senders import HOME, Feed, Scope, statement

# --- Streams ---------------------------------------------------------------------------------------------
# A stream is the items of one sender for one circle: an ordered index scan.
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
"""The condition on `senders` for each stream. Only the stream `followers` has reposts, because reposts are for all
followers.
"""


def _scan(circle: str, sender: str, condition: str, count: str, order: str = "DESC") -> str:
    """SQL for the first `count` items of a stream.

    The index of `posts` has no `repost_of_id`, and reading it makes the plan worse.
    """
    repost_of = "NULL::bigint AS repost_of_id" if circle == "posts" else "i.repost_of_id"
    return f"""
    SELECT i.id, i.sender_id, {repost_of} FROM items_item i
    WHERE i.sender_id = {sender} AND {in_timelines("i")} AND {STREAMS[circle]}
        AND {condition}
    ORDER BY i.id {order} LIMIT {count}
    """


def _heads(condition: str, order: str = "DESC") -> str:
    return " UNION ALL ".join(
        f"""
        SELECT senders.id, '{circle}' AS circle, head.id AS head, head.repost_of_id
        FROM senders CROSS JOIN LATERAL ({_scan(circle, "senders.id", condition, "1", order)}) head
        {READ_FOR[circle]}
        """
        for circle in STREAMS
    )


def _first_entries(heads: str, held: str, condition: str, count: str, order: str = "DESC") -> str:
    """SQL for the first `count` entries, from the streams whose heads are the first `count` present ones.

    Other streams cannot have any of them.
    """
    last, beyond, end = ("min", ">=", 0) if order == "DESC" else ("max", "<=", INFINITY)
    within = f"{condition} AND i.id {beyond} reach.id"
    scans = " UNION ALL ".join(
        f"""
        SELECT item.* FROM stream CROSS JOIN reach
            CROSS JOIN LATERAL ({_scan(circle, "stream.id", within, count, order)}) item
        WHERE stream.circle = '{circle}'
        """
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
    """


# --- Hashtags --------------------------------------------------------------------------------------------
def _tag_scan(tag: str, condition: str, count: str, order: str) -> str:
    """SQL for the first `count` public posts with a hashtag, by an index-only scan."""
    return f"""
    SELECT i.id FROM (SELECT item_id AS id, tag FROM items_itemtag WHERE is_public_post) i
    WHERE i.tag = {tag} AND {condition} ORDER BY i.id {order} LIMIT {count}
    """


def _tagged_entries(condition: str, count: str, order: str) -> str:
    """SQL for the first `count` public posts with a followed hashtag, each with its first hashtag by alphabet.

    A few posts of each hashtag show how far to read.
    """
    last, beyond, end = ("min", ">=", 0) if order == "DESC" else ("max", "<=", INFINITY)
    few = f"least({count}, 1 + 2 * {count} / (SELECT greatest(count(*), 1) FROM tags))"
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
    """


def any_tagged_below() -> str:
    """SQL condition: a public post with one of `tags` is below the parameter `below`."""
    head = _tag_scan("tags.name", BELOW, "1", "DESC")
    return f"EXISTS (SELECT FROM tags CROSS JOIN LATERAL ({head}) head)"


# --- Entries ---------------------------------------------------------------------------------------------
def _entries(feed: Feed, heads: str, held: str, condition: str, count: str, order: str = "DESC") -> str:
    """SQL for the first `count` entries. `tag` is set for entries by hashtags alone.

    IS NOT TRUE makes PostgreSQL look ids up in a hash.
    """
    reached = _first_entries(heads, held, condition, count, order)
    if not feed.tags:
        return reached
    return f"""
    WITH said AS MATERIALIZED ({reached}), tagged AS MATERIALIZED ({_tagged_entries(condition, count, order)})
    SELECT * FROM (
        SELECT said.id, said.sender_id, said.repost_of_id, NULL AS tag FROM said
        UNION ALL
        SELECT tagged.id, i.sender_id, NULL, tagged.tag FROM tagged JOIN items_item i ON i.id = tagged.id
        WHERE (tagged.id IN (SELECT said.id FROM said)) IS NOT TRUE
    ) entry ORDER BY id {order} LIMIT {count}
    """


def _shown(feed: Feed, entry: str, item: str, is_sender_active: str) -> str:
    """SQL condition: an entry's original is shown or, for an entry by hashtags alone, its sender is welcome."""
    shown = original_shown(item)
    if not feed.tags:
        return shown
    return f"CASE WHEN {entry}.tag IS NULL THEN {shown} ELSE {welcome(f'{item}.sender_id', is_sender_active)} END"


def _pulled_ctes(feed: Feed, held: str, condition: str) -> str:
    return f"""
    {feed.tags_cte()}senders AS MATERIALIZED ({feed.senders}),
    heads AS MATERIALIZED ({_heads(condition)}),
    pulled AS MATERIALIZED ({_entries(feed, "heads", held, condition, "%(count)s")})
    """


# --- Statements ------------------------------------------------------------------------------------------
BELOW = "i.id < %(below)s"
# Windows also hold entries that are hidden now, because no event tells when that changes.
PULL_WINDOW = f"""
    WITH {_pulled_ctes(HOME, stream_belongs(HOME.wanted), BELOW)}
    SELECT {EPOCH}, {PUSH_GENERATION}, pulled.id, pulled.sender_id
    FROM accounts_user u LEFT JOIN pulled ON true WHERE u.id = %(reader)s ORDER BY pulled.id DESC
"""


def _pull_bodies(feed: Feed, stream: str, item: str) -> str:
    """SQL that pulls entries below an id, the first ones with bodies. `item`: a column that says if an entry is
    present.
    """
    shown, tag = _shown(feed, "placed", "i", "s.is_active"), ", placed.tag" if feed.tags else ""
    return f"""
    WITH {_pulled_ctes(feed, stream, BELOW)},
    placed AS (SELECT pulled.*, row_number() OVER (ORDER BY pulled.id DESC) AS place FROM pulled)
    SELECT placed.id, placed.sender_id, {item}, {shown}, {COLUMNS}, {INBOX_FROM}{tag}
    FROM placed LEFT JOIN items_item i ON i.id = placed.id AND placed.place <= %(bodies)s
        LEFT JOIN accounts_user s ON s.id = i.sender_id {ORIGINALS}
    ORDER BY placed.place
    """


PULL_BODIES = statement(lambda feed: _pull_bodies(feed, stream_is_present(feed.wanted), "true"))
PULL_WINDOW_BODIES = _pull_bodies(HOME, stream_belongs(HOME.wanted), HELD)


def _pull_below(feed: Feed) -> str:
    shown = _shown(feed, "pulled", "pulled", is_active("pulled.sender_id"))
    return f"""
    WITH {_pulled_ctes(feed, stream_is_present(feed.wanted), BELOW)}
    SELECT pulled.id, pulled.repost_of_id, {shown} FROM pulled ORDER BY pulled.id DESC
    """


PULL_BELOW = statement(_pull_below)
ABOVE = "i.id > %(since)s"


def _pull_above(feed: Feed) -> str:
    """SQL that says whether there are enough posts above an id, without reading every sender. Else it pulls the newest
    entries.
    """
    shown = _shown(feed, "pulled", "pulled", is_active("pulled.sender_id"))
    tags = feed.tags_cte("AND NOT (SELECT are_enough FROM posts)")
    return f"""
    WITH senders AS MATERIALIZED ({feed.senders}),
    posts AS MATERIALIZED (
        SELECT count(*) >= %(enough)s AS are_enough FROM (
            SELECT FROM (
                SELECT entry.repost_of_id
                FROM (SELECT id, 'followers' AS circle FROM senders) stream
                CROSS JOIN LATERAL ({_scan("followers", "stream.id", ABOVE, "%(count)s")}) entry
                WHERE {stream_is_present(feed.wanted)} LIMIT %(count)s
            ) entry WHERE repost_of_id IS NULL LIMIT %(enough)s
        ) post
    ),
    {tags}heads AS MATERIALIZED (SELECT * FROM ({_heads(ABOVE)}) head WHERE NOT (SELECT are_enough FROM posts)),
    pulled AS MATERIALIZED ({_entries(feed, "heads", stream_is_present(feed.wanted), ABOVE, "%(count)s")})
    SELECT posts.are_enough, pulled.id, pulled.repost_of_id, {shown}
    FROM posts LEFT JOIN pulled ON true ORDER BY pulled.id DESC
    """


PULL_ABOVE = statement(_pull_above)


HIDDEN_POST = 0
"""In place of the id of what is reposted: the entry is hidden. Its sender is unwelcome, and only a hashtag found it."""


def _around_query(feed: Feed) -> str:
    """SQL for the entries around an id, and what each reposts: an id, NULL for a post, or `HIDDEN_POST`.

    Whether a sender is welcome is asked only for posts that another entry reposts.
    """
    held, from_it, below_it = stream_is_present(feed.wanted), "i.id >= %(last_id)s", "i.id < %(last_id)s"
    reposts = "around.repost_of_id"
    if feed.tags:
        is_reposted = "(around.id IN (SELECT repost_of_id FROM around)) IS TRUE"
        is_welcome = welcome("around.sender_id", is_active("around.sender_id"))
        reposts = f"""
        CASE WHEN around.tag IS NOT NULL AND {is_reposted} AND NOT {is_welcome} THEN {HIDDEN_POST} ELSE {reposts} END
        """
    return f"""
    WITH {feed.tags_cte()}senders AS MATERIALIZED ({feed.senders}),
    heads AS MATERIALIZED ({_heads(below_it)}),
    feet AS MATERIALIZED (
        SELECT * FROM ({_heads(from_it, "ASC")}) foot WHERE %(last_id)s < {INFINITY}
    ),
    around AS MATERIALIZED (
        SELECT * FROM ({_entries(feed, "feet", held, from_it, "%(above)s", "ASC")}) above
        UNION ALL
        SELECT * FROM ({_entries(feed, "heads", held, below_it, "%(below)s")}) below
    )
    SELECT around.id, {reposts} AS repost_of_id FROM around ORDER BY around.id DESC
    """


AROUND = statement(_around_query)
"""The entries around an id."""


def any_below(feed: Feed, head: str = "true") -> str:
    """SQL condition: an entry is below the parameter `below`. `head`: a condition on the stream's newest item there."""
    return f"""
    EXISTS (
        WITH senders AS ({feed.senders})
        SELECT FROM ({_heads(BELOW)}) stream WHERE {head} AND {stream_is_present(feed.wanted)})
    """


class WindowRow(NamedTuple):
    """A row of `PULL_WINDOW`."""

    epoch: int | None
    pushes: int
    item_id: int | None
    """None, like the sender, in the only row if there are no entries."""
    sender_id: int


class AboveRow(NamedTuple):
    """A row of `PULL_ABOVE`."""

    are_enough: bool
    item_id: int | None
    """None in the only row if nothing was pulled."""
    repost_of: int | None
    is_shown: bool


class PulledItem(NamedTuple):
    """A row of `PULL_BODIES`."""

    item_id: int
    sender_id: int
    is_held: bool
    shown: ItemRow | None
    """The item, if it was read and the reader may see it."""
    inbox_from: int
    """The policy's value."""
    tag: str = ""
    """The hashtag that alone makes it an entry."""

    @classmethod
    def of(cls, row: Sequence[Any]) -> "PulledItem":
        item_id, sender_id, is_held, is_shown = row[:4]
        columns, (inbox_from, *tag) = row[4 : 4 + WIDTH], row[4 + WIDTH :]
        shown = ItemRow.of(columns) if is_held and is_shown and id_of(columns) is not None else None
        return cls(item_id, sender_id, is_held, shown, inbox_from, *filter(None, tag))


class HomeCandidate(NamedTuple):
    """An entry of a home, and whether it is shown."""

    item_id: int
    repost_of: int | None
    is_shown: bool

    @property
    def entry(self) -> tuple[int, int | None]:
        """The entry as a row of `AROUND`."""
        return self.item_id, self.repost_of or (None if self.is_shown else HIDDEN_POST)


def pull_entries(reader_id: int, count: int) -> tuple[tuple[int | None, int], list[WindowEntry], int]:
    """The newest `count` entries for a window, as ((EPOCH, PUSH_GENERATION) of accounts.levels.policy, entries,
    floor).
    """
    params = {"reader": reader_id, "below": INFINITY, "count": count + 1}
    rows = fetch(PULL_WINDOW, params, into=WindowRow._make)
    entries = [WindowEntry(row.item_id, row.sender_id) for row in rows if row.item_id is not None]
    floor = entries[count].item_id if len(entries) > count else 0
    return (rows[0].epoch, rows[0].pushes), entries[:count], floor


def pull_bodies(scope: Scope, *, below: int, count: int, bodies: int, for_window: bool = False) -> list[PulledItem]:
    """The newest `count` entries below an id, the first `bodies` of them with bodies.

    `for_window`: all entries that belong into the reader's windows, also hidden ones.
    """
    params = {"below": below, "count": count, "bodies": bodies}
    if for_window:
        return fetch(PULL_WINDOW_BODIES, params | {"reader": scope.reader_id}, into=PulledItem.of)
    return PULL_BODIES.rows(params, scope, PulledItem.of)


def pull_below(scope: Scope, *, below: int, count: int) -> list[HomeCandidate]:
    """The newest `count` entries below an id, newest first."""
    return PULL_BELOW.rows({"below": below, "count": count}, scope, HomeCandidate._make)


def pull_above(scope: Scope, *, since: int, count: int, enough: int) -> list[HomeCandidate] | None:
    """The newest `count` entries above an id. None, at less cost, if there are at least `enough` posts."""
    rows: list[AboveRow] = PULL_ABOVE.rows({"since": since, "count": count, "enough": enough}, scope, AboveRow._make)
    if rows[0].are_enough:
        return None
    return [HomeCandidate(row.item_id, row.repost_of, row.is_shown) for row in rows if row.item_id is not None]


def entries_around(scope: Scope, *, last_id: int, above: int, below: int) -> list[tuple[int, int | None]]:
    """The `above` entries from `last_id` up and the `below` entries under it, each with what it reposts (`AROUND`)."""
    params = {"last_id": last_id, "above": above, "below": below}
    return [(item_id, repost_of) for item_id, repost_of in AROUND.rows(params, scope)]
