"""The truth: what PostgreSQL says about a reader and the candidates from Redis.

`verify` sends the one statement that decides what a page shows, after its windows were read. It returns the epochs that
the windows need, the outboxes to merge, the pending deliveries and the visible candidates. `fetch_items` reads
candidates with the originals of reposts.

See docs/decisions.md: Windows first, then one statement.
See docs/decisions.md: Windows keep what may come back without an event.
See docs/decisions.md: Experiments that were not worth it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.levels import policy
from accounts.models import User
from items.hydrate import COLUMNS, MET, ORIGINALS, WIDTH, ItemRow, id_of
from items.hydrate import columns as columns_of
from items.visibility import is_published
from relations import rules
from storage.connections import fetch, id_array
from timeline import completions
from timeline.inbox import cap_of
from timeline.outbox import source_of
from timeline.pull import HomeCandidate, any_below, any_tagged_below
from timeline.rules import (
    HELD,
    WELCOME_AMONG,
    belongs,
    belongs_among,
    followed_tags_of_post,
    original_shown,
    wanted_among,
    welcome,
)
from timeline.senders import HOME, TAGGED, Feed, Scope, statement

# --- Candidates ------------------------------------------------------------------------------------------
# Below an id: posts (2), only reposts and posts by hashtags, which may be hidden (1), none (0).
POSTS, MAYBE, NOTHING = 2, 1, 0
NOT_ASKED = "NULL"


def older_items_sql(feed: Feed) -> str:
    """SQL that says which kind of items is below the parameter `below`: `POSTS`, `MAYBE` or `NOTHING`.

    Statements that do not ask use `NOT_ASKED`, which costs nothing.
    """
    post, entry = any_below(feed, "stream.repost_of_id IS NULL"), any_below(feed)
    if feed.tags:
        entry = f"{entry} OR {any_tagged_below()}"
    return f"CASE WHEN {post} THEN {POSTS} WHEN {entry} THEN {MAYBE} ELSE {NOTHING} END"


def _verdict_columns(feed: Feed, belongs: str, original_shown: str, welcome: str, older: str = NOT_ASKED) -> str:
    """The SQL columns behind those of the item: the arguments of `VerifiedItem.of`."""
    columns = f"{belongs}, {HELD}, {original_shown}, {is_published('i')}, {older}"
    return f"{columns}, {followed_tags_of_post('i.id')}, {welcome}" if feed.tags else columns


def _describe_query(feed: Feed) -> str:
    verdict = _verdict_columns(
        feed, belongs(wanted=feed.wanted), original_shown("i"), welcome("i.sender_id", "s.is_active")
    )
    return f"""{feed.with_tags_clause()}
    SELECT {COLUMNS}, {verdict} FROM unnest(%(ids)s::bigint[]) AS candidate (id)
    JOIN items_item i ON i.id = candidate.id JOIN accounts_user s ON s.id = i.sender_id {ORIGINALS}
    """


DESCRIBE = statement(_describe_query)


def _verify_ids(feed: Feed) -> str:
    is_entry, is_shown = f"{belongs(wanted=feed.wanted)} AND {HELD}", original_shown("i")
    sender = "JOIN accounts_user s ON s.id = i.sender_id"
    if feed.tags:
        # OFFSET 0: a probe, not a hash of all users.
        sender = "CROSS JOIN LATERAL (SELECT is_active FROM accounts_user WHERE id = i.sender_id OFFSET 0) s"
        is_shown = f"CASE WHEN {is_entry} THEN {is_shown} ELSE {welcome('i.sender_id', 's.is_active')} END"
        is_entry = f"({is_entry} OR {followed_tags_of_post('i.id')} IS NOT NULL)"
    return f"""{feed.with_tags_clause()}
    SELECT i.id, i.repost_of_id, {is_shown} FROM unnest(%(ids)s::bigint[]) AS candidate (id)
    JOIN items_item i ON i.id = candidate.id {sender}
    WHERE {is_entry} ORDER BY i.id DESC
    """


VERIFY_IDS = statement(_verify_ids)


class VerifiedItem(NamedTuple):
    """An existing candidate, and how the reader's home treats it.

    The inbox may forget what does not belong, every window what is unpublished. They keep what is absent (the sender
    does not follow back, or is suspended) or has a hidden original: no event tells when that changes.
    """

    item: ItemRow
    belongs: bool
    """Whether it may be in the reader's inbox, by its sender."""
    is_published: bool
    is_entry: bool
    """Whether it is an entry, shown or not."""
    shown: ItemRow | None
    """The item, if it is an entry and may be shown with its original."""
    has_shown_original: bool | None
    """Whether it is no repost or its original is shown. None for a repost without a check of its original."""
    tags: Sequence[str] | None
    """The followed hashtags of a public post, in order. None if it has none, or if the reader follows none."""
    tag: str
    """The hashtag, if it alone makes the item an entry, else ""."""
    older: int | None
    """The kind of items below an id: `POSTS`, `MAYBE` or `NOTHING`. None if not asked."""

    @classmethod
    def of(
        cls,
        item: ItemRow,
        belongs: bool,
        is_held: bool,
        has_shown_original: bool | None,
        is_published: bool,
        older: int | None,
        tags: Sequence[str] | None = None,
        is_welcome: bool = False,
    ) -> Self:
        """Judge an item by the columns of `_verdict_columns`. `is_welcome`: hashtags alone let the reader see it."""
        is_by_sender = belongs and is_held
        is_shown = has_shown_original is True if is_by_sender else is_welcome and tags is not None
        return cls(
            item=item,
            belongs=belongs,
            is_published=is_published,
            is_entry=is_by_sender or tags is not None,
            shown=item if is_shown else None,
            has_shown_original=has_shown_original,
            tags=tags,
            tag="" if is_by_sender or not tags else tags[0],
            older=older,
        )

    @property
    def is_hidden(self) -> bool:
        """Whether the item belongs to the reader's home but is hidden now."""
        return (self.belongs or self.tags is not None) and self.shown is None


