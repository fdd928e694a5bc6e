"""Candidates for the next pages: a Redis LIST per reader, with the reasons in another, and the recall that they are of.

They may be lost or outdated.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from django.conf import settings

from discover.kept import KeptRecall
from storage import keys
from storage.connections import Command, feeds, pipelined


class CachedRecommendation(NamedTuple):
    """An item to recommend. `reason`: its code, empty if lost."""

    item_id: int
    reason: str


class CandidateList:
    """One reader's candidates. Methods are one round trip, and raise what redis-py raises.

    Source: the smart feed protocol, 2.2. Its list has item ids only, so reasons have their own.
    """

    def __init__(self, user_id: int) -> None:
        self.key = keys.candidates(user_id)
        self.reasons_key = keys.candidate_reasons(user_id)
        self.recall_key = keys.kept_recall(user_id)

    def drop(self) -> KeptRecall | None:
        """Delete the list and its reasons. Returns the recall that is kept."""
        *_, kept = pipelined(feeds(), [("DEL", self.key), ("DEL", self.reasons_key), ("GET", self.recall_key)])
        try:
            return msgspec.msgpack.decode(kept, type=KeptRecall) if kept else None
        except msgspec.MsgspecError:
            return None

    def push(self, entries: Sequence[CachedRecommendation], keep: KeptRecall | None = None) -> None:
        """Append entries, and keep the recall that they are of. Both live for `CANDIDATES_TTL` from now."""
        commands = self._writing("RPUSH", entries)
        if keep:
            commands.append(("SET", self.recall_key, msgspec.msgpack.encode(keep), "EX", _ttl_seconds()))
        pipelined(feeds(), commands)

    def put_back(self, entries: Sequence[CachedRecommendation]) -> None:
        """Put popped entries back at the front."""
        pipelined(feeds(), self._writing("LPUSH", entries[::-1]))

    def pop(self, count: int) -> tuple[list[CachedRecommendation], int]:
        """Remove the first `count` entries or fewer. Returns them, and how many are left."""
        ids, reasons, left = pipelined(
            feeds(),
            [("LPOP", self.key, count), ("LPOP", self.reasons_key, count), ("LLEN", self.key)],
        )
        known = dict(reason.decode().split("|", 1) for reason in reasons or [])
        return [CachedRecommendation(int(item_id), known.get(item_id.decode(), "")) for item_id in ids or []], left

    def _writing(self, command: str, entries: Sequence[CachedRecommendation]) -> list[Command]:
        if not entries:
            return []
        seconds = _ttl_seconds()
        return [
            (command, self.key, *(entry.item_id for entry in entries)),
            ("EXPIRE", self.key, seconds),
            (command, self.reasons_key, *(f"{entry.item_id}|{entry.reason}" for entry in entries)),
            ("EXPIRE", self.reasons_key, seconds),
        ]


def _ttl_seconds() -> int:
    return int(settings.CANDIDATES_TTL.total_seconds())
