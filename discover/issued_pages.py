"""Adds issued pages to the week's impressions, after the answer, without losing any.

See docs/decisions.md: Shown pages are rows of PostgreSQL.
"""

from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import transaction

from discover.impressions import Impression, record
from discover.models import IssuedPage
from seen import played
from seen.played import PlayedUnavailableError
from seen.usage import RECORDED
from storage.connections import FeedsUnavailableError, fetch

BATCH = 500
KEPT = timedelta(days=1)
"""How long an issued page is kept for repeated calls."""
# Starts where the last batch ended, because deleted rows stay in the index until VACUUM, as long as a backup runs.
FORGET = """
    DELETE FROM discover_issuedpage WHERE id IN (
        SELECT id FROM discover_issuedpage WHERE issued_at >= %(since)s AND issued_at < %(before)s AND is_recorded
        ORDER BY issued_at LIMIT %(limit)s)
    RETURNING issued_at
"""


def record_issued_pages() -> int:
    """Add issued pages to their day's Bloom filter.

    Idempotent: a page is marked after it was added. Without Redis, pages wait. Pages of another call are left to the
    next.
    """
    recorded, last_id = 0, 0
    while True:
        with transaction.atomic():
            pages = list(
                IssuedPage.objects.select_for_update(skip_locked=True)
                .filter(is_recorded=False, pk__gt=last_id)
                .order_by("pk")
                .only("user_id", "issued_at", "item_ids")[:BATCH]
            )
            if not pages:
                return recorded
            try:
                record(Impression(page.user_id, page.issued_at.date(), page.item_ids) for page in pages)
                if settings.DISCOVER_SEEN in RECORDED:
                    issued = ((page.user_id, page.item_ids) for page in pages if page.item_ids)
                    played.record_issued(issued, is_request=False)
            except (FeedsUnavailableError, PlayedUnavailableError):
                return recorded
            IssuedPage.objects.filter(pk__in=[page.pk for page in pages]).update(is_recorded=True)
            recorded, last_id = recorded + len(pages), pages[-1].pk


def forget_issued_pages(*, now: datetime) -> int:
    """Delete recorded pages older than a day.

    See docs/decisions.md: Nothing is partitioned.
    """
    forgotten, since = 0, datetime.min.replace(tzinfo=UTC)
    while True:
        gone = fetch(FORGET, {"since": since, "before": now - KEPT, "limit": BATCH})
        forgotten += len(gone)
        if len(gone) < BATCH:
            return forgotten
        since = max(at for (at,) in gone)