VERDICT, TAG_COLUMNS = 5, 2
"""Columns of `_verdict_columns`, and those about hashtags at its end, which only readers who follow hashtags have."""
HAS_SHOWN_ORIGINAL = 2
"""The place among them of `VerifiedItem.has_shown_original`."""


def parse_described(row: Sequence[Any]) -> VerifiedItem:
    """Parse a row of `DESCRIBE`."""
    return VerifiedItem.of(ItemRow.of(row), *row[WIDTH:])


def fetch_items(scope: Scope, ids: Sequence[int]) -> dict[int, VerifiedItem]:
    """Those of the candidates that exist, with the originals of reposts, by id."""
    rows = DESCRIBE.rows({"ids": id_array(ids)}, scope, parse_described) if ids else []
    return {row.item.said.id: row for row in rows}


def verify_ids(scope: Scope, ids: Sequence[int]) -> list[HomeCandidate]:
    """The candidates that are entries, newest first."""
    return VERIFY_IDS.rows({"ids": id_array(ids)}, scope, HomeCandidate._make) if ids else []


# --- The reader ------------------------------------------------------------------------------------------
FOLLOWED_BIG_VS = f"""
    SELECT one.reader, array_agg(followed.id) FROM unnest(%(readers)s::bigint[]) AS one (reader)
    CROSS JOIN LATERAL ({rules.followed_big_vs("one.reader")}) followed GROUP BY one.reader
"""
# Whether a delivery `d` is of a public post with a followed hashtag.
BY_TAG = """EXISTS (
    SELECT FROM items_itemtag t
    WHERE t.item_id = d.item_id AND t.is_public_post AND (t.tag IN (SELECT name FROM tags)) IS TRUE OFFSET 0)
"""


def _pending(feed: Feed) -> str:
    """SQL for the newest pending deliveries to the reader, among the newest of the site."""
    by_tag = f" OR {BY_TAG}" if feed.tags else ""
    return f"""
    SELECT count(*) AS seen, min(item_id) AS lowest,
        (array_agg(item_id ORDER BY item_id DESC) FILTER (WHERE sender_id IS NOT NULL))[:%(count)s] AS ids,
        (array_agg(sender_id ORDER BY item_id DESC) FILTER (WHERE sender_id IS NOT NULL))[:%(count)s] AS senders
    FROM (
        SELECT d.item_id, CASE
            WHEN d.sender_id = {rules.READER} OR {rules.follows(rules.READER, "d.sender_id")}{by_tag} THEN d.sender_id
        END AS sender_id
        FROM (
            SELECT item_id, sender_id FROM timeline_delivery WHERE item_id < %(before)s
            ORDER BY item_id DESC LIMIT %(pending)s
        ) d OFFSET 0
    ) scanned
"""


BOUND = """
    greatest(
        CASE WHEN pending.seen = %(pending)s THEN pending.lowest - 1 END,
        CASE WHEN cardinality(pending.ids) = %(count)s THEN pending.ids[%(count)s] - 1 END,
        0)
"""
TAGS = """,
        ARRAY(SELECT ARRAY[tags.id, reader.generation # tags.epoch] FROM tags ORDER BY tags.id),
        ARRAY(SELECT tags.name FROM tags ORDER BY tags.id)"""


