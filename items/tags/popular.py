from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.core.cache import cache

from accounts.models import User
from items.visibility import VISIBLE, public_post
from storage import keys
from storage.connections import fetch
from storage.ids import MAX_ID
from web.hashtags import canonical_tag

KEPT = timedelta(minutes=5)
"""How long popular hashtags are cached, for all readers."""
NEWEST = 5_000
"""Newest public posts whose hashtags are counted."""
SENDERS = 2
"""Users who must have used a hashtag to make it popular."""
WITNESSES = 3
"""Items cached for a hashtag, each of another sender."""
COUNT = 10
REMEMBERED = 300
"""Hashtags cached. Completions use more of them than the search page."""
COUNTING = timedelta(seconds=10)
"""While one request counts the hashtags, completions of others lack them, at most this long."""

POPULAR = f"""
    SELECT tag, (array_agg(item_id ORDER BY item_id DESC))[:{WITNESSES}] FROM (
        SELECT used.tag, max(i.id) AS item_id
        FROM (
            SELECT i.id, i.sender_id FROM items_item i WHERE {public_post("i")} ORDER BY i.id DESC LIMIT {NEWEST}
        ) i
        JOIN accounts_user s ON s.id = i.sender_id AND s.is_active
        CROSS JOIN LATERAL (SELECT t.tag FROM items_itemtag t WHERE t.item_id = i.id OFFSET 0) used
        GROUP BY used.tag, i.sender_id
    ) by_sender
    GROUP BY tag ORDER BY count(*) DESC, max(item_id) DESC LIMIT {REMEMBERED}
"""
SHOWN = f"""
    SELECT used.place
    FROM unnest(%(places)s::int[], %(tags)s::text[], %(items)s::bigint[]) AS used (place, tag, item_id)
    JOIN items_itemtag t ON t.tag = used.tag AND t.item_id = used.item_id
    JOIN items_item i ON i.id = used.item_id JOIN accounts_user s ON s.id = i.sender_id
    WHERE {VISIBLE} GROUP BY used.place
"""


def popular_tags(reader: User | AnonymousUser) -> list[str]:
    """At most `COUNT` hashtags, each on a visible item."""
    return _visible_tags([one for one in _read_cached() if _has_enough_senders(one)][:COUNT], reader)


def active_tags(reader: User) -> list[str]:
    """`popular_tags`, then hashtags that only one sender uses."""
    return _visible_tags(_read_cached()[:COUNT], reader)


def popular_with_prefix(begin: str, reader: User, count: int) -> list[str]:
    """Popular hashtags with this beginning. Empty while others count them, or without the cache: it never counts for
    each letter typed.
    """
    found = cache.get(keys.popular_tags())
    if not _is_tag_list(found):
        found = _count_popular() if cache.add(keys.popular_tags(), [], COUNTING.total_seconds()) else []
    return _visible_tags(
        [one for one in found if one[0].startswith(begin) and _has_enough_senders(one)][:count], reader
    )


def _read_cached() -> list[Any]:
    found = cache.get(keys.popular_tags())
    return found if _is_tag_list(found) else _count_popular()


def _has_enough_senders(counted: Any) -> bool:
    _tag, items = counted
    return len(items) >= SENDERS


def _count_popular() -> list[Any]:
    found = [[tag, items] for tag, items in fetch(POPULAR)]
    cache.set(keys.popular_tags(), found, KEPT.total_seconds())
    return found


def _visible_tags(found: list[Any], reader: User | AnonymousUser) -> list[str]:
    used = [(place, tag, item) for place, (tag, items) in enumerate(found) for item in items]
    if not used:
        return []
    places, tags, items = map(list, zip(*used, strict=True))
    rows = fetch(SHOWN, {"places": places, "tags": tags, "items": items, "reader": reader.pk or 0})
    shown = {row[0] for row in rows}
    return [tag for place, (tag, _) in enumerate(found) if place in shown]


def _is_tag_list(found: Any) -> bool:
    return isinstance(found, list) and len(found) <= REMEMBERED and all(_is_tag_entry(one) for one in found)


def _is_tag_entry(one: Any) -> bool:
    match one:
        case [str(tag), list(items)]:
            return canonical_tag(tag) == tag and len(items) <= WITNESSES and _are_ids(items)
    return False


def _are_ids(items: Sequence[Any]) -> bool:
    return all(type(item) is int and 0 < item <= MAX_ID for item in items)  # type() excludes bool
