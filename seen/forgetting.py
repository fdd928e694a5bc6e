"""Deletes a deleted account's plays and issued items.

A running merge or a late report may write again, so a merge checks after its writes whether its users are deleted.
"""

from collections.abc import Sequence
from datetime import datetime

from accounts.models import User
from seen import played
from seen.filter_store import KEPT_MONTHS, FilterKey, month_of
from seen.migration import old
from seen.store import store


def deleted_among(user_ids: Sequence[int]) -> list[int]:
    """Those of the users whose accounts are deleted."""
    return list(User.objects.filter(pk__in=user_ids, deleted_at__isnull=False).values_list("pk", flat=True))


def forget(user_ids: Sequence[int], *, now: datetime) -> int:
    """Delete everything about these users, except shared filters of a week.

    Returns how many entries there were, so 0 if nothing is left. Raises PlayedUnavailableError and
    StoreUnavailableError.
    """
    with played.errors():
        taken = played.forget(user_ids) + old.forget(user_ids)
    this_month = month_of(now)
    months = range(this_month - KEPT_MONTHS, this_month + 2)
    keys = [FilterKey(user_id, month) for user_id in user_ids for month in months]
    kept = [key for key, data in zip(keys, store().read(keys), strict=True) if data is not None]
    if kept:
        store().update(kept, lambda key, data: None)
    return taken + len(kept)
