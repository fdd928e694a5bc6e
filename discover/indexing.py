"""Keeps OpenSearch up to date: all items once, then changes.

PostgreSQL has the queue (`ItemChange`), and the position of the first load (`SearchIndex`). A periodic task works both
off, so nothing is lost while OpenSearch or the broker is down.

The lock on the SearchIndex row orders writers. A later writer's documents have a higher version
(`version_type=external`), so that a late request overwrites nothing.

See docs/decisions.md: OpenSearch only proposes.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec
from django.conf import settings
from django.db import connection, transaction

from discover.models import SearchIndex
from discover.opensearch import MAPPINGS, time_text
from discover.opensearch_server import OpenSearchError, server
from items.visibility import public_post
from runtime import metrics
from storage import ids
from storage.breaker import Breaker
from storage.connections import fetch, id_array

logger = logging.getLogger(__name__)

PART = 1_000
"""Items of one turn."""
BODY_BYTES = 8_000_000
SLICE = timedelta(seconds=5)
"""How long one run of the periodic task works."""

pause = Breaker(30.0)
"""After a failure, so that a hanging OpenSearch does not block workers."""

QUEUE = "INSERT INTO discover_itemchange (item_id) SELECT unnest(%(items)s::bigint[])"
QUEUE_PUBLIC = f"""
    INSERT INTO discover_itemchange (item_id) SELECT id FROM items_item i
    WHERE id = ANY(%(items)s::bigint[]) AND {public_post("i")} ORDER BY id
"""
CHANGES = f"SELECT id, item_id FROM discover_itemchange ORDER BY id LIMIT {PART}"
FORGET = "DELETE FROM discover_itemchange WHERE id = ANY(%(rows)s::bigint[]) RETURNING id"
NEXT = f"""
    SELECT i.id FROM items_item i WHERE {public_post("i")} AND i.id < %(position)s
    ORDER BY i.id DESC LIMIT {PART}
"""
# NULL sender: the item must not be found.
DOCUMENTS = f"""
    SELECT asked.id, i.sender_id, ARRAY(SELECT tag FROM items_itemtag t WHERE t.item_id = i.id ORDER BY tag),
        ARRAY(SELECT lexeme FROM items_itemdocument d, unnest(tsvector_to_array(d.document)) AS lexeme
            WHERE d.item_id = i.id AND length(lexeme) > 1 AND lexeme !~ '^[0-9]+$'),
        greatest(coalesce(c.likes + 2 * (c.replies + c.reposts + c.quotes), 0), 0)
    FROM unnest(%(items)s::bigint[]) AS asked (id)
    LEFT JOIN items_item i ON i.id = asked.id AND {public_post("i")}
    LEFT JOIN items_itemcounts c ON c.item_id = i.id
"""


# --- Items to write --------------------------------------------------------------------------------------
def enqueue_changes(item_ids: Iterable[int], *, only_public: bool = False) -> None:
    """Queue changed items for OpenSearch, in the transaction that changes them."""
    if settings.OPENSEARCH_URL:
        with connection.cursor() as cursor:
            cursor.execute(QUEUE_PUBLIC if only_public else QUEUE, {"items": id_array(item_ids)})


def restart_load() -> None:
    """Load all items again, after items were written without the site's actions."""
    if settings.OPENSEARCH_URL:
        SearchIndex.objects.filter(name=server().name).update(position=ids.NO_BOUND)


# --- Writing ---------------------------------------------------------------------------------------------
def create(*, anew: bool = False) -> None:
    """Create the index, or replace it. Raises OpenSearchError."""
    there = server()
    if anew:
        SearchIndex.objects.filter(name=there.name).update(position=ids.NO_BOUND)  # pages ask PostgreSQL from now on
        there.delete_index()
    try:
        there.create_index(MAPPINGS)
    except OpenSearchError as error:
        if error.kind != "resource_already_exists_exception":
            raise
        SearchIndex.objects.get_or_create(name=there.name, defaults={"position": ids.NO_BOUND})
    else:
        SearchIndex.objects.update_or_create(name=there.name, defaults={"position": ids.NO_BOUND})


def index_slice() -> None:
    """Create the index, write changes and load more, for at most `SLICE`. Failures start a pause."""
    if not settings.OPENSEARCH_URL or pause.is_open:
        return
    until = time.monotonic() + SLICE.total_seconds()
    try:
        if not SearchIndex.objects.filter(name=server().name).exists():
            create()
        while (write_changes() or load_batch()) and time.monotonic() < until:
            pass
    except OpenSearchError as error:
        metrics.opensearch_failures.labels("index").inc()
        logger.warning("OpenSearch did not get changed items. They are sent again: %s", error)
        if error.kind == "index_not_found_exception":  # the index was deleted by hand
            SearchIndex.objects.filter(name=server().name).delete()
        else:
            pause.trip()


