"""The search index of items: their words and tags."""

from collections.abc import Iterable
from typing import Any

from django.db import connection

from accounts.levels import policy
from items.models import Item
from items.search.words import document
from items.text import hashtags
from items.visibility import is_listed

INDEX = """
    WITH words AS (
        INSERT INTO items_itemdocument (item_id, document) SELECT %(item)s, %(document)s::tsvector
        WHERE %(document)s <> ''
        ON CONFLICT (item_id) DO UPDATE SET document = EXCLUDED.document
    )
    INSERT INTO items_itemtag (tag, item_id) SELECT unnest(%(tags)s::text[]), %(item)s ON CONFLICT DO NOTHING
    RETURNING tag
"""
FORGET = """
    WITH words AS (DELETE FROM items_itemdocument WHERE item_id = %(item)s AND %(document)s = '')
    DELETE FROM items_itemtag WHERE item_id = %(item)s AND tag <> ALL(%(tags)s::text[])
"""


def search_fields(item: Item) -> dict[str, Any]:
    """The words and tags of an item. Reposts and private mentions have none."""
    if item.repost_of_id or item.is_private:
        return {"document": "", "tags": []}
    words = document(item.title, item.text)
    return {"document": words, "tags": hashtags(item.text) if words else []}


def index(item: Item) -> bool:
    """Update an item's words and tags. True with new tags."""
    params: dict[str, Any] = {"item": item.pk} | search_fields(item)
    with connection.cursor() as cursor:
        cursor.execute(FORGET, params)
        cursor.execute(INDEX, params)
        return cursor.fetchone() is not None


def copy_index(items: Iterable[tuple[int, str, str]]) -> None:
    """Write the words and tags of new items by COPY."""
    tags: list[tuple[str, int]] = []
    with connection.cursor() as cursor:
        with cursor.copy("COPY items_itemdocument (item_id, document) FROM STDIN") as copy:
            for item_id, title, text in items:
                if words := document(title, text):
                    copy.write_row((item_id, words))
                tags += [(tag, item_id) for tag in hashtags(text)]
        with cursor.copy("COPY items_itemtag (tag, item_id) FROM STDIN") as copy:
            for row in tags:
                copy.write_row(row)


def reindex(chunk: int = 20_000) -> int:
    """Write the words and tags of all items again, in a transaction. Hashtag outboxes get no deliveries, so it
    invalidates windows.
    """
    count, last_id = 0, 0
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE items_itemdocument, items_itemtag")
        while True:
            cursor.execute(
                f"""
                SELECT i.id, i.title, coalesce(i.content->>'text', '') FROM items_item i
                WHERE i.id > %s AND i.repost_of_id IS NULL AND {is_listed("i")} ORDER BY i.id LIMIT %s
                """,
                [last_id, chunk],
            )
            rows = cursor.fetchall()
            if not rows:
                policy.renew_generation()
                return count
            copy_index(rows)
            count += len(rows)
            last_id, _title, _text = rows[-1]
