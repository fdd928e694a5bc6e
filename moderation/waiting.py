"""What authors may know of the cases of their items that wait: why, and how long reviews take."""

from collections.abc import Sequence
from datetime import timedelta

from storage.connections import fetch, id_array

REASONS = """
    SELECT item_id, reasons FROM moderation_case WHERE item_id = ANY(%(items)s::bigint[]) AND state = 'open'
"""
# Half of the latest cases that are decided took longer. Few say nothing.
USUAL = """
    SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY decided_at - opened_at)
    FROM (SELECT opened_at, decided_at FROM moderation_case ORDER BY id DESC LIMIT 100) latest
    WHERE decided_at IS NOT NULL HAVING count(*) >= 5
"""


def reasons_of(item_ids: Sequence[int]) -> list[tuple[int, list[str]]]:
    """The items that have an open case, each with its reasons."""
    return [(item_id, reasons) for item_id, reasons in fetch(REASONS, {"items": id_array(item_ids)})]


def usual() -> timedelta | None:
    """How long a review takes lately; None where too few were done."""
    rows = fetch(USUAL)
    return rows[0][0] if rows else None
