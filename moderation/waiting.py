"""What authors may know about waiting cases."""

from collections.abc import Sequence
from datetime import timedelta

from moderation.models import Case, CaseState
from storage.connections import fetch

# The median of the latest cases. Fewer than 5 say too little.
USUAL = """
    SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY decided_at - opened_at)
    FROM (SELECT opened_at, decided_at FROM moderation_case ORDER BY id DESC LIMIT 100) latest
    WHERE decided_at IS NOT NULL HAVING count(*) >= 5
"""


def reasons_of(item_ids: Sequence[int]) -> list[tuple[int, list[str]]]:
    """Ids of items with the reasons of their open cases."""
    return list(Case.objects.filter(item__in=item_ids, state=CaseState.OPEN).values_list("item_id", "reasons"))


def usual_wait() -> timedelta | None:
    """The usual duration of a review, if known."""
    rows = fetch(USUAL)
    return rows[0][0] if rows else None
