"""Search over items: all words of the query must match, newest first, exact at every cursor.

See docs/decisions.md: Search scans the newest posts before it asks the index.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from django.contrib.auth.models import AnonymousUser
from django.db import connections

from accounts.models import User
from items.bodies import ItemBody
from items.hydrate import ItemRow, bodies, columns
from items.listing import ItemPage
from items.models import Context
from items.search.query import Query
from items.text import TAGS_AN_ITEM
from items.visibility import is_listed, post_visible
from relations.visibility import find_user
from storage.connections import fetch, id_array
from storage.ids import NO_BOUND
from storage.paging import as_text, below, part_of
from storage.replica import PRIMARY, read_from_replica

WALK = 8_000
"""Newest documents that are compared one by one if that is cheaper (0.12 µs each)."""
WALKED = 2
"""How many stretches are always searched."""
STEP = 32
"""Length of the second stretch, in lengths of the first. The third is the rest."""
ITEM_CANDIDATES = 1_000
"""Matching items that a page checks, visible or not, if its first ones do not fill it."""
INDEXED = 50_000
"""The index is used for the second and third stretch if a part of the query matches at most this many items, by
PostgreSQL's estimate. Parts are all its words in any order, its tag, and its sender. The index checks all of these
items, 5 to 10 µs each.
"""
# LIMIT ends the probes: most candidates are visible.
FOUND = f"""
    SELECT item.* FROM (SELECT id FROM unnest(%(ids)s::bigint[]) AS id ORDER BY id DESC OFFSET 0) candidate
    CROSS JOIN LATERAL (
        SELECT {columns("i", "s")} FROM items_item i JOIN accounts_user s ON s.id = i.sender_id
        WHERE i.id = candidate.id AND i.repost_of_id IS NULL AND {is_listed("i")} AND {post_visible("i", "s")} OFFSET 0
    ) item ORDER BY candidate.id DESC LIMIT %(count)s
"""
BOUNDS = """
    SELECT max(item_id), min(item_id), count(*) FROM (
        SELECT item_id FROM items_itemdocument WHERE item_id < %s ORDER BY item_id DESC LIMIT %s) newest
"""


class _CandidateBatch(NamedTuple):
    """Matching ids. `bound`: where the search stopped early."""

    ids: list[int]
    bound: int | None


def search_items(
    query: Query, reader: User | AnonymousUser, *, last_id: int | None = None, limit: int = 20
) -> ItemPage:
    """The visible matching items below `last_id`, newest first, without reposts.

    After `ITEM_CANDIDATES`, or if more than `INDEXED` would be read, the page ends short with `has_more`.
    """
    top = below(last_id)
    names = {name.lower() for name in query.senders}
    sender = find_user(query.senders[0], reader) if len(names) == 1 else None
    if query.is_empty or len(names) > 1 or (names and sender is None) or len(query.tags) > TAGS_AN_ITEM:
        return ItemPage([], None, False)
    found: list[ItemBody] = []
    bound: int | None = None
    for count in (2 * (limit + 1), ITEM_CANDIDATES):
        propose = partial(_find_candidates, query, sender.pk if sender else None, top, count)
        ids, bound = read_from_replica(reader.pk, propose)
        found += _visible_among(ids, reader, limit + 1 - len(found))
        if len(found) > limit or bound or len(ids) < count:
            break
        top = bound = ids[-1]
    part = part_of(found, limit, lambda item: int(item.id), bound=bound or None)
    return ItemPage(list(part.shown), as_text(part.last_id), part.has_more)


def matching_items(query: Query, *, count: int) -> tuple[list[int], bool]:
    """For moderators: the newest `count` ids with all words and tags, in every status, and whether more may exist."""
    if not (query.phrases or query.tags) or len(query.tags) > TAGS_AN_ITEM:
        return [], False
    ids, bound = _find_candidates(query, None, NO_BOUND, count, PRIMARY)
    return ids, bool(bound) or len(ids) == count


def _visible_among(ids: Sequence[int], reader: User | AnonymousUser, count: int) -> list[ItemBody]:
    """The newest `count` of these items that `reader` may see and search may show."""
    if not ids:
        return []
    params = {"ids": id_array(ids), "reader": reader.pk or 0, "count": count}
    return bodies(fetch(FOUND, params, into=ItemRow.without_original), reader, Context.PUBLIC)


def _find_candidates(query: Query, sender_id: int | None, below: int, count: int, on: str) -> _CandidateBatch:
    """The newest `count` matching ids, visible or not."""
    params: dict[str, Any] = {"words": query.tsquery}
    parts = query.has_words, len(query.tags), sender_id is not None
    if query.tags:
        params |= {"tag": query.tags[0], "tags": list(query.tags[1:]), "others": len(query.tags) - 1}
    if sender_id is not None:
        params["sender"] = sender_id
    found: list[int] = []
    has_many = False
    has_stretches = query.has_words or len(query.tags) + (sender_id is not None) > 1
    for number, above in enumerate(_walk_bounds(below, on) if has_stretches else (0,)):
        if number == 1:
            has_many = _has_many(query, sender_id, on)
        if number == WALKED and has_many and below:
            return _CandidateBatch(found, below)
        is_walked = has_many or number == 0
        select = _matching_ids_sql(*parts, is_walked=is_walked)
        asked = params | {"below": below, "above": above, "count": count - len(found)}
        if is_walked:
            rows = fetch(select, asked, on=on)
        else:  # Not prepared: no plan suits all words.
            with connections[on].cursor() as cursor:
                cursor.execute(select, asked)
                rows = cursor.fetchall()
        found += [item_id for (item_id,) in rows]
        if len(found) >= count:
            break
        below = above
    return _CandidateBatch(found, None)


# OFFSET 0 keeps the planner from using the word index.
WALKED_DOCUMENTS = """
    (SELECT item_id, document FROM items_itemdocument WHERE item_id < %(below)s AND item_id >= %(above)s
    ORDER BY item_id DESC OFFSET 0) d
