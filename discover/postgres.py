"""Recall from PostgreSQL: relevance times the Gaussian decay of age (discover.decay), from several sources.

| source | what it finds | worth at most |
|---|---|---|
| liked | items liked by people with similar likes | 1 |
| graph | newest posts of senders near the reader, such as those followed by people with similar follows | about 1 |
| tags | items with hashtags of what the reader wrote, liked, answered and follows | 0.5 |
| words | items with words of these that are rare elsewhere | 0.25 |
| popular | what everyone likes lately (discover.refreshing) | 0.05 |
| fresh | the newest | 0.01 |

An item's weights are added up. Its reason is the largest one. Followed senders come last. Every source is bounded, and
ignores what came after `now`.

See docs/decisions.md: Recall adds up small bounded queries.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from django.db import connections

from accounts.models import User
from discover import decay
from discover.decay import log_decay
from discover.interests import ALSO_LIKED, NEAR, REASON, TAGS, WORDS, known_followers_cte, params_of
from discover.recall import RecalledItem
from items.search.words import phrase, runs
from items.visibility import public_post
from relations.rules import READER, followees
from storage.connections import fetch, id_array
from storage.replica import read_from_replica

WEIGHTS = {"liked": 1.0, "graph": 1.0, "tags": 0.5, "words": 0.25, "popular": 0.05}
"""The weights of the sources."""
BASE = 0.01
"""The weight of every new item."""
NEXT = 0.95
"""The factor from one post of a sender to the next older one."""

CAP_SHARE = 0.04
"""The share of candidates for one sender, if more than `LEAST_CAP`."""
LEAST_CAP = 20
"""Candidates that one sender may always have."""
LAST = 1e9
"""Subtracted from followed senders' scores: more than age can."""
DOCUMENTS = 10_000
"""Words are searched until together they are in about this many documents."""
FORGOTTEN = 10
"""Documents with less than 1 / e^10 of the newest's score, by age, are not searched for words."""

Found = list[tuple[int, float, str]]
"""Items, their relevance (0 to about 1), and the reason."""


class PostgresRecall:
    """Finds candidates with PostgreSQL. This is the default recall."""

    def candidates(self, reader: User, *, count: int, now: datetime) -> list[RecalledItem]:
        """The best candidates, read from a replica if possible."""
        return read_from_replica(reader.pk, lambda on: self._candidates(reader, count, now, on))

    def _candidates(self, reader: User, count: int, now: datetime, on: str) -> list[RecalledItem]:
        params = params_of(reader, now, on)
        found = [
            (item_id, WEIGHTS[name] * relevance, reason)
            for name, source in SOURCES.items()
            for item_id, relevance, reason in source(params, on)
        ]
        params |= {
            "items": id_array(item_id for item_id, _, _ in found),
            "relevances": f"{{{','.join(str(relevance) for _, relevance, _ in found)}}}",
            "reasons": [reason for _, _, reason in found],
        }
        return [RecalledItem(*row) for row in fetch(_rank_sql(count), params, on=on)]


@cache
def _rank_sql(count: int) -> str:
    """SQL that adds up the found items' weights and ranks them.

    Limits are literals, because the planner takes an unknown LIMIT for a tenth of the table.
    """
    return f"""
        WITH found AS (
            SELECT * FROM unnest(%(items)s::bigint[], %(relevances)s::float8[], %(reasons)s::text[])
                AS given (item_id, relevance, reason)
            UNION ALL (SELECT item_id, {WEIGHTS["popular"]} * popularity, 'popular' FROM discover_popularitem
                WHERE item_id < %(below)s ORDER BY ln(popularity) + {log_decay("item_id")} DESC, item_id DESC LIMIT 300)
            UNION ALL (SELECT i.id, {BASE}, 'fresh' FROM items_item i
                WHERE {public_post("i")} AND i.id < %(below)s ORDER BY i.id DESC LIMIT {count})
        ), pool AS (
            SELECT item_id, sum(relevance) AS relevance, (array_agg(reason ORDER BY relevance DESC))[1] AS reason
            FROM found WHERE relevance > 0 GROUP BY 1
        ), scored AS (
            SELECT item_id, i.sender_id, reason, ln(relevance) + {log_decay("item_id")} AS score,
                i.sender_id IN ({followees(READER)} AND created_at < %(now)s) AS is_followed
            FROM pool JOIN items_item i ON i.id = item_id JOIN accounts_user s ON s.id = i.sender_id
            WHERE {public_post("i")} AND i.id < %(below)s AND s.is_active AND i.sender_id <> %(reader)s
        ), placed AS (
            SELECT *, row_number() OVER (PARTITION BY sender_id ORDER BY score DESC, item_id DESC) AS place FROM scored
        )
        SELECT item_id, sender_id, CASE WHEN is_followed THEN score - {LAST} ELSE score END AS score,
            CASE WHEN is_followed THEN 'followed' ELSE reason END
        FROM placed WHERE place <= {max(LEAST_CAP, int(count * CAP_SHARE))}
        ORDER BY score DESC, item_id DESC LIMIT {count}
    """


