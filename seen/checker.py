from collections.abc import Sequence
from datetime import datetime

import numpy as np

from seen import played
from seen.filter_store import MONTHS, FilterKey, month_of
from seen.filters import Ids, id_numbers, known, parse_stored
from seen.migration import old
from seen.store import store


def unseen(user_id: int, item_ids: Sequence[int], *, now: datetime) -> list[int]:
    """The ids that the user has not seen, in order: not played within three months, nor issued lately.

    Never returns a played item. Omits at most `PLAYED_ERROR_RATE` of the others. One round trip to Redis and one read
    of the store, unless too many plays wait. Raises PlayedUnavailableError and StoreUnavailableError.

    Reads Redis and old plays first, because a merge writes the filter before it removes them.
    """
    if not item_ids:
        return []
    kept: list[int] = unseen_ids(user_id, id_numbers(item_ids), now=now).tolist()
    return kept


def unseen_ids(user_id: int, ids: Ids, *, now: datetime) -> Ids:
    """The ids of an array that the user has not seen, like `unseen`."""
    recent = played.recent_ids(user_id)
    waiting = recent.played if recent.is_whole else played.waiting_among(user_id, ids.tolist())
    month = month_of(now)
    shelved = old.keys_of(user_id)
    found = store().read_briefly([*shelved, *(FilterKey(user_id, month - ago) for ago in range(MONTHS))])
    with played.errors():
        before = old.plays_outside_filters(user_id, found[: len(shelved)])
    filters = found[len(shelved) :]
    is_seen = np.isin(ids, before) if len(before) else np.zeros(len(ids), dtype=bool)
    if waiting or recent.issued:
        is_seen |= np.isin(ids, id_numbers([*waiting, *recent.issued]))
    left = np.flatnonzero(~is_seen)
    is_seen[left] = known(filter(None, (parse_stored(user_id, data) for data in filters)), ids[left])
    return ids[~is_seen]
