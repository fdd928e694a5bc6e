"""The interests of a reader: every recall starts from them.

Every statement reads the newest of each kind, up to a bound, and only items before `now`.

See docs/decisions.md: Recall adds up small bounded queries.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from accounts.models import User
from discover import decay
from discover.decay import log_decay, recency
from items.visibility import public_post
from relations.rules import READER, followees, followers, follows
from storage import ids
from storage.connections import fetch
from storage.replica import read_from_replica

FRIEND = 0.05
"""In the graph, the weight of a sender followed by most of the reader's followees. The most similar sender has 1."""
FOLLOWER = 0.3
"""The weight of a new follower of the reader."""
KNOWN = 0.5
"""The weight of the sender whose posts the reader liked and answered most."""

NEWEST = f"SELECT i.id FROM items_item i WHERE {public_post('i')} AND i.id < %(below)s ORDER BY i.id DESC LIMIT 1"

# Likes are read newest item first, as the unique index of likes allows. A shared taste for rarely liked items says
# more, so weights are divided by popularity.
ALSO_LIKED = f"""
    WITH mine AS MATERIALIZED (
        SELECT item_id FROM items_like WHERE user_id = %(reader)s ORDER BY item_id DESC LIMIT 25
    ), alike AS MATERIALIZED (
        SELECT l.user_id, sum(1 / ln(2 + l.likes)) AS weight FROM mine CROSS JOIN LATERAL (
            SELECT user_id, count(*) OVER () AS likes FROM (
                SELECT user_id FROM items_like WHERE item_id = mine.item_id ORDER BY id DESC LIMIT 20) newest
        ) l WHERE l.user_id <> %(reader)s GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 30
    ), also AS MATERIALIZED (
        SELECT l.item_id, sum(weight / sqrt(l.likes)) AS weight FROM alike CROSS JOIN LATERAL (
            SELECT item_id, count(*) OVER () AS likes FROM (
                SELECT item_id FROM items_like WHERE user_id = alike.user_id ORDER BY item_id DESC LIMIT 20) newest
        ) l WHERE l.item_id NOT IN (SELECT item_id FROM mine) AND l.item_id < %(below)s
        GROUP BY 1 ORDER BY ln(sum(weight / sqrt(l.likes))) + {log_decay("l.item_id")} DESC, 1 LIMIT 60
    ), normal AS (
        SELECT item_id, weight / sqrt(likes) AS weight FROM also CROSS JOIN LATERAL (
            SELECT count(*) AS likes FROM (
                SELECT FROM items_like WHERE item_id = also.item_id ORDER BY id DESC LIMIT 15) newest) l
    )
    SELECT item_id, (weight / max(weight) OVER ())::float8, 'liked' FROM normal
"""


# People who follow the same users as the reader lead to their other followees. The newest 30 follows say most. Their
# decay was chosen on real follows (docs/decisions.md).
NEAR = f"""
    WITH mine AS MATERIALIZED (
        SELECT followee_id, {recency("created_at", 365)} AS weight FROM (
            {followees(READER, "followee_id, created_at")} ORDER BY id DESC LIMIT 30) newest
    ), alike AS MATERIALIZED (
        SELECT f.follower_id, sum(mine.weight * f.weight / ln(2 + f.followers)) AS weight
        FROM mine CROSS JOIN LATERAL (
            SELECT follower_id, {recency("created_at", 365)} AS weight, count(*) OVER () AS followers FROM (
                {followers("mine.followee_id", "follower_id, created_at")} ORDER BY id DESC LIMIT 20) newest
        ) f WHERE f.follower_id <> %(reader)s GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 80
    ), likewise AS (
        SELECT f.followee_id AS sender_id, sum(alike.weight * f.weight / sqrt(f.follows)) AS weight
        FROM alike CROSS JOIN LATERAL (
            SELECT followee_id, {recency("created_at", 180)} AS weight, count(*) OVER () AS follows FROM (
                {followees("alike.follower_id", "followee_id, created_at")} ORDER BY id DESC LIMIT 40) newest
        ) f GROUP BY 1
    ), friends AS (
        SELECT f.followee_id AS sender_id, sum(mine.weight * f.weight / sqrt(f.follows)) AS weight
        FROM (SELECT * FROM mine LIMIT 15) mine CROSS JOIN LATERAL (
            SELECT followee_id, {recency("created_at", 180)} AS weight, count(*) OVER () AS follows FROM (
                {followees("mine.followee_id", "followee_id, created_at")} ORDER BY id DESC LIMIT 20) newest
        ) f GROUP BY 1
    ), followers AS (
        SELECT follower_id AS sender_id, {recency("created_at", 365)} AS weight FROM (
            {followers(READER, "follower_id, created_at")} ORDER BY id DESC LIMIT 50) newest
    ), met AS (
        SELECT item_id FROM (
            SELECT item_id FROM items_like WHERE user_id = %(reader)s ORDER BY item_id DESC LIMIT 40) liked
        UNION ALL
        SELECT reply_to_id FROM (
            SELECT reply_to_id FROM items_item WHERE sender_id = %(reader)s AND id < %(below)s
            ORDER BY id DESC LIMIT 30) own
        WHERE reply_to_id IS NOT NULL
    ), known AS (
        SELECT i.sender_id, count(*) AS weight FROM met JOIN items_item i ON i.id = met.item_id GROUP BY 1
    ), senders AS MATERIALIZED (
        SELECT sender_id, sum(weight) AS weight, bool_or(is_follower) AS is_follower, bool_or(is_known) AS is_known,
            bool_or(is_friend) AS is_friend
        FROM (
            SELECT sender_id, weight / max(weight) OVER () AS weight, false AS is_follower, false AS is_known,
                false AS is_friend FROM likewise
            UNION ALL SELECT sender_id, {FRIEND} * weight / max(weight) OVER (), false, false, true FROM friends
            UNION ALL SELECT sender_id, {FOLLOWER} * weight, true, false, false FROM followers
            UNION ALL SELECT sender_id, {KNOWN}::float8 * weight / max(weight) OVER (), false, true, false FROM known
            OFFSET 0  -- or the followees are read once for each of the four
        ) near WHERE sender_id <> %(reader)s AND sender_id NOT IN ({followees(READER)})
        GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 150
    )
"""


