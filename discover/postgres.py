"""Recall from PostgreSQL: relevance times the Gaussian decay of age (discover.decay), from several sources.

| source | what it finds | worth at most |
|---|---|---|
| liked | items liked by people with similar likes | 1 |
| graph | newest posts of senders near the reader, such as those followed by people with similar follows | about 1 |
| tags | items with hashtags of what the reader wrote, liked, answered and follows | 0.5 |
| words | items with words of these that are rare elsewhere, if likes and follows find little | 0.25 |
| popular | what everyone likes lately (discover.refreshing) | 0.05 |
| fresh | the newest | 0.01 |

An item's weights are added up. Its reason is the largest one. Followed senders come last. Every source is bounded, and
ignores items that came after `now`.

See docs/decisions.md: Recall adds up small bounded queries.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
ENOUGH = 100
"""Words are searched if likes and follows find fewer items. They find no more senders whom a reader will follow."""
FORGOTTEN = 10
"""Documents with less than 1 / e^10 of the newest's score, by age, are not searched for words."""


class PostgresRecall:
    """Finds candidates with PostgreSQL. This is the default recall."""

    def candidates(self, reader: User, *, count: int, now: datetime) -> list[RecalledItem]:
        """The best candidates, read from a replica if possible."""
        return read_from_replica(reader.pk, lambda on: self._candidates(reader, count, now, on))

    def _candidates(self, reader: User, count: int, now: datetime, on: str) -> list[RecalledItem]:
        params = params_of(reader, now, on)
        found = [
            *((*row, None) for row in _weighted("liked", fetch(ALSO_LIKED, params, on=on))),
            *_weighted("graph", fetch(NEAR_POSTS, params, on=on)),
        ]
        if len(found) < ENOUGH:
            found += ((*row, None) for row in _weighted("words", _words(params, on)))
        params |= {
            "items": id_array(row[0] for row in found),
            "relevances": f"{{{','.join(str(row[1]) for row in found)}}}",
            "reasons": "\n".join(row[2] for row in found),
            "senders": f"{{{','.join(str(row[3] or 'NULL') for row in found)}}}",
        }
        return fetch(_rank_sql(count), params, into=RecalledItem._make, on=on)


@cache
def _rank_sql(count: int) -> str:
    """SQL that adds up the found items' weights and ranks them. It looks up senders that are not known yet.

    Limits are literals, because the planner takes an unknown LIMIT for a tenth of the table.
    """
    return f"""
        WITH tags AS MATERIALIZED ({TAGS}), found AS (
            SELECT * FROM unnest(%(items)s::bigint[], %(relevances)s::float8[],
                string_to_array(%(reasons)s, chr(10)), %(senders)s::bigint[]
            ) AS given (item_id, relevance, reason, sender_id)
            UNION ALL SELECT tagged.item_id, {WEIGHTS["tags"]} * weight, 'tag:' || tag, NULL
                FROM tags CROSS JOIN LATERAL (
                    SELECT t.item_id FROM items_itemtag t WHERE t.tag = tags.tag AND t.item_id < %(below)s
                    ORDER BY t.item_id DESC LIMIT 10) tagged
            UNION ALL (SELECT item_id, {WEIGHTS["popular"]} * popularity, 'popular', NULL FROM discover_popularitem
                WHERE item_id < %(below)s ORDER BY ln(popularity) + {log_decay("item_id")} DESC, item_id DESC LIMIT 300)
            UNION ALL (SELECT i.id, {BASE}, 'fresh', i.sender_id FROM items_item i
                WHERE {public_post("i")} AND i.id < %(below)s ORDER BY i.id DESC LIMIT {count})
        ), pool AS MATERIALIZED (
            SELECT item_id, sum(relevance) AS relevance, (array_agg(reason ORDER BY relevance DESC))[1] AS reason,
                max(sender_id) AS sender_id
            FROM found WHERE relevance > 0 GROUP BY 1
        ), sent AS MATERIALIZED (
            SELECT item_id, relevance, reason, sender_id FROM pool WHERE sender_id IS NOT NULL
            UNION ALL SELECT item_id, relevance, reason, i.sender_id FROM pool JOIN items_item i ON i.id = item_id
            WHERE pool.sender_id IS NULL AND {public_post("i")} AND i.id < %(below)s
        ), scored AS (
            SELECT item_id, sender_id, reason, ln(relevance) + {log_decay("item_id")} AS score,
                sender_id IN ({followees(READER)}) AS is_followed
            FROM sent WHERE sender_id <> %(reader)s
        ), placed AS (
            SELECT *, row_number() OVER (PARTITION BY sender_id ORDER BY score DESC, item_id DESC) AS place FROM scored
        )
        SELECT item_id, sender_id, CASE WHEN is_followed THEN score - {LAST} ELSE score END AS score,
            CASE WHEN is_followed THEN 'followed' ELSE reason END
        FROM placed WHERE place <= {max(LEAST_CAP, int(count * CAP_SHARE))}
        ORDER BY score DESC, item_id DESC LIMIT {count}
    """