def _reader_facts_query(feed: Feed) -> str:
    """SQL for what PostgreSQL knows about the reader: a row of `_ReaderFactsRow`.

    OFFSET 0 makes PostgreSQL compute the subquery's columns once.
    """
    tags = TAGS if feed.tags else ""
    return f"""
    SELECT reader.level, reader.has_inbox, reader.epoch, reader.push_generation, reader.push_level, reader.inbox_from,
        CASE WHEN reader.push_generation = 0 OR reader.push_generation <> %(pushes)s THEN ARRAY(
            {rules.followed_big_vs(rules.READER, "ARRAY[v.id, reader.generation # v.promotion]")}
        ) END,
        {BOUND}, pending.ids, (SELECT max(id) FROM items_item), {completions.LAST}{tags}
    FROM (
        SELECT u.level, {policy.has_inbox("u", "p.inbox_from")} AS has_inbox, u.window_epoch # p.generation AS epoch,
            {policy.push_generation_sql("p.push_level")} AS push_generation, p.generation, p.push_level, p.inbox_from
        FROM accounts_user u LEFT JOIN {policy.IN_FORCE} p ON true WHERE u.id = %(reader)s OFFSET 0
    ) reader CROSS JOIN pending
"""


class _ReaderFactsRow(NamedTuple):
    """What PostgreSQL knows about the reader. The last two columns exist only if the reader follows hashtags."""

    level: int
    has_inbox: bool
    epoch: int | None
    push_generation: int
    push_level: int
    inbox_from: int
    big_vs: list[tuple[int, int | None]] | None
    pending_bound: int
    pending: list[int] | None
    newest: int | None
    last: int
    process: int
    tags: Sequence[tuple[int, int | None]] = ()
    tag_names: Sequence[str] = ()


def _nulls(count: int) -> str:
    return ", ".join(["NULL"] * count)


IDS, SENDERS = (f"(%({known})s::bigint[] || (SELECT {known} FROM pending))" for known in ("ids", "senders"))


def _verify(feed: Feed, older: str) -> str:
    # Only posts are known to be shown: a repost's original is read later.
    verdict = _verdict_columns(
        feed, belongs_among(SENDERS), "CASE WHEN i.repost_of_id IS NULL THEN true END", WELCOME_AMONG, older
    )
    width = MET + VERDICT + (TAG_COLUMNS if feed.tags else 0)
    about = len(_ReaderFactsRow._fields) - (0 if feed.tags else TAG_COLUMNS)
    return f"""
    WITH {feed.tags_cte()}pending AS MATERIALIZED ({_pending(feed)}),
    wanted AS MATERIALIZED ({wanted_among(SENDERS)})
    SELECT {columns_of("i", "s")}, {verdict}, {_nulls(about)}
    FROM items_item i JOIN accounts_user s ON s.id = i.sender_id WHERE i.id = ANY ({IDS})
    UNION ALL SELECT {_nulls(width)}, about.* FROM ({_reader_facts_query(feed)}) about
    """


VERIFY, VERIFY_LAST = _verify(HOME, NOT_ASKED), _verify(HOME, older_items_sql(HOME))
VERIFY_TAGGED, VERIFY_TAGGED_LAST = _verify(TAGGED, NOT_ASKED), _verify(TAGGED, older_items_sql(TAGGED))


class MissReason(models.TextChoices):
    """Why the windows did not suffice for a page: the label of `feedsite_home_misses_total`.

    A new name needs a line in docs/metrics.md.
    """

    DORMANT = (
        "dormant",
        _("The reader hasn't been here for a month and has no inbox. PostgreSQL serves each page with one query."),
    )
    FEW = (
        "few",
        _(
            "The reader follows few people, so the policy gives them no inbox. "
            "PostgreSQL serves each page with one query."
        ),
    )
    MISSING = (
        "missing",
        _("A window is missing or not ready yet. PostgreSQL serves the page, and a worker builds the window."),
    )
    FLOOR = "floor", _("The page reaches below the floor of a window, so PostgreSQL serves it.")
    HIDDEN = "hidden", _("The reader can't see most posts in the windows, so PostgreSQL serves the page.")
    OUTBOXES = "outboxes", _("There are so many outboxes to merge that PostgreSQL is faster, so it serves the page.")
    REDIS = "redis", _("Redis doesn't answer, so PostgreSQL serves the page.")


