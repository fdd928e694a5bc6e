"""Popular hashtags with their use by day."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.contrib.auth.models import AnonymousUser
from django.core.cache import cache
from django.utils import timezone

from accounts.models import User
from items.tags.popular import popular_tags
from items.visibility import public_post
from storage import keys
from storage.connections import fetch
from storage.ids import compose

DAYS = 7
COUNTED = 300
"""Uses counted per hashtag and day. A curve needs no more."""
KEPT = timedelta(minutes=10)

USES = f"""
    SELECT used.tag, day.place, (
        SELECT count(*) FROM (
            SELECT FROM items_itemtag t JOIN items_item i ON i.id = t.item_id
            WHERE t.tag = used.tag AND t.item_id >= day.first AND t.item_id < day.last AND {public_post("i")}
            LIMIT {COUNTED}
        ) use
    )
    FROM unnest(%(tags)s::text[]) AS used (tag)
    CROSS JOIN unnest(%(firsts)s::bigint[], %(lasts)s::bigint[]) WITH ORDINALITY AS day (first, last, place)
"""


class Trend(msgspec.Struct):
    """A popular hashtag, and its uses by day, oldest first."""

    tag: str
    days: list[int]

    @property
    def points(self) -> str:
        """The points of an SVG line, 60 by 20."""
        most = max(*self.days, 1)
        return " ".join(f"{place * 10},{18 - 16 * uses // most}" for place, uses in enumerate(self.days))


def trends(reader: User | AnonymousUser) -> list[Trend]:
    """The visible popular hashtags, most used first."""
    tags = popular_tags(reader)
    if not tags:
        return []
    kept = cache.get(keys.tag_days())
    if not _are_daily_counts(kept) or not set(tags) <= kept.keys():
        kept = _count_uses(tags, timezone.now())
        cache.set(keys.tag_days(), kept, KEPT.total_seconds())
    return [Trend(tag, kept[tag]) for tag in tags]


def _count_uses(tags: Sequence[str], now: datetime) -> dict[str, list[int]]:
    bounds = [compose(now - timedelta(days=days), 0) for days in range(DAYS, -1, -1)]
    days = {tag: [0] * DAYS for tag in tags}
    params = {"tags": list(tags), "firsts": bounds[:-1], "lasts": bounds[1:]}
    for tag, place, uses in fetch(USES, params):
        days[tag][place - 1] = uses
    return days


def _are_daily_counts(kept: Any) -> bool:
    return isinstance(kept, dict) and all(
        isinstance(days, list) and len(days) == DAYS and all(type(uses) is int and uses >= 0 for uses in days)
        for days in kept.values()
    )