# --- Likes -----------------------------------------------------------------------------------------------
def _liked(params: Mapping[str, Any], on: str) -> Found:
    return fetch(ALSO_LIKED, params, on=on)


# --- The graph of follows --------------------------------------------------------------------------------
# The best among the newest posts of senders near the reader.
NEAR_POSTS = f"""
    {NEAR}, posts AS MATERIALIZED (
        SELECT p.id, s.sender_id, s.is_follower, s.is_known, s.weight * {NEXT} ^ (p.place - 1) AS weight FROM senders s
        CROSS JOIN LATERAL (
            SELECT id, row_number() OVER (ORDER BY id DESC) AS place FROM (
                SELECT i.id FROM items_item i
                WHERE i.sender_id = s.sender_id AND {public_post("i")} AND i.id < %(below)s
                ORDER BY i.id DESC LIMIT 8) newest
        ) p ORDER BY ln(s.weight) + {log_decay("p.id")} DESC, p.id DESC LIMIT 400
    ), {known_followers_cte("SELECT sender_id FROM posts GROUP BY 1 ORDER BY max(weight) DESC, 1 LIMIT 40")}
    SELECT id, weight::float8, {REASON} FROM posts LEFT JOIN told USING (sender_id)
"""


def _graph(params: Mapping[str, Any], on: str) -> Found:
    return fetch(NEAR_POSTS, params, on=on)


# --- Hashtags and words ----------------------------------------------------------------------------------
TAGGED = f"""
    WITH tags AS ({TAGS})
    SELECT tagged.item_id, weight, 'tag:' || tag FROM tags CROSS JOIN LATERAL (
        SELECT t.item_id FROM items_itemtag t WHERE t.tag = tags.tag AND t.item_id < %(below)s
        ORDER BY t.item_id DESC LIMIT 40) tagged
"""

# Planned for these words: PostgreSQL knows how common they are, and scans recent documents or uses the index.
# MATERIALIZED: each document is unpacked once.
SAID = f"""
    WITH term AS (
        SELECT * FROM unnest(%(words)s::text[], %(weights)s::float8[]) AS t (word, weight)
    ), said AS MATERIALIZED (
        SELECT item_id, document FROM items_itemdocument
        WHERE document @@ %(any)s::tsquery AND item_id < %(below)s AND item_id >= %(above)s
    ), newest AS MATERIALIZED (
        SELECT item_id, tsvector_to_array(document) AS words FROM said ORDER BY item_id DESC LIMIT 1000
    ), matched AS (
        SELECT item_id, sum(weight) AS weight, (array_agg(word ORDER BY weight DESC))[1] AS word
        FROM newest JOIN term ON term.word = ANY(newest.words) GROUP BY 1
    )
    SELECT item_id, m.weight, 'words:' || word FROM matched m JOIN items_item i ON i.id = item_id
    WHERE {public_post("i")} ORDER BY ln(m.weight) + {log_decay("item_id")} DESC, item_id DESC LIMIT 200
"""


def _tags(params: Mapping[str, Any], on: str) -> Found:
    return fetch(TAGGED, params, on=on)


def _words(params: Mapping[str, Any], on: str) -> Found:
    weights: dict[str, float] = {}
    documents = 0.0
    for word, weight, held_by in fetch(WORDS, params, on=on):
        if documents + held_by <= DOCUMENTS:
            documents += held_by
            weights[word] = weight
    if not weights:
        return []
    most = sum(sorted(weights.values())[-4:])
    asked: dict[str, Any] = {
        "words": list(weights),
        "weights": [weight / most for weight in weights.values()],
        "any": " | ".join(phrase(list(runs(word))) for word in weights),
        "above": decay.oldest_relevant_id(params["origin"], FORGOTTEN),
    }
    with connections[on].cursor() as cursor:
        cursor.execute(SAID, {**params, **asked})
        return list(cursor.fetchall())


SOURCES: dict[str, Callable[[Mapping[str, Any], str], Found]] = {
    "liked": _liked,
    "graph": _graph,
    "tags": _tags,
    "words": _words,
}