@dataclass(slots=True)
class ExpectedPolicy:
    """The policy that this process saw last. Decides what a page tries first, never what it shows."""

    push_level: int = 0
    inbox_from: int = 0

    def forget(self) -> None:
        """Forget the policy, so that the next page tries the windows."""
        self.push_level = self.inbox_from = 0

    def has_inbox(self, reader: User) -> bool:
        """Whether the reader may have an inbox."""
        return cap_of(reader.level) > 0 and reader.following_count >= self.inbox_from

    def merges(self, reader: User) -> bool:
        """Whether the reader's pages may merge outboxes."""
        return self.push_level == 0 or reader.level < self.push_level


expected = ExpectedPolicy()


@dataclass(slots=True)
class Truth:
    """PostgreSQL's answer about a reader and candidates."""

    level: int
    has_inbox: bool
    """Whether the reader receives deliveries."""
    epoch: int | None
    """The epoch that the reader's windows must have (policy.EPOCH). None if no window may be used."""
    push_generation: int
    """The reader's push generation. 0 if the reader takes no pushes from big-Vs and merges outboxes."""
    names_big_vs: bool
    """Whether `outboxes` has those of followed big-Vs. Not if the inbox takes their pushes."""
    outboxes: dict[int, int | None]
    """The outboxes to merge, each with the epoch it must have, by source (timeline.outbox)."""
    tags: dict[int, str]
    """Followed hashtags by the source of their outbox."""
    pending_bound: int
    """The pending deliveries are complete above this id."""
    newest: int
    """The highest item id that PostgreSQL knew."""
    has_moved: bool
    """Whether a delivery may have been completed since the windows were read (timeline.completions)."""
    rows: dict[int, VerifiedItem]
    """Existing candidates and pending items by id. Reposts lack their originals."""
    pending: set[int]
    """The ids whose delivery is pending."""

    @property
    def hint(self) -> set[int] | None:
        """The outboxes that the next page will merge."""
        if self.push_generation == 0 and self.names_big_vs:
            return {*self.outboxes}
        return {*self.tags} or None

    def without_tag(self, tag: str, ids: Iterable[int]) -> set[int]:
        """Those of the verified items that do not have the hashtag."""
        return {item_id for item_id in self.rows.keys() & ids if tag not in (self.rows[item_id].tags or ())}

    @property
    def has_windows(self) -> bool:
        """Whether the reader has a usable inbox."""
        return self.has_inbox and self.epoch is not None

    @property
    def why_no_windows(self) -> MissReason:
        """The reason if `has_windows` is false."""
        if self.has_inbox:
            return MissReason.MISSING
        return MissReason.FEW if self.level else MissReason.DORMANT


def verify(
    scope: Scope, ids: Sequence[int], senders: Iterable[int], *, before: int, count: int, pushes: int, below: int = 0
) -> Truth:
    """Ask PostgreSQL about the candidates `ids`, and the newest `count` pending items below `before`.

    `senders`: of all candidates. `pushes`: the inbox's push generation. `below`: an id, to say what is below it.
    """
    params = {
        "reader": scope.reader_id,
        "ids": id_array(ids),
        "senders": id_array(set(senders)),
        "before": before,
        "count": count,
        "pending": settings.PENDING_CAP + 1,
        "pushes": pushes,
        "below": below,
    }
    if scope.has_tags:
        query, end = VERIFY_TAGGED_LAST if below else VERIFY_TAGGED, MET + VERDICT + TAG_COLUMNS
    else:
        query, end = VERIFY_LAST if below else VERIFY, MET + VERDICT
    rows = {}
    for row in fetch(query, params):
        if (item_id := id_of(row)) is None:
            about = _ReaderFactsRow(*row[end:])
        else:
            rows[item_id] = VerifiedItem.of(ItemRow.without_original(row), *row[MET:end])
    expected.push_level, expected.inbox_from = about.push_level, about.inbox_from
    outboxes, tags = dict(about.big_vs or ()), {}
    for (tag, epoch), name in zip(about.tags, about.tag_names, strict=True):
        source = source_of(tag=tag)
        outboxes[source], tags[source] = epoch, name
    return Truth(
        level=about.level,
        has_inbox=about.has_inbox,
        epoch=about.epoch,
        push_generation=about.push_generation,
        names_big_vs=about.big_vs is not None,
        outboxes=outboxes,
        tags=tags,
        pending_bound=about.pending_bound,
        newest=about.newest or 0,
        has_moved=completions.may_have_completed(about.last, about.process),
        rows=rows,
        pending=rows.keys() & (about.pending or ()),
    )


def followed_big_vs(reader_ids: Sequence[int]) -> list[tuple[int, list[int]]]:
    """The big-Vs that each reader follows. Readers who follow none are left out."""
    return [(reader_id, ids) for reader_id, ids in fetch(FOLLOWED_BIG_VS, {"readers": id_array(reader_ids)})]
