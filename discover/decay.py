"""How an item's score falls with its age, for recall, as SQL.

The `gauss` function of Elasticsearch and OpenSearch: exp(-max(0, age - offset)^2 / (2 sigma^2)), sigma^2 = -scale^2 /
(2 ln decay). So `scale` days after `offset`, an item has `decay` of its first score. Age counts from the newest post,
so nothing decays on a site without new posts.

See docs/decisions.md: Recall adds up small bounded queries.
"""

import math
from typing import Any

from django.conf import settings

from storage.ids import SEQUENCE_BITS

DAY_MILLISECONDS = 86_400_000


def rate() -> float:
    """The factor of the squared days in the exponent: 1 / (2 sigma^2)."""
    return -math.log(settings.DISCOVER_DECAY) / float(settings.DISCOVER_SCALE_DAYS) ** 2


def params() -> dict[str, Any]:
    """The parameters of `log_decay`, without `origin`."""
    return {"decay_rate": rate(), "decay_offset": settings.DISCOVER_OFFSET_DAYS}


def log_decay(item: str, origin: str = "%(origin)s::bigint") -> str:
    """SQL of the logarithm of an item's decay. After some years the decay itself is 0 as a floating-point number."""
    days = f"(({origin} >> {SEQUENCE_BITS}) - ({item} >> {SEQUENCE_BITS})) / {DAY_MILLISECONDS}.0::float8"
    return f"(-%(decay_rate)s::float8 * greatest({days} - %(decay_offset)s::float8, 0) ^ 2)"


def oldest_relevant_id(item_id: int, exponent: float) -> int:
    """An id. Items below it have less than 1 / e^exponent of the score of `item_id`, by age alone."""
    days = float(settings.DISCOVER_OFFSET_DAYS) + math.sqrt(exponent / rate())
    return max(item_id - (math.ceil(days * DAY_MILLISECONDS) << SEQUENCE_BITS), 0)


def recency(created_at: str, days: float) -> str:
    """SQL of the weight of a follow or like, from 1 now to 1 / e after `days`."""
    seconds = f"date_part('epoch', %(now)s - {created_at})"  # `extract` makes a numeric, which is slow
    return f"exp(-least(greatest({seconds} / {days * 86_400}, 0), 100))"