"""


@cache
def _matching_ids_sql(has_words: bool, tag_count: int, has_sender: bool, *, is_walked: bool) -> str:
    """SQL of the newest ids that match all parts of a query. `is_walked`: documents are compared one by one."""
    source, conditions, place = "", ["{place} < %(below)s", "{place} >= %(above)s"], "i.id"
    if has_words:
        source, place = WALKED_DOCUMENTS if is_walked else "items_itemdocument d", "d.item_id"
        conditions.append("d.document @@ %(words)s::tsquery")
    if tag_count:
        source += f" JOIN items_itemtag t ON t.item_id = {place}" if source else "items_itemtag t"
        place = place if has_words else "t.item_id"
        conditions.append("t.tag = %(tag)s")
    if tag_count > 1:  # one probe of the key each
        conditions.append(f"""(
            SELECT count(*) FROM items_itemtag other WHERE other.tag = ANY(%(tags)s::text[])
            AND other.item_id = {place}) = %(others)s""")
    if has_sender:
        source += f" JOIN items_item i ON i.id = {place}" if source else "items_item i"
        conditions += ["i.sender_id = %(sender)s", "i.repost_of_id IS NULL"]
    fitting = " AND ".join(conditions).replace("{place}", place)
    # OFFSET 0: plan for everything in the stretch. For the few ids of a page, the planner would scan past everything
    # instead of using the index. For rare words that is the whole table.
    return f"""
        SELECT id FROM (
            SELECT {place} AS id FROM {source} WHERE {fitting} ORDER BY {place} DESC OFFSET 0
        ) fitting LIMIT %(count)s
    """


def _has_many(query: Query, sender_id: int | None, on: str) -> bool:
    """Whether each part alone matches more than `INDEXED` items. Matches of all may then be few and hard to find."""
    parts: list[tuple[str, Any]] = [("items_item WHERE sender_id = %s", sender_id)] if sender_id is not None else []
    parts += [("items_itemtag WHERE tag = %s", tag) for tag in query.tags[:1]]
    if query.phrases:
        words = dict.fromkeys(re.findall(r"'[^']+'(?::\*)?", query.wanted))  # a repeated word is no rarer
        parts.append(("items_itemdocument WHERE document @@ %s::tsquery", " & ".join(words)))
    with connections[on].cursor() as cursor:
        return all(_estimate(cursor, source, value) > INDEXED for source, value in parts)


def _estimate(cursor: Any, source: str, value: Any) -> int:
    cursor.execute(f"EXPLAIN (FORMAT JSON) SELECT FROM {source}", [value])
    return int(cursor.fetchone()[0][0]["Plan"]["Plan Rows"])


def _walk_bounds(below: int, on: str) -> Iterable[int]:
    ((last, first, walked),) = fetch(BOUNDS, [below, WALK], on=on)
    if walked == WALK:
        yield first
        yield max(first - (last - first) * STEP, 0)
    yield 0