def write_changes() -> int:
    """Write queued changes. Returns how many. 0 also if another writer is active. Raises OpenSearchError."""
    with transaction.atomic():
        index = _lock_index(skip=True)
        rows = fetch(CHANGES) if index else []
        if index is None or not rows:
            return 0
        _send_documents(index, sorted({item_id for _, item_id in rows}))
        fetch(FORGET, {"rows": id_array(row_id for row_id, _ in rows)})
        return len(rows)


def load_batch(*, wait: bool = False) -> int:
    """Load the newest items not yet loaded, and return how many.

    Returns 0 at the end, or without `wait` beside another writer. Raises OpenSearchError.
    """
    with transaction.atomic():
        index = _lock_index(skip=not wait)
        if index is None or not index.position:
            return 0
        item_ids = [row[0] for row in fetch(NEXT, {"position": index.position})]
        if item_ids:
            _send_documents(index, item_ids)
        # Items published below this position from now on are queued.
        index.position = item_ids[-1] if len(item_ids) == PART else 0
        index.save(update_fields=["position"])
        return len(item_ids)


def count_left() -> int:
    """Number of items still to load."""
    index = SearchIndex.objects.get(name=server().name)
    count = f"SELECT count(*) FROM items_item i WHERE {public_post('i')} AND i.id < %(position)s"
    return int(fetch(count, {"position": index.position})[0][0])


def _lock_index(*, skip: bool) -> SearchIndex | None:
    """The locked row of the index. Rows read now are at least as new as earlier writes."""
    return SearchIndex.objects.select_for_update(skip_locked=skip).filter(name=server().name).first()


def _send_documents(index: SearchIndex, item_ids: Sequence[int]) -> None:
    """Send the items' documents to OpenSearch. Raises OpenSearchError, also if it took only some of them."""
    # By the clock, because a database restored from a backup would begin with old versions.
    index.version = max(index.version + 1, time.time_ns() // 1000)
    index.save(update_fields=["version"])
    rows = fetch(DOCUMENTS, {"items": id_array(item_ids)})
    for lines in _bodies(_bulk_lines(index.version, *row) for row in rows):
        _check_bulk_answer(server().write(lines))


def _bulk_lines(
    version: int, item_id: int, sender_id: int | None, tags: list[str], words: list[str], popularity: int
) -> bytes:
    """The lines of a bulk request for one item.

    A hidden item becomes an empty document: OpenSearch forgets a deletion's version after a minute (index.gc_deletes).
    """
    document: dict[str, Any] = {}
    if sender_id is not None:
        document = {
            "item": item_id,
            "sender": str(sender_id),
            "created_at": time_text(ids.moment(item_id)),
            "tags": tags,
            "words": words,
            "popularity": popularity,
        }
    return _line({"index": {"_id": str(item_id), "version": version, "version_type": "external"}}) + _line(document)


def _line(value: dict[str, Any]) -> bytes:
    return msgspec.json.encode(value) + b"\n"


def _bodies(actions: Iterable[bytes]) -> Iterator[bytes]:
    body = bytearray()
    for action in actions:
        if body and len(body) + len(action) > BODY_BYTES:
            yield bytes(body)
            body.clear()
        body += action
    if body:
        yield bytes(body)


class _BulkCause(msgspec.Struct):
    type: str


class _BulkResult(msgspec.Struct):
    status: int
    id: str | None = msgspec.field(default=None, name="_id")
    error: _BulkCause | None = None


class _BulkAnswer(msgspec.Struct):
    errors: bool
    items: list[dict[str, _BulkResult]]


def _check_bulk_answer(answer: Mapping[str, Any]) -> None:
    """Raise OpenSearchError if an answer to a bulk request names something to retry.

    A document refused for its content is only logged.
    """
    try:
        bulk = msgspec.convert(answer, _BulkAnswer)
    except msgspec.MsgspecError as error:
        raise OpenSearchError(f"its answer to a bulk request is none: {error}") from error
    if not bulk.errors:
        return
    for done in (done for item in bulk.items for done in item.values() if done.error):
        kind = done.error.type if done.error else ""
        if done.status == 409:  # the index has a newer version
            continue
        if done.status != 400:
            raise OpenSearchError(f"it did not take item {done.id}: {done.status} {kind}", done.status, kind)
        logger.error("OpenSearch refuses item %s: %s", done.id, kind)
