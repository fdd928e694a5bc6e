"""Tables for recall that periodic tasks rewrite: the rarity of words, and popular items.

See docs/decisions.md: Recall adds up small bounded queries.
"""

from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from discover import decay
from discover.decay import log_decay
from items.visibility import is_public, public_post
from relations.rules import followers
from storage import ids

SAMPLE = 100_000
"""Newest documents from which the rarity of words is computed."""
COMMON = 0.005
"""Words in a larger share of the documents say nothing."""
FEW = 5
"""On a small site, words in up to this many documents count all the same."""
SMALL = 20
"""Words in up to this many documents count, if they are in less than a quarter of all."""

# ts_stat counts the lexemes of a sample. It runs its query by itself, so the limits are literals. Single characters and
# numbers, mostly those of issues, say nothing.
RARITY = f"""
    INSERT INTO discover_wordrarity (word, rarity)
    SELECT word, ln(total.documents::float8 / ndoc) FROM (
        SELECT count(*) AS documents FROM (
            SELECT FROM items_itemdocument WHERE item_id < %(below)s ORDER BY item_id DESC LIMIT {SAMPLE}) sample
    ) total, ts_stat(format(
        'SELECT document FROM items_itemdocument WHERE item_id < %%s ORDER BY item_id DESC LIMIT {SAMPLE}', %(below)s))
    WHERE ndoc > 1 AND length(word) > 1 AND word !~ '^[0-9]+$' AND ndoc <= greatest(
        {COMMON} * total.documents, least({SMALL}, total.documents / 4), {FEW})
"""

RECENT = 5_000
"""Newest posts, which may be popular without a like because of their senders."""
ACTS = 50_000
"""Newest likes, and newest items (replies, reposts, quotes), that make posts popular."""
REPLY = 2
"""The weight of a reply, repost or quote. A like counts 1."""
FOLLOWER = 0.02
"""The weight of a follower of the sender. At most MOST_FOLLOWERS count."""
MOST_FOLLOWERS = 200
PAST = timedelta(hours=1)
"""For an older `now`, a simulation, the follows of that time are counted. On a site with 50 million items they are
spread over the disk, so otherwise the users' current counts are used.
"""
KEPT = 500
KEPT_OF_SENDER = 5

POPULAR = f"""
    WITH newest AS MATERIALIZED (
        SELECT i.id, i.sender_id FROM items_item i WHERE {public_post("i")} AND i.id < %(below)s
        ORDER BY i.id DESC LIMIT {RECENT}
    ), acts AS (
        SELECT item_id, 1 AS weight FROM (
            SELECT item_id, created_at FROM items_like ORDER BY id DESC LIMIT {ACTS}) liked
        WHERE created_at < %(now)s
        UNION ALL
        SELECT coalesce(said.root_id, said.repost_of_id, said.quote_of_id), {REPLY} FROM (
            SELECT root_id, repost_of_id, quote_of_id, status, visibility FROM items_item
            WHERE id < %(below)s ORDER BY id DESC LIMIT {ACTS}) said
        WHERE coalesce(said.root_id, said.repost_of_id, said.quote_of_id) IS NOT NULL AND {is_public("said")}
    ), engaged AS (
        SELECT item_id AS id, sum(weight) AS engagement FROM acts WHERE item_id < %(below)s GROUP BY 1
    ), pool AS (
        SELECT i.id, i.sender_id, s.follower_count, coalesce(engagement, 0) AS engagement
        FROM newest FULL JOIN engaged USING (id) JOIN items_item i USING (id) JOIN accounts_user s ON s.id = i.sender_id
        WHERE {public_post("i")} AND s.is_active
    ), followed AS MATERIALIZED (
        SELECT sender_id, CASE WHEN %(is_past)s THEN (
            SELECT count(*) FROM (
                {followers("sender_id", "")} AND created_at < %(now)s
                LIMIT {MOST_FOLLOWERS}) f
        ) ELSE least(follower_count, {MOST_FOLLOWERS}) END AS followers
        FROM (SELECT DISTINCT sender_id, follower_count FROM pool) senders
    ), scored AS (
        SELECT id, sender_id, popularity, ln(popularity) + {log_decay("id", "(SELECT max(id) FROM newest)")} AS score
        FROM (
            SELECT id, sender_id, ln(2 + engagement + {FOLLOWER} * followers)::float8 AS popularity
            FROM pool JOIN followed USING (sender_id)
        ) popular
    ), placed AS (
        SELECT *, row_number() OVER (PARTITION BY sender_id ORDER BY score DESC, id DESC) AS place FROM scored
    )
    INSERT INTO discover_popularitem (item_id, popularity)
    SELECT id, popularity / max(popularity) OVER () FROM placed WHERE place <= {KEPT_OF_SENDER}
    ORDER BY score DESC, id DESC LIMIT {KEPT}
"""


@transaction.atomic
def refresh_words(*, now: datetime) -> None:
    """Rewrite WordRarity from documents before `now`."""
    with connection.cursor() as cursor:
        _one_at_a_time(cursor)
        cursor.execute("DELETE FROM discover_wordrarity")
        cursor.execute(RARITY, {"below": ids.compose(now, 0)})


@transaction.atomic
def refresh_popular(*, now: datetime) -> None:
    """Rewrite PopularItem from acts before `now`."""
    is_past = now < timezone.now() - PAST
    with connection.cursor() as cursor:
        _one_at_a_time(cursor)
        cursor.execute("DELETE FROM discover_popularitem")
        cursor.execute(POPULAR, {"below": ids.compose(now, 0), "now": now, "is_past": is_past, **decay.params()})


def _one_at_a_time(cursor: Any) -> None:
    """Wait until no other refresh runs: this one must delete the other's rows."""
    cursor.execute("SELECT pg_advisory_xact_lock(hashtext('feedsite.discover.refresh'))")
