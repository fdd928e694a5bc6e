"""What authors may know about waiting cases, and how many wait for moderators."""

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


COUNTED = 100
"""More are shown as `99+`."""
CHECKED = 300
"""Newest open cases that the count checks, in case their subjects are gone."""


def waiting_for(reader: str) -> str:
    """The number of cases and appeals that wait for a reader, but not about them. NULL: they may not see cases.

    It restates case_admin.in_queue and appeals.waiting_appeals, because it is part of every page of staff.
    """
    return f"""
    SELECT CASE WHEN EXISTS (
        SELECT FROM accounts_user me WHERE me.id = {reader} AND me.is_superuser
    ) OR EXISTS (
        SELECT FROM auth_permission p JOIN django_content_type t ON t.id = p.content_type_id
        WHERE t.app_label = 'moderation' AND p.codename IN ('view_case', 'decide_case') AND (
            EXISTS (SELECT FROM accounts_user_user_permissions o WHERE o.permission_id = p.id AND o.user_id = {reader})
            OR EXISTS (
                SELECT FROM auth_group_permissions g JOIN accounts_user_groups m ON m.group_id = g.group_id
                WHERE g.permission_id = p.id AND m.user_id = {reader}))
    ) THEN (
        SELECT count(*) FROM (
            SELECT FROM (
                SELECT * FROM moderation_case WHERE state = 'open' ORDER BY id DESC LIMIT {CHECKED}
            ) c
            LEFT JOIN items_item i ON i.id = c.item_id
            JOIN accounts_user u ON u.id = coalesce(i.sender_id, c.host_id)
            WHERE u.is_active AND u.id <> {reader} AND (c.item_id IS NULL OR i.status <> 'deleted')
            LIMIT {COUNTED}
        ) cases
    ) + (
        SELECT count(*) FROM (
            SELECT FROM (
                SELECT * FROM moderation_appeal WHERE state = 'waiting' ORDER BY id DESC LIMIT {CHECKED}
            ) a
            JOIN moderation_decision d ON d.id = a.decision_id JOIN accounts_user u ON u.id = d.user_id
            WHERE u.deleted_at IS NULL AND u.id <> {reader} LIMIT {COUNTED}
        ) appeals
    ) END
    """
