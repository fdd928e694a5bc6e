"""Recall from PostgreSQL: relevance from several sources, each a bounded look-up, times the Gaussian decay of age.

The sources know of what was done before `now` only, so that recall can be run at a past date. Each gives items with a
relevance of about 0 to 1 and the reason; what an item gets from all of them is added up, and the one that gave most
is what the reader is told. The decay is the `gauss` function of the search engines, whose origin is now, or the newest
public post on a site that has been quiet for longer.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection

from accounts.models import User
from discover.recall import Candidate
from feedsite import ids
from feedsite.connections import fetch
from items.words import phrase, runs

DAY_MILLISECONDS = 86_400_000

PUBLIC = "{item}.status = 'published' AND {item}.visibility = 'public' AND {item}.reply_to_id IS NULL \
    AND {item}.repost_of_id IS NULL"
"""What is recommended at all: the condition of the index item_public."""

BASE = 0.02
"""The relevance of what no source knows: new items, in their order."""
WEIGHTS = {"liked": 1.0, "graph": 1.0, "tags": 0.5, "words": 0.5, "popular": 0.1}

CAP_SHARE = 0.04
"""Of the candidates, at most so many are of one sender ..."""
LEAST_CAP = 20
"""... but this many always."""


def decay_rate() -> float:
    """1 / (2 sigma^2): what the square of the days beyond the offset is multiplied with in the exponent."""
    return -math.log(settings.DISCOVER_DECAY) / float(settings.DISCOVER_SCALE_DAYS) ** 2


def log_decay(item: str, origin: str = "%(origin)s::bigint") -> str:
    """The logarithm of the Gaussian decay of an item of this id, as SQL.

    A logarithm, because exp(-x^2) is 0 in any floating-point number after some years, and zeros have no order.
    """
    days = f"(({origin} >> {ids.SEQUENCE_BITS}) - ({item} >> {ids.SEQUENCE_BITS})) / {DAY_MILLISECONDS}.0::float8"
    return f"(-%(decay_rate)s::float8 * greatest({days} - %(offset)s::float8, 0) ^ 2)"


Found = Iterable[tuple[int, float, str]]
"""Items, how relevant they are, why."""

NEWEST = f"""
    SELECT i.id FROM items_item i WHERE {PUBLIC.format(item="i")} AND i.id < %(below)s ORDER BY i.id DESC LIMIT 1
"""  # noqa: S608 (constants)

RANK = f"""
    WITH given AS (
        SELECT * FROM unnest(%(items)s::bigint[], %(relevances)s::float8[], %(reasons)s::text[])
            AS g (item_id, relevance, reason)
    ), fresh AS (
        SELECT i.id AS item_id FROM items_item i WHERE {PUBLIC.format(item="i")} AND i.id < %(below)s
        ORDER BY i.id DESC LIMIT %(fresh)s
    ), scored AS (
        SELECT item_id, i.sender_id, coalesce(given.reason, 'fresh') AS reason,
            ln(coalesce(given.relevance, 0) + {BASE}) + {log_decay("item_id")} AS score,
            EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = %(reader)s AND f.followee_id = i.sender_id
                AND f.created_at < %(now)s) AS is_followed
        FROM given FULL JOIN fresh USING (item_id) JOIN items_item i ON i.id = item_id
        JOIN accounts_user s ON s.id = i.sender_id
        WHERE {PUBLIC.format(item="i")} AND i.id < %(below)s AND s.is_active AND i.sender_id <> %(reader)s
    ), placed AS (
        SELECT *, row_number() OVER (PARTITION BY sender_id ORDER BY score DESC, item_id DESC) AS place FROM scored
    )
    SELECT item_id, sender_id, score, CASE WHEN is_followed THEN 'followed' ELSE reason END
    FROM placed WHERE place <= %(cap)s ORDER BY is_followed, score DESC, item_id DESC LIMIT %(count)s
"""  # noqa: S608 (constants)

LIKED = f"""
    WITH mine AS (
        SELECT item_id FROM items_like WHERE user_id = %(reader)s AND created_at < %(now)s
        ORDER BY item_id DESC LIMIT 40
    ), alike AS (
        SELECT l.user_id, sum(1 / ln(2 + l.likes)) AS likeness FROM mine CROSS JOIN LATERAL (
            SELECT user_id, count(*) OVER () AS likes FROM (
                SELECT user_id FROM items_like WHERE item_id = mine.item_id AND created_at < %(now)s
                ORDER BY id DESC LIMIT 50) newest
        ) l WHERE l.user_id <> %(reader)s GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 60
    ), liked AS (
        SELECT l.item_id, sum(likeness) AS likeness FROM alike CROSS JOIN LATERAL (
            SELECT item_id FROM items_like WHERE user_id = alike.user_id AND created_at < %(now)s
            ORDER BY item_id DESC LIMIT 30) l
        WHERE l.item_id NOT IN (SELECT item_id FROM mine) GROUP BY 1
    )
    SELECT item_id, likeness FROM liked ORDER BY ln(likeness) + {log_decay("item_id")} DESC, item_id LIMIT 300
