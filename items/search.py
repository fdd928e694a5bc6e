"""Search over items and users, and what it needs written down.

Items: every word of the query must be in the item; newest first, exact at every cursor. Work is bounded by walking down
in three stretches: common words are found among the newest documents within a millisecond and never asked of the index,
which would first collect every place where they occur; rare words are the index's.
"""

import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

from django.contrib.auth.models import AnonymousUser
from django.db import connection, connections

from accounts.models import User
from accounts.names import grams, grams_of
from accounts.rows import user_columns, user_of
from items.hydrate import ItemBody, verified
from items.listing import ItemPage
from items.models import Item
from items.text import TAGS_AN_ITEM, hashtags
from items.visibility import VISIBLE
from items.words import Run, document, phrase, runs
from relations.rules import READER, blocks, followees, follows
from relations.visibility import visible_user
from storage.connections import fetch, id_array
from storage.ids import MAX_ID
from storage.replica import PRIMARY, lagging

QUERY_LENGTH = 200
WALK = 8_000
"""The newest documents, which are compared one by one if that is cheaper (0.12 µs each)."""
STEP = 32
"""The second stretch is so many times as long as the first; the third is the rest."""
ITEM_CANDIDATES = 1_000
"""What fits and is looked at for a page in one stretch, whether the reader may see it or not."""
PROPOSALS = 2
"""How often a page asks a replica before it is filled up by the primary."""

INDEX = """
    WITH words AS (
        INSERT INTO items_itemdocument (item_id, document) SELECT %(item)s, %(document)s::tsvector
        WHERE %(document)s <> ''
        ON CONFLICT (item_id) DO UPDATE SET document = EXCLUDED.document
    )
    INSERT INTO items_itemtag (tag, item_id) SELECT unnest(%(tags)s::text[]), %(item)s ON CONFLICT DO NOTHING
"""
FORGET = """
    WITH words AS (DELETE FROM items_itemdocument WHERE item_id = %(item)s AND %(document)s = '')
    DELETE FROM items_itemtag WHERE item_id = %(item)s AND tag <> ALL(%(tags)s::text[])
"""


# --- Writing ---------------------------------------------------------------------------------------------
def index(item: Item) -> None:
    """Write down anew what an item is found by: its words and its tags. Part of the transaction that changes the item.

    The words of a new item are written with it (items.actions.INSERT).
    """
    params: dict[str, Any] = {"item": item.pk, "document": document(item.title, item.text), "tags": hashtags(item.text)}
    with connection.cursor() as cursor:
        cursor.execute(FORGET, params)
        cursor.execute(INDEX, params)


def copy_index(items: Iterable[tuple[int, str, str]]) -> None:
    """Write down by COPY what new items are found by: (id, title, text) each."""
    tags: list[tuple[str, int]] = []
    with connection.cursor() as cursor:
        with cursor.copy("COPY items_itemdocument (item_id, document) FROM STDIN") as copy:
            for item_id, title, text in items:
                if words := document(title, text):
                    copy.write_row((item_id, words))
                tags += [(tag, item_id) for tag in hashtags(text)]
        with cursor.copy("COPY items_itemtag (tag, item_id) FROM STDIN") as copy:
            for row in tags:
                copy.write_row(row)


def reindex(chunk: int = 20_000) -> int:
    """Write down anew what all items are found by; how many. In a transaction, or search misses some meanwhile."""
    count, last_id = 0, 0
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE items_itemdocument, items_itemtag")
        while True:
            cursor.execute(
                """
                SELECT id, title, coalesce(content->>'text', '') FROM items_item
                WHERE id > %s AND repost_of_id IS NULL ORDER BY id LIMIT %s
                """,
                [last_id, chunk],
            )
            rows = cursor.fetchall()
            if not rows:
                return count
            copy_index(rows)
            count += len(rows)
            last_id = rows[-1][0]


