"""What recall keeps ready, made anew by periodic tasks: how rare words are, and which items are popular."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from discover.postgres import PUBLIC, decay_rate, log_decay
from feedsite import ids

SAMPLE = 100_000
"""The newest documents, from which the rarity of words is taken."""
COMMON = 0.02
"""Words in a larger share of the documents tell nothing."""

# The lexemes of a sample as ts_stat counts them. It runs its query by itself, so the bounds stand in its text.
RARITY = f"""
    INSERT INTO discover_wordrarity (word, rarity)
    SELECT word, ln(total.documents::float8 / ndoc) FROM (
        SELECT count(*) AS documents FROM (
            SELECT FROM items_itemdocument WHERE item_id < %(below)s ORDER BY item_id DESC LIMIT {SAMPLE}) sample
    ) total, ts_stat(format(
        'SELECT document FROM items_itemdocument WHERE item_id < %%s ORDER BY item_id DESC LIMIT {SAMPLE}', %(below)s))
    WHERE ndoc > 1 AND length(word) > 1 AND ndoc <= greatest({COMMON} * total.documents, 5)
"""  # noqa: S608

RECENT = 5_000
ACTS = 50_000
KEPT = 1_000
KEPT_OF_SENDER = 5

POPULAR = f"""
    WITH newest AS (
        SELECT i.id, i.sender_id FROM items_item i WHERE {PUBLIC.format(item="i")} AND i.id < %(below)s
        ORDER BY i.id DESC LIMIT {RECENT}
    ), acts AS (
        SELECT item_id, 1 AS weight FROM (
            SELECT item_id, created_at FROM items_like ORDER BY id DESC LIMIT {ACTS}) l
        WHERE created_at < %(now)s
        UNION ALL
        SELECT coalesce(a.root_id, a.repost_of_id), 2 FROM (
            SELECT root_id, repost_of_id, status, visibility FROM items_item
            WHERE id < %(below)s ORDER BY id DESC LIMIT {ACTS}) a
        WHERE (root_id IS NOT NULL OR repost_of_id IS NOT NULL) AND status = 'published' AND visibility = 'public'
    ), engaged AS (
        SELECT item_id AS id, sum(weight) AS engagement FROM acts WHERE item_id < %(below)s GROUP BY 1
    ), pool AS (
        SELECT i.id, i.sender_id, ln(2 + coalesce(engagement, 0) + 0.02 * s.follower_count)::float8 AS popularity
        FROM newest FULL JOIN engaged USING (id) JOIN items_item i USING (id) JOIN accounts_user s ON s.id = i.sender_id
        WHERE {PUBLIC.format(item="i")} AND s.is_active
    ), placed AS (
        SELECT id, popularity, ln(popularity) + {log_decay("id", "(SELECT max(id) FROM newest)")} AS score, sender_id
        FROM pool
    ), capped AS (
        SELECT *, row_number() OVER (PARTITION BY sender_id ORDER BY score DESC, id DESC) AS place FROM placed
    )
    INSERT INTO discover_popularitem (item_id, popularity)
    SELECT id, popularity FROM capped WHERE place <= {KEPT_OF_SENDER} ORDER BY score DESC, id DESC LIMIT {KEPT}
"""  # noqa: S608


@transaction.atomic
def refresh_words(*, now: datetime) -> None:
    """Make WordRarity anew from what was said before `now`."""
    with connection.cursor() as cursor:
        _one_at_a_time(cursor)
        cursor.execute("DELETE FROM discover_wordrarity")
        cursor.execute(RARITY, {"below": ids.compose(now, 0)})


@transaction.atomic
def refresh_popular(*, now: datetime) -> None:
    """Make PopularItem anew from what was done before `now`."""
    with connection.cursor() as cursor:
        _one_at_a_time(cursor)
        cursor.execute("DELETE FROM discover_popularitem")
        cursor.execute(
            POPULAR,
            {
                "below": ids.compose(now, 0),
                "now": now,
                "decay_rate": decay_rate(),
                "offset": settings.DISCOVER_OFFSET_DAYS,
            },
        )


def _one_at_a_time(cursor: Any) -> None:
    """Wait for another refresh to end: what it put in must be seen, and taken out."""
    cursor.execute("SELECT pg_advisory_xact_lock(hashtext('feedsite.discover.refresh'))")
