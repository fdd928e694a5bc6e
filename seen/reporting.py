from collections.abc import Mapping, Sequence
from datetime import datetime

from seen import played
from seen.played import EARLY_SECONDS, Play, PlayedUnavailableError
from web import rates

SCOPE = "played_ids"


def report(plays: Mapping[int, Sequence[int]], *, now: datetime) -> dict[int, float]:
    """Take plays that happen now. Returns the seconds to wait for users whose plays were not taken.

    Refused plays cost nothing of the rate. Raises PlayedUnavailableError. No play is acknowledged then.
    """
    costs = {str(user_id): len(ids) for user_id, ids in plays.items()}
    waits = {int(who): wait for who, wait in rates.hit_each(SCOPE, costs).items()}
    admitted = [user_id for user_id in plays if user_id not in waits]
    try:
        full = played.add_plays(
            [Play(user_id, item_id, now) for user_id in admitted for item_id in plays[user_id]], now=now
        )
    except PlayedUnavailableError:
        rates.refund_each(SCOPE, {str(user_id): costs[str(user_id)] for user_id in admitted})
        raise
    rates.refund_each(SCOPE, {str(user_id): costs[str(user_id)] for user_id in full})
    return waits | dict.fromkeys(full, float(EARLY_SECONDS))