# --- Queries ---------------------------------------------------------------------------------------------
_PART = re.compile(r'"([^"]*)"|“([^”]*)”|([^\s"“”]+)')
_FROM = re.compile("from[:\uff1a][@\uff20]?(.+)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Query:
    """A query in its parts, all of which must fit.

    `phrases`: what stands between spaces or in quotes, as runs one after the other, each once. `is_open`: the last one
    may go on, as people search while they write. `senders`: of from:name. `tags`: canonical. `names`: what
    users may be called.
    """

    phrases: tuple[tuple[Run, ...], ...]
    is_open: bool
    senders: tuple[str, ...]
    tags: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether the query asks for nothing."""
        return not (self.phrases or self.senders or self.tags)

    @property
    def tsquery(self) -> str:
        """As PostgreSQL reads it."""
        last = len(self.phrases) - 1
        return " & ".join(
            phrase(list(part), is_open=self.is_open and place == last) for place, part in enumerate(self.phrases)
        )


def parse(text: str) -> Query:
    """The query that `text` spells: words, "phrases", from:name, #tag."""
    phrases: dict[tuple[str, ...], tuple[Run, ...]] = {}
    senders: list[str] = []
    tags: list[str] = []
    names: list[str] = []
    is_open = False
    for quoted, curly, bare in _PART.findall(text):
        if sender := _FROM.fullmatch(bare):
            senders.append(sender[1])
        elif bare and bare[0] in "#\uff03" and len(tag := hashtags(bare)) == 1:
            tags += tag
        elif found := tuple(runs(part := quoted or curly or bare)):
            letters = tuple(run.letters for run in found)
            is_open = bool(bare) and letters not in phrases
            phrases.setdefault(letters, found)
            names += unicodedata.normalize("NFKC", part).lower().removeprefix("@").split()
            continue
        is_open = False
    return Query(tuple(phrases.values()), is_open, tuple(senders), tuple(dict.fromkeys(tags)), tuple(names))


# --- Items -----------------------------------------------------------------------------------------------
class _Proposal(NamedTuple):
    """Ids that fit, newest first. `bound`: the id at which the search stopped for having looked at so many; None where
    there is nothing below, or as many were found as were asked for.
    """

    ids: list[int]
    bound: int | None


def search_items(
    query: Query, reader: User | AnonymousUser, *, last_id: int | None = None, limit: int = 20
) -> ItemPage:
    """The items that fit below `last_id` (exclusive) as far as `reader` may see them, newest first; no reposts.

    Where `ITEM_CANDIDATES` of a stretch were looked at, the page ends short, with the id that it came to and `has_more`
    true.

    See docs/decisions.md: Muted senders are found by a search.
    See docs/decisions.md: A search looks at a thousand candidates.
    """
    below = MAX_ID + 1 if last_id is None else last_id
    names = {name.lower() for name in query.senders}
    sender = visible_user(query.senders[0], reader) if len(names) == 1 else None
    if query.is_empty or len(names) > 1 or (names and sender is None) or len(query.tags) > TAGS_AN_ITEM:
        return ItemPage([], None, False)
    found: list[ItemBody] = []
    for turn in itertools.count():
        count = limit + 1 - len(found)
        propose = partial(_proposal, query, sender.pk if sender else None, reader, below, count)
        ids, bound = lagging(reader.pk, propose) if turn < PROPOSALS else propose(PRIMARY)
        found += verified(ids, reader)
        if len(found) > limit or bound or len(ids) < count:
            break
        below = ids[-1]  # of what lagged, some is gone
    shown = found[:limit]
    if len(found) <= limit and bound:
        return ItemPage(shown, str(bound), True)
    return ItemPage(shown, shown[-1].id if shown else None, len(found) > limit)


def matching_items(query: Query, *, count: int) -> list[int]:
    """The ids of the newest `count` items that hold every word and tag of a query, whatever their status and whoever
    may see them; for moderators. Senders are not looked at.

    See docs/decisions.md: Search walks before it asks the index.
    """
    if not (query.phrases or query.tags) or len(query.tags) > TAGS_AN_ITEM:
        return []
    params: dict[str, Any] = {"words": query.tsquery, "count": count, "below": MAX_ID + 1}
    if query.tags:
        params |= {"tag": query.tags[0], "tags": list(query.tags[1:]), "others": len(query.tags) - 1}
    select = f"SELECT id FROM ({_fitting(bool(query.phrases), len(query.tags), False)}) fitting LIMIT %(count)s"  # noqa: S608
    found: list[int] = []
    with connection.cursor() as cursor:
        for above in _stretches(cursor, MAX_ID + 1) if query.phrases else (0,):
            cursor.execute(select, params | {"above": above, "count": count - len(found)})
            found += [row[0] for row in cursor.fetchall()]
            if len(found) >= count:
                break
            params["below"] = above
    return found


def _proposal(
    query: Query, sender_id: int | None, reader: User | AnonymousUser, below: int, count: int, on: str
) -> _Proposal:
    """The newest `count` ids that fit, below `below`."""
    params: dict[str, Any] = {"reader": reader.pk or 0, "words": query.tsquery, "candidates": ITEM_CANDIDATES}
    select = _candidates(bool(query.phrases), len(query.tags), sender_id is not None)
    if query.tags:
        params |= {"tag": query.tags[0], "tags": list(query.tags[1:]), "others": len(query.tags) - 1}
    if sender_id is not None:
        params["sender"] = sender_id
    found: list[int] = []
    with connections[on].cursor() as cursor:
        for above in _stretches(cursor, below) if query.phrases else (0,):
            # Not prepared: a plan for any word would be right for none.
            cursor.execute(select, params | {"below": below, "above": above, "count": count - len(found)})
            rows = cursor.fetchall()
            found += [item_id for item_id, _, is_visible in rows if is_visible]
            if rows and rows[-1][1] == ITEM_CANDIDATES and len(found) < count:
                return _Proposal(found, rows[-1][0])
            if len(found) >= count:
                break
            below = above
    return _Proposal(found, None)


def _fitting(has_words: bool, tag_count: int, has_sender: bool) -> str:
    """The ids that fit queries of such parts, newest first."""
    source, conditions, place = "", ["{place} < %(below)s"], "i.id"
    if has_words:
        source, place = "items_itemdocument d", "d.item_id"
        conditions += ["d.document @@ %(words)s::tsquery", "d.item_id >= %(above)s"]
    if tag_count:
        source += f" JOIN items_itemtag t ON t.item_id = {place}" if source else "items_itemtag t"
        place = place if has_words else "t.item_id"
        conditions.append("t.tag = %(tag)s")
    if tag_count > 1:  # one probe of the key each
        conditions.append(f"""(
            SELECT count(*) FROM items_itemtag other WHERE other.tag = ANY(%(tags)s::text[])
            AND other.item_id = {place}) = %(others)s""")  # noqa: S608 (our own text)
    if has_sender:
        source += f" JOIN items_item i ON i.id = {place}" if source else "items_item i"
        conditions += ["i.sender_id = %(sender)s", "i.repost_of_id IS NULL"]
    fitting = " AND ".join(conditions).replace("{place}", place)
    # OFFSET 0: the stretch is planned for all that fits in it. For the few that the page needs, the planner would walk
    # past everything rather than ask the index, and for rare words that is the whole table.
    return f"SELECT {place} AS id FROM {source} WHERE {fitting} ORDER BY {place} DESC OFFSET 0"  # noqa: S608


@cache
def _candidates(has_words: bool, tag_count: int, has_sender: bool) -> str:
    """The statement for queries of such parts: what fits, at most `candidates`, and of that what the reader may see;
    the last candidate also where they may not.
    """
    return f"""
        WITH candidate AS NOT MATERIALIZED (
            SELECT id, row_number() OVER (ORDER BY id DESC) AS number FROM (
                {_fitting(has_words, tag_count, has_sender)}
            ) fitting ORDER BY id DESC LIMIT %(candidates)s
        )
        SELECT id, number, is_visible FROM (
            SELECT c.id, c.number, i.repost_of_id IS NULL AND {VISIBLE} AS is_visible
            FROM candidate c JOIN items_item i ON i.id = c.id JOIN accounts_user s ON s.id = i.sender_id
            ORDER BY c.id DESC OFFSET 0
        ) seen WHERE is_visible OR number = %(candidates)s ORDER BY id DESC LIMIT %(count)s
    """  # noqa: S608 (our own text)


def _stretches(cursor: Any, below: int) -> Iterable[int]:
    """Where the three stretches of a search below `below` end."""
    cursor.execute(
        """
        SELECT max(item_id), min(item_id), count(*) FROM (
            SELECT item_id FROM items_itemdocument WHERE item_id < %s ORDER BY item_id DESC LIMIT %s) newest
        """,
        [below, WALK],
    )
    last, first, walked = cursor.fetchone()
    if walked == WALK:
        yield first
        yield max(first - (last - first) * STEP, 0)
    yield 0


# --- Users -----------------------------------------------------------------------------------------------
CANDIDATES = 2_000
"""Names that fit are ranked among so many; whom the reader follows, and every big-V, are always among them."""
FEW = 5
"""Where fewer names fit, similar ones are offered too."""
SIMILAR_CANDIDATES = 200
SIMILAR = 0.4
"""How much of two names must be the same, from 0 to 1 (Dice's coefficient of their grams)."""
SHORTEST_MISSPELT = 4
NAME_WORDS = 8

NAME = "feedsite_name(u.username, u.display_name)"
VISIBLE_USER = f"u.is_active AND NOT {blocks('u.id', READER)}"


def search_users(query: Query, reader: User | AnonymousUser, *, limit: int = 20) -> list[User]:
    """Users whose name matches, as far as `reader` may know of them: the very name first, then followees of the reader,
    names that begin so, and users with most followers. Misspelt names are found where few fit.
    """
    words = query.names[:NAME_WORDS]
    if not words:
        return []
    name = " ".join(words)
    params: dict[str, Any] = {"reader": reader.pk or 0, "name": name, "count": limit}
    params |= {f"word{number}": word for number, word in enumerate(words)}
    params["grams"] = grams_of(list(words))
    users, on = lagging(reader.pk, lambda on: (_users(words, params, on), on))
    if on != PRIMARY and users:
        rows = fetch(_known(), {"ids": id_array(user.pk for user in users), "reader": reader.pk or 0})
        users = [user_of(row) for row in rows]
    return users[:limit]


def _users(words: Sequence[str], params: dict[str, Any], on: str) -> list[User]:
    """Users whose name matches, best match first."""
    name = params["name"]
    with connections[on].cursor() as cursor:
        cursor.execute(_named(len(words)), params)
        users = [user_of(row) for row in cursor.fetchall()]
        if len(users) < FEW and len(words) == 1 and len(name) >= SHORTEST_MISSPELT:
            half = len(name) // 2
            halves = {"front": grams(f" {name[:half]}"), "back": grams(name[half:])}
            cursor.execute(_similar(), params | halves | {"grams": grams(f" {name}", 2) + grams(name)})
            known = {user.pk for user in users}
            users += [user for row in cursor.fetchall() if (user := user_of(row)).pk not in known]
    return users


@cache
def _known() -> str:
    """Those of the users found that the reader may know of, in this order."""
    return f"""
        SELECT {user_columns("u")} FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS found (id, place)
        JOIN accounts_user u ON u.id = found.id WHERE {VISIBLE_USER} ORDER BY found.place
    """  # noqa: S608 (columns of our own model)


@cache
def _named(count: int) -> str:
    fits = " AND ".join(f"position(%(word{number})s IN {NAME}) > 0" for number in range(count))
    return f"""
        WITH candidate AS (
            SELECT u.id FROM accounts_user u WHERE lower(u.username) = %(name)s
            UNION SELECT u.id FROM ({followees(READER)}) f JOIN accounts_user u ON u.id = f.followee_id WHERE {fits}
            UNION SELECT u.id FROM accounts_user u WHERE u.is_big_v AND {fits}
            UNION (SELECT u.id FROM accounts_user u
                WHERE feedsite_grams({NAME}) @> %(grams)s::text[] AND {fits} LIMIT {CANDIDATES})
        )
        SELECT {user_columns("u")} FROM candidate JOIN accounts_user u ON u.id = candidate.id WHERE {VISIBLE_USER}
        ORDER BY lower(u.username) = %(name)s DESC,
            {follows(READER, "u.id")} DESC,
            starts_with(lower(u.username), %(name)s) OR starts_with(lower(u.display_name), %(name)s) DESC,
            u.follower_count DESC, u.id
        LIMIT %(count)s
    """  # noqa: S608 (columns of our own model)


@cache
def _similar() -> str:
    similarity = """(
        SELECT 2.0 * count(*) FILTER (WHERE gram = ANY(%(grams)s::text[]))
            / (count(*) + cardinality(%(grams)s::text[]))
        FROM unnest(feedsite_grams(lower({name}))) AS gram)
    """
    # A slip of the pen leaves the front half of a name as it is, or the back half.
    halves = " UNION ".join(
        f"(SELECT u.id FROM accounts_user u WHERE feedsite_grams({NAME}) @> %({half})s::text[] "  # noqa: S608
        f"LIMIT {SIMILAR_CANDIDATES})"
        for half in ("front", "back")
    )
    return f"""
        SELECT {user_columns("u")} FROM ({halves}) candidate JOIN accounts_user u ON u.id = candidate.id
        CROSS JOIN LATERAL (SELECT greatest({similarity.format(name="u.username")},
            {similarity.format(name="u.display_name")}) AS value OFFSET 0) likeness
        WHERE {VISIBLE_USER} AND likeness.value >= {SIMILAR}
        ORDER BY likeness.value DESC, u.follower_count DESC, u.id LIMIT %(count)s
    """  # noqa: S608