"""  # noqa: S608

SENDERS = """
    WITH mine AS (
        SELECT followee_id FROM relations_follow WHERE follower_id = %(reader)s AND created_at < %(now)s
        ORDER BY id DESC LIMIT 100
    ), followed AS (
        SELECT t.followee_id AS sender_id, count(*) AS paths, sum(1 / sqrt(t.follows)) AS likeness
        FROM mine CROSS JOIN LATERAL (
            SELECT followee_id, count(*) OVER () AS follows FROM (
                SELECT followee_id FROM relations_follow
                WHERE follower_id = mine.followee_id AND created_at < %(now)s ORDER BY id DESC LIMIT 40) newest
        ) t GROUP BY 1
    ), alike AS (
        SELECT t.follower_id, sum(1 / ln(2 + t.followers)) AS likeness FROM (SELECT * FROM mine LIMIT 50) mine
        CROSS JOIN LATERAL (
            SELECT follower_id, count(*) OVER () AS followers FROM (
                SELECT follower_id FROM relations_follow
                WHERE followee_id = mine.followee_id AND created_at < %(now)s ORDER BY id DESC LIMIT 30) newest
        ) t WHERE t.follower_id <> %(reader)s GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 50
    ), likewise AS (
        SELECT t.followee_id AS sender_id, sum(alike.likeness / sqrt(t.follows)) AS likeness
        FROM alike CROSS JOIN LATERAL (
            SELECT followee_id, count(*) OVER () AS follows FROM (
                SELECT followee_id FROM relations_follow
                WHERE follower_id = alike.follower_id AND created_at < %(now)s ORDER BY id DESC LIMIT 40) newest
        ) t GROUP BY 1
    ), back AS (
        SELECT follower_id AS sender_id, 1.0 AS likeness FROM relations_follow
        WHERE followee_id = %(reader)s AND created_at < %(now)s ORDER BY id DESC LIMIT 100
    )
    SELECT sender_id, coalesce(f.paths, 0), coalesce(f.likeness, 0)::float8, coalesce(l.likeness, 0)::float8,
        coalesce(b.likeness, 0)::float8, u.follower_count
    FROM followed f FULL JOIN likewise l USING (sender_id) FULL JOIN back b USING (sender_id)
    JOIN accounts_user u ON u.id = sender_id
    WHERE u.is_active AND sender_id <> %(reader)s AND NOT EXISTS (SELECT FROM relations_follow f
        WHERE f.follower_id = %(reader)s AND f.followee_id = sender_id AND f.created_at < %(now)s)
"""

POSTS = f"""
    SELECT p.id, s.sender_id, s.weight * 0.95 ^ (p.place - 1)
    FROM unnest(%(senders)s::bigint[], %(weights)s::float8[]) AS s (sender_id, weight) CROSS JOIN LATERAL (
        SELECT i.id, row_number() OVER (ORDER BY i.id DESC) AS place FROM items_item i
        WHERE i.sender_id = s.sender_id AND {PUBLIC.format(item="i")} AND i.id < %(below)s ORDER BY i.id DESC LIMIT 10
    ) p
"""  # noqa: S608

HEARD = f"""
    WITH own AS (
        SELECT id, reply_to_id, root_id FROM items_item
        WHERE sender_id = %(reader)s AND status = 'published' AND id < %(below)s ORDER BY id DESC LIMIT 40
    ), liked AS (
        SELECT item_id FROM items_like WHERE user_id = %(reader)s AND created_at < %(now)s
        ORDER BY item_id DESC LIMIT 60
    ), followed AS (
        SELECT p.id FROM (
            SELECT followee_id FROM relations_follow WHERE follower_id = %(reader)s AND created_at < %(now)s
            ORDER BY id DESC LIMIT 60
        ) f CROSS JOIN LATERAL (
            SELECT i.id FROM items_item i
            WHERE i.sender_id = f.followee_id AND {PUBLIC.format(item="i")} AND i.id < %(below)s
            ORDER BY i.id DESC LIMIT 3) p
    ), heard AS (
        SELECT item_id, sum(weight) AS weight FROM (
            SELECT id AS item_id, 1.0 AS weight FROM own UNION ALL
            SELECT reply_to_id, 2.0 FROM own WHERE reply_to_id IS NOT NULL UNION ALL
            SELECT item_id, 2.0 FROM liked UNION ALL
            SELECT id, 0.3 FROM followed
        ) all_heard GROUP BY 1
    )
"""  # noqa: S608

WORDS = f"""
    {HEARD}
    SELECT w.word, (heard.weight * w.rarity)::float8 FROM (
        SELECT lexeme, sum(heard.weight * (1 + ln(cardinality(positions)))) AS weight
        FROM heard JOIN items_itemdocument d ON d.item_id = heard.item_id CROSS JOIN LATERAL unnest(d.document)
        WHERE length(lexeme) > 1 AND lexeme !~ '^[0-9]+$' GROUP BY 1
    ) heard JOIN discover_wordrarity w ON w.word = heard.lexeme
    ORDER BY 2 DESC, 1 LIMIT 24