def _weighted(source: str, found: Iterable[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Rows of an item, its relevance and more, with the relevance times the weight of its source."""
    return ((item_id, WEIGHTS[source] * relevance, *more) for item_id, relevance, *more in found)


# --- The graph of follows --------------------------------------------------------------------------------
# The best among the newest posts of senders near the reader.
FRIENDS_OF_POSTS = "SELECT sender_id FROM posts WHERE is_friend GROUP BY 1 ORDER BY max(weight) DESC, 1 LIMIT 20"
NEAR_POSTS = f"""
    {NEAR}, posts AS MATERIALIZED (
        SELECT p.id, s.sender_id, s.is_follower, s.is_known, s.is_friend,
            s.weight * {NEXT}::float8 ^ (p.place - 1) AS weight
        FROM senders s CROSS JOIN LATERAL (
            SELECT id, row_number() OVER (ORDER BY id DESC) AS place FROM (
                SELECT i.id FROM items_item i
                WHERE i.sender_id = s.sender_id AND {public_post("i")} AND i.id < %(below)s
                ORDER BY i.id DESC LIMIT 3) newest
        ) p ORDER BY ln(s.weight) + {log_decay("p.id")} DESC, p.id DESC LIMIT 200
    ), {known_followers_cte(FRIENDS_OF_POSTS)}
    SELECT id, weight::float8, {REASON}, sender_id FROM posts LEFT JOIN told USING (sender_id)
"""


# --- Words ------------------------------------------------------------------------------------------------
# Planned for these words: PostgreSQL knows how common they are, and scans recent documents or uses the index.
# MATERIALIZED: each document is unpacked once.
SAID = f"""
    WITH term AS (
        SELECT * FROM unnest(%(words)s::text[], %(weights)s::float8[]) AS t (word, weight)
    ), said AS MATERIALIZED (
        SELECT item_id, document FROM items_itemdocument
        WHERE document @@ %(any)s::tsquery AND item_id < %(below)s AND item_id >= %(above)s
    ), newest AS MATERIALIZED (
        SELECT item_id, tsvector_to_array(document) AS words FROM said ORDER BY item_id DESC LIMIT 300
    ), matched AS (
        SELECT item_id, sum(weight) AS weight, (array_agg(word ORDER BY weight DESC))[1] AS word
        FROM newest JOIN term ON term.word = ANY(newest.words) GROUP BY 1
    )
    SELECT item_id, m.weight, 'words:' || word FROM matched m JOIN items_item i ON i.id = item_id
    WHERE {public_post("i")} ORDER BY ln(m.weight) + {log_decay("item_id")} DESC, item_id DESC LIMIT 60
"""


def _words(params: Mapping[str, Any], on: str) -> list[tuple[Any, ...]]:
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
