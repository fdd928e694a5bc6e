"""Removal of a deleted account's plays and issued items from `seen`.

A merge that was under way may write a filter after it was removed, and a service may report a play late. So a merge
asks, after it has written, who of its users is deleted, and removes them again: whichever of the two comes last removes
what the other left.
"""

from collections.abc import Sequence
from datetime import datetime

from seen import played
from seen.filter_store import KEPT_MONTHS, FilterKey, month_of
from seen.migration import old
from seen.migration.old import HISTORY
from seen.store import store
from storage.connections import fetch, id_array

DELETED = "SELECT id FROM accounts_user WHERE id = ANY(%(ids)s::bigint[]) AND deleted_at IS NOT NULL"


def deleted(user_ids: Sequence[int]) -> list[int]:
    """The users among them whose accounts are deleted."""
    return [row[0] for row in fetch(DELETED, {"ids": id_array(user_ids)})]


def forget(user_ids: Sequence[int], *, now: datetime) -> int:
    """Remove everything that is kept of these users; how much it was, 0 when nothing is left.

    Raises PlayedUnavailableError and StoreUnavailableError. Impressions cannot be taken out of the filters
    that users share (discover.impressions), and are gone within a week.
    """
    with played.errors():
        taken = played.forget(user_ids) + old.forget(user_ids)
    this_month = month_of(now)
    months = (HISTORY, *range(this_month - KEPT_MONTHS, this_month + 2))
    keys = [FilterKey(user_id, month) for user_id in user_ids for month in months]
    kept = [key for key, data in zip(keys, store().read(keys), strict=True) if data is not None]
    if kept:
        store().update(kept, lambda key, data: None)
    return taken + len(kept)
