"""SQL that verifies candidates from Redis: whether a reader may see an item, and its body.

See docs/decisions.md: Windows keep what may come back without an event.
See docs/decisions.md: Experiments that were not worth it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from items.hydrate import COLUMNS, MET, ORIGINALS, SAID, WIDTH, ItemRow, Said
from items.hydrate import columns as columns_of
from items.visibility import is_published
from storage.connections import id_array
from timeline.pull import Candidate, any_below, any_tagged_below
from timeline.rules import HELD, belongs, belongs_among, carried, original_shown, welcome, welcome_among
from timeline.senders import Feed, Scope, Statement, statement

# Below an id: posts (2), only reposts and posts by hashtags, which may be hidden (1), none (0).
POSTS, MAYBE, NOTHING = 2, 1, 0
NOT_ASKED = "NULL"


def older(feed: Feed) -> str:
    """SQL that says which kind of items is below the parameter `below`: `POSTS`, `MAYBE` or `NOTHING`.

    Statements that do not ask use `NOT_ASKED`, which costs nothing.
    """
    post, entry = any_below(feed, "stream.repost_of_id IS NULL"), any_below(feed)
    if feed.tags:
        entry = f"{entry} OR {any_tagged_below()}"
    return f"CASE WHEN {post} THEN {POSTS} WHEN {entry} THEN {MAYBE} ELSE {NOTHING} END"


def _verified(feed: Feed, older: str) -> str:
    columns = f"{COLUMNS}, {belongs(wanted=feed.wanted)}, {HELD}, {original_shown('i')}, {is_published('i')}, {older}"
    return f"{columns}, {carried('i.id')}, {welcome('i.sender_id', 's.is_active')}" if feed.tags else columns


def verified_alone(feed: Feed, senders: str, older: str) -> str:
    """The SQL columns that `Verified.alone` parses. `senders`: an SQL array of all senders."""
    columns = f"{columns_of('i', 's')}, {belongs_among(senders)}, {HELD}, {is_published('i')}, {older}"
    return f"{columns}, {carried('i.id')}, {welcome_among(senders)}" if feed.tags else columns


def _verify_bodies(feed: Feed, older: str) -> str:
    return f"""{feed.with_tags_alone()}
    SELECT {_verified(feed, older)} FROM unnest(%(ids)s::bigint[]) AS candidate (id)
    JOIN items_item i ON i.id = candidate.id JOIN accounts_user s ON s.id = i.sender_id {ORIGINALS}
    """


VERIFY_BODIES = statement(lambda feed: _verify_bodies(feed, NOT_ASKED))
VERIFY_LAST_BODIES = statement(lambda feed: _verify_bodies(feed, older(feed)))


def _verify_ids(feed: Feed) -> str:
    is_entry, is_shown = f"{belongs(wanted=feed.wanted)} AND {HELD}", original_shown("i")
    sender = "JOIN accounts_user s ON s.id = i.sender_id"
    if feed.tags:
        # OFFSET 0: a probe, not a hash of all users.
        sender = "CROSS JOIN LATERAL (SELECT is_active FROM accounts_user WHERE id = i.sender_id OFFSET 0) s"
        is_shown = f"CASE WHEN {is_entry} THEN {is_shown} ELSE {welcome('i.sender_id', 's.is_active')} END"
        is_entry = f"({is_entry} OR {carried('i.id')} IS NOT NULL)"
    return f"""{feed.with_tags_alone()}
    SELECT i.id, i.repost_of_id, {is_shown} FROM unnest(%(ids)s::bigint[]) AS candidate (id)
    JOIN items_item i ON i.id = candidate.id {sender}
    WHERE {is_entry} ORDER BY i.id DESC
    """


VERIFY_IDS = statement(_verify_ids)


class Verified(NamedTuple):
    """An existing candidate, and how the reader's home treats it.

    The inbox may forget what does not belong, every window what is unpublished. They keep what is absent (the sender
    does not follow back, or is suspended) or has a hidden original: no event tells when that changes.

    `belongs` and `is_held` are about the sender alone.
    """

    item: ItemRow
    belongs: bool
    is_held: bool
    has_shown_original: bool | None
    """Whether it is no repost or its original is shown. None for a repost without a check of its original."""
    is_published: bool
    older: int | None
    """The kind of items below an id: `POSTS`, `MAYBE` or `NOTHING`. None if not asked."""
    tags: Sequence[str] | None = None
    """The followed hashtags of a public post, in order. None if it has none, or if the reader follows none."""
    is_welcome: bool = False
    """Whether these hashtags alone let the reader see it."""

    @classmethod
    def of(cls, row: Sequence[Any]) -> "Verified":
        """Parse a row of `VERIFY_BODIES`."""
        return cls(ItemRow.of(row), *row[WIDTH:])

    @classmethod
    def alone(cls, row: Sequence[Any], tagged: Sequence[Any] = ()) -> "Verified":
        """Parse a row that begins with the columns of `verified_alone`."""
        said = Said._make(row[:SAID])
        counts, is_liked, is_reposted, is_bookmarked, belongs, is_held, is_published, older = row[SAID:ALONE_WIDTH]
        has_shown_original = True if said.repost_of_id is None else None
        item = ItemRow(said, counts, is_liked, is_reposted, is_bookmarked, None)
        return cls(item, belongs, is_held, has_shown_original, is_published, older, *tagged)

    @property
    def is_by_sender(self) -> bool:
        """Whether the item is an entry because of its sender."""
        return self.belongs and self.is_held

    @property
    def is_entry(self) -> bool:
        """Whether the item is an entry, shown or not."""
        return self.is_by_sender or self.tags is not None

    @property
    def is_shown(self) -> bool:
        """Whether the item is an entry, and may be shown with its original."""
        return self.has_shown_original is True if self.is_by_sender else self.is_welcome and self.tags is not None

    @property
    def is_hidden(self) -> bool:
        """Whether the item belongs to the reader's home but is hidden now."""
        return (self.belongs or self.tags is not None) and not self.is_shown

    @property
    def tag(self) -> str:
        """The hashtag, if it alone makes the item an entry, else ""."""
        return "" if self.is_by_sender or not self.tags else self.tags[0]


TAG_COLUMNS = 2
"""Columns about hashtags, at the end. Only the statements for readers who follow hashtags have them."""
VERIFIED_WIDTH = WIDTH + len(Verified._fields) - 1 - TAG_COLUMNS
"""Columns that `Verified.of` takes, without those about hashtags."""
ALONE_WIDTH = MET + len(Verified._fields) - 2 - TAG_COLUMNS
"""Columns that `Verified.alone` takes, without those about hashtags."""


def verify_bodies(scope: Scope, ids: Sequence[int], below: int = 0) -> dict[int, Verified]:
    """Those of the candidates that exist, by id. `below`: an id. If given, each row says what is below it."""
    if not ids:
        return {}
    query: Statement = VERIFY_LAST_BODIES if below else VERIFY_BODIES
    rows = query.rows({"ids": id_array(ids), "below": below}, scope, Verified.of)
    return {row.item.id: row for row in rows}


def verify_ids(scope: Scope, ids: Sequence[int]) -> list[Candidate]:
    """The candidates that are entries, newest first."""
    return VERIFY_IDS.rows({"ids": id_array(ids)}, scope, Candidate._make) if ids else []