"""  # noqa: S608

TAGS = f"""
    {HEARD}, tags AS (
        SELECT t.tag, sum(heard.weight) AS weight FROM heard JOIN items_itemtag t ON t.item_id = heard.item_id
        GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 12
    )
    SELECT tagged.item_id, tag, (weight / sum(weight) OVER ())::float8 FROM tags CROSS JOIN LATERAL (
        SELECT t.item_id FROM items_itemtag t WHERE t.tag = tags.tag AND t.item_id < %(below)s
        ORDER BY t.item_id DESC LIMIT 40) tagged
"""  # noqa: S608

SAID = f"""
    WITH term AS (SELECT * FROM unnest(%(words)s::text[], %(weights)s::float8[]) AS t (word, weight)),
    walked AS MATERIALIZED (
        SELECT item_id, document FROM (
            SELECT item_id, document FROM items_itemdocument WHERE item_id < %(below)s
            ORDER BY item_id DESC LIMIT 8000) newest
        WHERE document @@ %(any)s::tsquery
    ), matched AS (
        SELECT item_id, sum(weight) AS weight, (array_agg(word ORDER BY weight DESC))[1] AS word
        FROM walked CROSS JOIN LATERAL unnest(tsvector_to_array(document)) AS lexeme JOIN term ON word = lexeme
        GROUP BY 1
    )
    SELECT item_id, weight, word FROM matched ORDER BY ln(weight) + {log_decay("item_id")} DESC, item_id DESC LIMIT 300
"""  # noqa: S608

POPULAR = "SELECT item_id, popularity FROM discover_popularitem WHERE item_id < %(below)s"


class PostgresRecall:
    """The default recall."""

    def candidates(self, reader: User, *, count: int, now: datetime) -> list[Candidate]:
        below = ids.compose(now, 0)
        newest = fetch(NEWEST, {"below": below})
        if not newest:
            return []
        params: dict[str, Any] = {
            "reader": reader.pk,
            "now": now,
            "below": below,
            "origin": newest[0][0],
            "decay_rate": decay_rate(),
            "offset": settings.DISCOVER_OFFSET_DAYS,
        }
        relevances: dict[int, float] = {}
        best: dict[int, tuple[float, str]] = {}
        for name, source in SOURCES.items():
            for item_id, relevance, reason in source(params):
                weighted = relevance * WEIGHTS[name]
                relevances[item_id] = relevances.get(item_id, 0.0) + weighted
                if item_id not in best or weighted > best[item_id][0]:
                    best[item_id] = (weighted, reason)
        rows = fetch(
            RANK,
            params
            | {
                "items": list(relevances),
                "relevances": list(relevances.values()),
                "reasons": [best[item_id][1] for item_id in relevances],
                "fresh": count * 2,
                "cap": max(LEAST_CAP, int(count * CAP_SHARE)),
                "count": count,
            },
        )
        return [Candidate(*row) for row in rows]


def _liked(params: Mapping[str, Any]) -> Found:
    rows = fetch(LIKED, params)
    most = max((row[1] for row in rows), default=1)
    return [(item_id, float(likeness / most), "liked") for item_id, likeness in rows]


def _graph(params: Mapping[str, Any]) -> Found:
    scored = []
    for sender_id, paths, followed, likewise, back, followers in fetch(SENDERS, params):
        score = (followed + likewise) / math.sqrt(10 + followers) + 0.3 * back
        reason = f"follows:{paths}" if paths else "follower" if back else "similar"
        scored.append((score, sender_id, reason))
    scored.sort(reverse=True)
    del scored[80:]
    if not scored:
        return []
    most = scored[0][0]
    reasons = {sender_id: reason for _, sender_id, reason in scored}
    rows = fetch(
        POSTS,
        {
            "senders": [sender_id for _, sender_id, _ in scored],
            "weights": [score / most for score, _, _ in scored],
            "below": params["below"],
        },
    )
    return [(item_id, weight, reasons[sender_id]) for item_id, sender_id, weight in rows]


def _tags(params: Mapping[str, Any]) -> Found:
    return [(item_id, weight, f"tag:{tag}") for item_id, tag, weight in fetch(TAGS, params)]


def _words(params: Mapping[str, Any]) -> Found:
    terms = fetch(WORDS, params)
    if not terms:
        return []
    most = sum(weight for _, weight in terms[:5])
    words = [word for word, _ in terms]
    with connection.cursor() as cursor:
        cursor.execute(
            SAID,
            {
                **params,
                "words": words,
                "weights": [weight / most for _, weight in terms],
                "any": " | ".join(phrase(list(runs(word))) for word in words),
            },
        )
        return [(item_id, weight, f"words:{word}") for item_id, weight, word in cursor.fetchall()]


def _popular(params: Mapping[str, Any]) -> Found:
    rows = fetch(POPULAR, params)
    most = max((row[1] for row in rows), default=1)
    return [(item_id, popularity / most, "popular") for item_id, popularity in rows]


SOURCES: dict[str, Callable[[Mapping[str, Any]], Found]] = {
    "liked": _liked,
    "graph": _graph,
    "tags": _tags,
    "words": _words,
    "popular": _popular,
}
