"""Which items a user has not seen: not played within three months, nor among the last issued."""

from collections.abc import Sequence
from datetime import datetime

import numpy as np

from seen import played
from seen.filters import MonthFilter, id_numbers
from seen.store import FilterKey, month_of, store

MONTHS = 4
"""The running month is not whole: three whole months need four."""


def unseen(user_id: int, item_ids: Sequence[int], *, now: datetime) -> list[int]:
    """Those of `item_ids` that the user has not seen, in order.

    Every play that was acknowledged within three months is known; of what was never played at most `PLAYED_ERROR` is
    left out too. One round trip to Redis and one read of the store; ten thousand ids take some milliseconds. Raises
    PlayedUnavailableError and StoreUnavailableError.

    Redis comes first: a merge writes the filter before it takes plays out of Redis, so that they are found in one of
    the two by whoever looks in this order.
    """
    if not item_ids:
        return []
    recent = played.recent(user_id)
    month = month_of(now)
    filters = store().read([FilterKey(user_id, month - ago) for ago in range(MONTHS)])
    ids = id_numbers(item_ids)
    is_seen = np.zeros(len(ids), dtype=bool)
    if recent.played or recent.issued:
        is_seen |= np.isin(ids, id_numbers([*recent.played, *recent.issued]))
    for data in filters:
        if data is not None:
            left = np.flatnonzero(~is_seen)
            is_seen[left] = MonthFilter.from_bytes(data).known(ids[left])
    kept: list[int] = ids[~is_seen].tolist()
    return kept
