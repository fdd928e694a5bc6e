"""A few of the plays that were merged, as they were: the filters keep no ids, and a probe needs some to ask for.

A merge draws one play of every chunk of users, after the store has it. Of each month as many are kept as there are
places, every draw as likely as any other (algorithm R; Vitter: Random sampling with a reservoir, 1985), for as long as
probes ask for the month.

See docs/decisions.md: A sample of what was merged is kept exactly.
"""

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from seen.filter_store import MONTHS, FilterKey, month_of
from seen.filters import Ids
from seen.played import client, errors
from storage import keys
from storage.connections import pipelined

PLACES = 2_500
"""Plays that are kept of a month: 60 bytes each."""
_COUNT = "n"


class Drawn(NamedTuple):
    """A play that is in its month's filter, and its place in the sample."""

    user_id: int
    month: int
    item_id: int
    place: int


def draw(merged: Mapping[FilterKey, Ids]) -> None:
    """Draw one of the plays that a merge wrote.

    One round trip, or two. Raises PlayedUnavailableError.
    """
    user_id, month = chosen = random.choice(list(merged))  # noqa: S311 (a sample)
    item_id = int(random.choice(merged[chosen]))  # noqa: S311
    key = keys.played_sample(month)
    with errors():
        (number,) = pipelined(client(), [("HINCRBY", key, _COUNT, 1)])
        place = number - 1 if number <= PLACES else random.randrange(number)  # noqa: S311
        if place < PLACES:
            pipelined(client(), [("HSET", key, place, f"{user_id}:{item_id}"), ("EXPIREAT", key, _end(month))])


def some(*, now: datetime, count: int) -> list[Drawn]:
    """Some of the plays that are kept, up to `count` of each month; one round trip. Raises PlayedUnavailableError."""
    months = [month_of(now) - ago for ago in range(MONTHS)]
    with errors():
        replies = pipelined(
            client(), [("HRANDFIELD", keys.played_sample(month), count, "WITHVALUES") for month in months]
        )
    return [drawn for month, reply in zip(months, replies, strict=True) for drawn in _drawn(month, reply)]


def drop(drawn: Sequence[Drawn]) -> None:
    """Give their places up; one round trip. Raises PlayedUnavailableError."""
    with errors():
        pipelined(client(), [("HDEL", keys.played_sample(each.month), each.place) for each in drawn])


def forget(user_ids: Sequence[int], *, now: datetime) -> int:
    """Take out the plays of these users; returns their number. Raises PlayedUnavailableError."""
    months = range(month_of(now) - MONTHS, month_of(now) + 2)
    with errors():
        replies = pipelined(client(), [("HGETALL", keys.played_sample(month)) for month in months])
    users = set(user_ids)
    theirs = [
        drawn
        for month, reply in zip(months, replies, strict=True)
        for drawn in _drawn(month, reply)
        if drawn.user_id in users
    ]
    drop(theirs)
    return len(theirs)


def _drawn(month: int, reply: Sequence[bytes]) -> list[Drawn]:
    drawn = []
    for place, value in zip(reply[::2], reply[1::2], strict=True):
        if place != _COUNT.encode():
            user_id, _, item_id = value.partition(b":")
            drawn.append(Drawn(int(user_id), month, int(item_id), int(place)))
    return drawn


def _end(month: int) -> int:
    """The time from which no probe asks for a month any more (Unix, seconds)."""
    year, after = divmod(month + MONTHS, 12)
    return int(datetime(year, after + 1, 1, tzinfo=UTC).timestamp())
