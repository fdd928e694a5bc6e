"""How the worth of an item falls with its age, for recall, as SQL.

The decay is the `gauss` function of the search engines (Elasticsearch and OpenSearch, function score):
exp(-max(0, age - offset)^2 / (2 sigma^2)), sigma^2 = -scale^2 / (2 ln decay). So an item is worth `decay` of a new one
when it is `scale` days older than `offset`. Its origin is the newest post: on a site where something is posted all the
time that is now, and where nothing has been for a year everything still stands as it stood then.

See docs/decisions.md: Recall adds up small bounded queries.
"""

import math
from typing import Any

from django.conf import settings

from storage.ids import SEQUENCE_BITS

DAY_MILLISECONDS = 86_400_000


def rate() -> float:
    """1 / (2 sigma^2), what the square of the days is multiplied with in the exponent."""
    return -math.log(settings.DISCOVER_DECAY) / float(settings.DISCOVER_SCALE_DAYS) ** 2


def params() -> dict[str, Any]:
    """The parameters of `log_decay` but `origin`, the id of the newest post."""
    return {"decay_rate": rate(), "decay_offset": settings.DISCOVER_OFFSET_DAYS}


def log_decay(item: str, origin: str = "%(origin)s::bigint") -> str:
    """The logarithm of the decay of the item of this id, 0 or less.

    A logarithm, because exp(-x^2) of some years is 0 in any floating-point number, and zeros have no order.
    """
    days = f"(({origin} >> {SEQUENCE_BITS}) - ({item} >> {SEQUENCE_BITS})) / {DAY_MILLISECONDS}.0::float8"
    return f"(-%(decay_rate)s::float8 * greatest({days} - %(decay_offset)s::float8, 0) ^ 2)"


def older(item_id: int, exponent: float) -> int:
    """The id below which items are worth less than 1 / e^exponent of `item_id`, by their age alone."""
    days = float(settings.DISCOVER_OFFSET_DAYS) + math.sqrt(exponent / rate())
    return max(item_id - (math.ceil(days * DAY_MILLISECONDS) << SEQUENCE_BITS), 0)


def recency(created_at: str, days: float) -> str:
    """SQL for the weight of a follow or like of that time: 1 if it is of now, 1 / e after so many days."""
    return f"exp(-least(extract(epoch FROM %(now)s - {created_at})::float8 / {days * 86_400}, 100))"
