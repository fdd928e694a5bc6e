"""A reader's recall, kept for the next refreshes, so that these look up no interests.

Likes, similar readers, hashtags and words are then up to `CANDIDATES_TTL` old. Newer posts are added, and what a reader
may not see is left out, at every refresh. It ends when the reader follows or unfollows somebody.

See docs/decisions.md: Recall adds up small bounded queries.
"""

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Self

import msgspec
from django.conf import settings

from accounts.models import User
from discover.postgres import BASE
from discover.recall import RecalledItem
from items.visibility import public_post
from relations.rules import READER, follows
from storage import ids
from storage.connections import fetch

# SELECT hides the bounds from the planner, which would plan each call for them. That costs more than to run it.
NEWER = f"""
    SELECT i.id, i.sender_id FROM items_item i
    WHERE {public_post("i")} AND i.id >= (SELECT %(since)s::bigint) AND i.id < (SELECT %(below)s::bigint)
        AND i.sender_id <> {READER}
        AND NOT {follows(READER, "i.sender_id")}
    ORDER BY i.id DESC LIMIT 100
"""
KEPT = 200
"""Candidates to keep."""
OF_SENDER = ("similar", "sender", "follower", "follows:")
"""How reasons begin that concern all posts of a sender."""


class KeptRecall(msgspec.Struct, array_like=True):
    """The candidates of a recall that were not left out."""

    below: int
    """The id below which recall saw all posts."""
    follows: tuple[int, int]
    """The reader's epoch, which a follow changes, and the number of followees, which an unfollow lowers."""
    candidates: list[RecalledItem]
    """At most `KEPT`, best first."""

    @classmethod
    def of(cls, reader: User, candidates: Sequence[RecalledItem], now: datetime) -> Self:
        """The first candidates of a recall at `now`."""
        return cls(ids.compose(now, 0), _follows_of(reader), list(candidates[:KEPT]))

    def serves(self, reader: User, now: datetime) -> bool:
        """Whether it is recent enough, and the reader follows the same users as then."""
        oldest, newest = ids.compose(now - settings.CANDIDATES_TTL, 0), ids.compose(now, 0)
        return oldest < self.below <= newest and self.follows == _follows_of(reader)

    def with_newer(self, reader: User, now: datetime) -> list[RecalledItem]:
        """The candidates and newer posts, best first. A newer post is worth as much as the sender's best other one."""
        rows = fetch(NEWER, {"reader": reader.pk, "since": self.below, "below": ids.compose(now, 0)})
        if not rows:
            return self.candidates
        best: dict[int, RecalledItem] = {}
        for one in self.candidates:
            if one.reason.startswith(OF_SENDER):
                best.setdefault(one.sender_id, one)
        newer = [
            best[sender_id]._replace(item_id=item_id)
            if sender_id in best
            else RecalledItem(item_id, sender_id, math.log(BASE), "fresh")
            for item_id, sender_id in rows
        ]
        return sorted([*newer, *self.candidates], key=lambda one: -one.score)


def _follows_of(reader: User) -> tuple[int, int]:
    return reader.window_epoch, reader.following_count
