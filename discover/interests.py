"""What a reader likes, as far as the site can tell: what every recall starts from."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from accounts.models import User
from discover.postgres import HEARD, LIKED, NEWEST, SENDERS, WORDS, decay_rate
from feedsite import ids
from feedsite.connections import fetch

TAGS = f"""
    {HEARD}
    SELECT tag, (weight / sum(weight) OVER ())::float8 FROM (
        SELECT t.tag, sum(heard.weight) AS weight FROM heard JOIN items_itemtag t ON t.item_id = heard.item_id
        GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 12
    ) tags
"""  # noqa: S608 (constants)


@dataclass(frozen=True, slots=True)
class Interests:
    """What a reader likes, each with how much: weights of about 0 to 1 within their kind.

    `senders` have the code of why besides. `items` are what people liked who like the same. `origin` is the
    item from which age counts.
    """

    origin: int
    items: list[tuple[int, float]]
    senders: list[tuple[int, float, str]]
    tags: list[tuple[str, float]]
    words: list[tuple[str, float]]
    followed: frozenset[int]


def interests_of(reader: User, *, now: datetime) -> Interests:
    below = ids.compose(now, 0)
    newest = fetch(NEWEST, {"below": below})
    origin = newest[0][0] if newest else below
    params: dict[str, Any] = {
        "reader": reader.pk,
        "now": now,
        "below": below,
        "origin": origin,
        "decay_rate": decay_rate(),
        "offset": settings.DISCOVER_OFFSET_DAYS,
    }
    liked = fetch(LIKED, params)
    most = max((row[1] for row in liked), default=1)
    scored = []
    for sender_id, paths, followed, likewise, back, followers in fetch(SENDERS, params):
        score = (followed + likewise) / math.sqrt(10 + followers) + 0.3 * back
        reason = f"follows:{paths}" if paths else "follower" if back else "similar"
        scored.append((score, sender_id, reason))
    scored.sort(reverse=True)
    del scored[80:]
    terms = fetch(WORDS, params)
    heaviest = sum(weight for _, weight in terms[:5])
    followees = fetch(
        "SELECT followee_id FROM relations_follow WHERE follower_id = %(reader)s AND created_at < %(now)s", params
    )
    return Interests(
        origin=origin,
        items=[(item_id, float(likeness / most)) for item_id, likeness in liked],
        senders=[(sender_id, score / scored[0][0], reason) for score, sender_id, reason in scored],
        tags=[(tag, weight) for tag, weight in fetch(TAGS, params)],
        words=[(word, weight / heaviest) for word, weight in terms],
        followed=frozenset(row[0] for row in followees),
    )
