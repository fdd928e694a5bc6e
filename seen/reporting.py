"""Plays that callers report, of one user or of many at once: counted against each user's rate, then taken together."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from seen import played
from seen.played import EARLY_SECONDS, Play, PlayedUnavailableError
from web import rates

SCOPE = "played_ids"


def report(plays: Mapping[int, Sequence[int]], *, now: datetime) -> dict[int, float]:
    """Take plays of now, ids by user. Returns the seconds to wait of those whose plays were not taken.

    A user is refused whose rate of ids is used up, or of whom too many plays wait to be merged; what is refused costs
    nothing of the rate, and holds up no other user. At most four round trips, however many users. Raises
    PlayedUnavailableError, and then none of it is acknowledged.
    """
    costs = {str(user_id): len(ids) for user_id, ids in plays.items()}
    waits = {int(who): wait for who, wait in rates.hit_each(SCOPE, costs).items()}
    admitted = [user_id for user_id in plays if user_id not in waits]
    try:
        full = played.take([Play(user_id, item_id, now) for user_id in admitted for item_id in plays[user_id]], now=now)
    except PlayedUnavailableError:
        rates.give_back_each(SCOPE, {str(user_id): costs[str(user_id)] for user_id in admitted})
        raise
    rates.give_back_each(SCOPE, {str(user_id): costs[str(user_id)] for user_id in full})
    return waits | dict.fromkeys(full, float(EARLY_SECONDS))