def known_followers_cte(senders: str) -> str:
    """SQL of a CTE that counts, for each of `senders` (SQL), the reader's followees who follow them."""
    return f"""
    told AS MATERIALIZED (
        SELECT s.sender_id, (
            SELECT count(*) FROM mine WHERE {follows("mine.followee_id", "s.sender_id")}
        ) AS friends FROM ({senders}) s
    )
    """


REASON = """CASE WHEN is_known THEN 'sender' WHEN friends > 0 THEN 'follows:' || friends
    WHEN is_follower THEN 'follower' ELSE 'similar' END"""

# Items that show a reader's interests: written, answered and liked ones, and with less weight their followees' posts.
HEARD = f"""
    WITH own AS MATERIALIZED (
        SELECT id, reply_to_id FROM items_item
        WHERE sender_id = %(reader)s AND status = 'published' AND id < %(below)s ORDER BY id DESC LIMIT 30
    ), all_heard AS (
        SELECT id AS item_id, 1.0 AS weight FROM own
        UNION ALL SELECT reply_to_id, 2.0 FROM own WHERE reply_to_id IS NOT NULL
        UNION ALL SELECT item_id, 2.0 FROM (
            SELECT item_id FROM items_like WHERE user_id = %(reader)s ORDER BY item_id DESC LIMIT 40) liked
        UNION ALL SELECT p.id, 0.3 FROM (
            {followees(READER)} ORDER BY id DESC LIMIT 20
        ) f CROSS JOIN LATERAL (
            SELECT i.id FROM items_item i WHERE i.sender_id = f.followee_id AND {public_post("i")} AND i.id < %(below)s
            ORDER BY i.id DESC LIMIT 2) p
    ), heard AS MATERIALIZED (
        SELECT h.item_id, sum(h.weight)::float8 AS weight FROM all_heard h JOIN items_item i ON i.id = h.item_id
        WHERE i.status = 'published' GROUP BY 1
    )
"""

TAGS = f"""
    {HEARD}
    SELECT tag, weight / max(weight) OVER () AS weight FROM (
        SELECT t.tag, sum(heard.weight) AS weight FROM heard JOIN items_itemtag t ON t.item_id = heard.item_id
        GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 12
    ) tags
"""

# With the approximate number of documents with the word. Common words have no rarity row.
WORDS = f"""
    {HEARD}
    SELECT w.word, heard.weight * w.rarity,
        exp(-w.rarity) * (SELECT reltuples FROM pg_class WHERE oid = 'items_itemdocument'::regclass)
    FROM (
        SELECT lexeme, sum(heard.weight * (1 + ln(cardinality(positions)))) AS weight
        FROM heard JOIN items_itemdocument d ON d.item_id = heard.item_id CROSS JOIN LATERAL unnest(d.document)
        GROUP BY 1
    ) heard JOIN discover_wordrarity w ON w.word = heard.lexeme
    ORDER BY 2 DESC, 1 LIMIT 16
"""


NEAR_SENDERS = f"""
    {NEAR}, nearest AS MATERIALIZED (SELECT * FROM senders LIMIT 80),
    {known_followers_cte("SELECT sender_id FROM nearest WHERE is_friend")}
    SELECT sender_id, weight / max(weight) OVER (), {REASON} FROM nearest LEFT JOIN told USING (sender_id)
    ORDER BY 2 DESC, 1
"""


@dataclass(frozen=True, slots=True)
class Interests:
    """What a reader is interested in, with weights of about 0 to 1 within each kind.

    `senders` also have a reason's code. `items` were liked by people who like the same. Age counts from the item
    `origin`.
    """

    origin: int
    items: list[tuple[int, float]]
    senders: list[tuple[int, float, str]]
    tags: list[tuple[str, float]]
    words: list[tuple[str, float]]
    followed: frozenset[int]


def interests_of(reader: User, *, now: datetime) -> Interests:
    """The reader's interests, read from a replica if possible."""
    return read_from_replica(reader.pk, lambda on: _interests_of(reader, now, on))


def _interests_of(reader: User, now: datetime, on: str) -> Interests:
    params = params_of(reader, now, on)
    terms = fetch(WORDS, params, on=on)
    heaviest = sum(weight for _, weight, _ in terms[:4])
    followed = fetch(followees(READER), params, on=on)
    return Interests(
        origin=params["origin"],
        items=[(item_id, weight) for item_id, weight, _ in fetch(ALSO_LIKED, params, on=on)],
        senders=[(sender_id, weight, reason) for sender_id, weight, reason in fetch(NEAR_SENDERS, params, on=on)],
        tags=[(tag, weight) for tag, weight in fetch(TAGS, params, on=on)],
        words=[(word, weight / heaviest) for word, weight, _ in terms],
        followed=frozenset(followee_id for (followee_id,) in followed),
    )


def params_of(reader: User, now: datetime, on: str) -> dict[str, Any]:
    """The parameters of the statements. `origin` is the newest public post, or now."""
    below = ids.compose(now, 0)
    newest = fetch(NEWEST, {"below": below}, on=on)
    origin = newest[0][0] if newest else below
    return {"reader": reader.pk, "now": now, "below": below, "origin": origin, **decay.params()}
