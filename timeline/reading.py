"""Reading the windows of a page: the reader's inbox or the tail below it, and the outboxes that the page merges.

They are read before PostgreSQL is asked (timeline.truth), so what they are worth is known afterwards: whether they were
built for the epochs that the truth names, and whether an outbox is lacking. Which big-Vs a reader follows is a hint in
Redis, which the truth corrects.
"""

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from storage import keys
from storage.connections import Command, FeedsRefusedError, feeds, feeds_errors, pipelined
from storage.window import INFINITY, NO_SLICE, Slice, Window
from timeline.inbox import Inbox, Tail
from timeline.outbox import Outbox
from timeline.truth import Truth

OUTBOXES_MOST = 32
"""Up to so many outboxes are always merged, and read a whole page deep at once."""
GLANCE = 3
"""Entries that are read first of each of more outboxes; few of them reach into the page (`_look_deeper`)."""
FOLLOWEES_FOR_ONE = 8
"""Readers of many followees merge more of them: one for so many followees. Beyond it one pull is cheaper: measured, an
outbox costs a page 0.055 ms, and a followee costs a pull 0.0065 ms.
"""
TOO_MANY_SECONDS = 300
"""The life of a hint of too many big-Vs, once a page believed it: such a page pulls, and the truth corrects nothing."""
ID_DIGITS = 19


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of a reader's windows below the id `before`: up to `count` entries each."""

    before: int
    count: int
    inbox: Slice
    outboxes: Mapping[int, Slice] = field(default_factory=dict)
    """By big-V."""
    tail: Slice | None = None
    token: str = ""
    """The token under which the tail may be written, if reading it left a mark."""

    @property
    def parts(self) -> list[Slice]:
        """The slices that the page is merged from."""
        return [self.tail] if self.tail and self.uses_tail else [self.inbox, *self.outboxes.values()]

    @property
    def uses_tail(self) -> bool:
        """Whether the page begins where the inbox ends, so that the tail, if there is one, serves it alone."""
        return self.tail is not None and self.before <= self.inbox.floor + 1

    @property
    def senders(self) -> set[int]:
        """The senders of all candidates."""
        return set().union(*(part.senders for part in self.parts))

    @property
    def bound(self) -> int:
        """All parts are complete above it."""
        return max(part.bound for part in self.parts)

    def candidates(self, pending: Iterable[int] = (), bound: int = 0) -> list[int]:
        """The newest `count` ids of all parts and of what is pending, above the bound of the parts and `bound`, that
        of the pending.
        """
        bound = max(bound, self.bound)
        found = set(pending).union(*(part.entries for part in self.parts))
        return sorted((item_id for item_id in found if bound < item_id < self.before), reverse=True)[: self.count]

    def below(self, ids: Sequence[int], bound: int = 0) -> int:
        """The id below which only PostgreSQL knows what follows these candidates, if they are all that the windows
        hold. 0: the windows hold more, or are complete to the end of the timeline.
        """
        bound = max(bound, self.bound)
        return bound + 1 if bound > 0 and len(ids) < self.count else 0

    def sources(self, ids: Sequence[int], pending: set[int]) -> Iterator[str]:
        """The names of what a page of these ids comes from; what the tail holds was pulled by SQL."""
        yield "sql" if self.uses_tail else "inbox"
        if self.outboxes:
            yield "outbox"
        if not pending.isdisjoint(ids):
            yield "pending"

    def is_current(self, truth: Truth) -> bool:
        """Whether no delivery was completed since, every outbox was read that belongs to it, and the tail is of the
        reader's epoch.
        """
        if truth.has_moved or (self.tail and self.uses_tail and self.tail.epoch != truth.epoch):
            return False
        return (truth.big_vs or {}).keys() <= self.outboxes.keys()

    def is_whole(self, truth: Truth) -> bool:
        """Whether inbox and outboxes together hold what big-Vs published: the truth named the outboxes to be merged,
        or the inbox takes the pushes.
        """
        return truth.big_vs is not None or self.inbox.pushes == truth.push_generation

    def missing(self, reader_id: int, truth: Truth) -> list[tuple[Inbox | Outbox, int]]:
        """The windows that cannot be used, each with the epoch that it is wanted for."""
        wanted: list[tuple[Inbox | Outbox, Slice, int | None]] = [(Inbox(reader_id), self.inbox, truth.epoch)]
        for big_v, epoch in (truth.big_vs or {}).items():
            wanted.append((Outbox(big_v), self.outboxes.get(big_v, NO_SLICE), epoch))
        return [
            (window, epoch)
            for window, part, epoch in wanted
            if epoch is not None and not (part.is_usable and part.epoch == epoch)
        ]

    def of(self, truth: Truth) -> "Reading":
        """The reading without the outboxes that do not belong to it."""
        needed = truth.big_vs or {}
        if self.outboxes.keys() == needed.keys():
            return self
        return replace(self, outboxes={big_v: part for big_v, part in self.outboxes.items() if big_v in needed})


def look(
    reader_id: int, *, before: int, count: int, big_vs: Collection[int], epoch: int = 0, newest: int = INFINITY
) -> Reading:
    """Read the inbox and the outboxes of these big-Vs below the id `before`, and not above `newest`, up to `count`
    entries each, in one round trip; one more where a page reaches deeper into many. Raises FeedsUnavailableError.

    Where no outbox is merged, the tail is read too: of this epoch, or of any (0).
    """
    depth = count if len(big_vs) <= OUTBOXES_MOST else GLANCE
    top = min(before, newest + 1)
    counts = [count, *[depth] * len(big_vs)]
    commands = Window.readings(feeds(), [Inbox(reader_id), *map(Outbox, big_vs)], top, counts)
    token = ""
    if before < INFINITY and not big_vs and count <= Tail.LENGTH // 2:
        token = secrets.token_hex(8)
        commands.insert(0, Tail(reader_id).reading(before, count, epoch, token))
    with feeds_errors():
        replies = pipelined(feeds(), commands)
        tail = Tail.slice(replies.pop(0), count) if token else None
        inbox, *outboxes = Window.slices(replies, counts)
        by_big_v = dict(zip(big_vs, outboxes, strict=True))
        if depth < count:
            _look_deeper(by_big_v, inbox, top, count)
    return Reading(before, count, inbox, by_big_v, tail, "" if tail else token)


def hint_of(reader_id: int) -> set[int] | None:
    """The big-Vs that the reader follows, as the hint says; None where there is none, or a key of another type. Raises
    FeedsUnavailableError.
    """
    try:
        with feeds_errors():
            (reply,) = pipelined(feeds(), [("GET", keys.followed_big_vs(reader_id))])
    except FeedsRefusedError:
        return None
    if reply is None:
        return None
    return {int(big_v) for big_v in reply.split(b",") if big_v.isdigit() and len(big_v) <= ID_DIGITS}


def are_too_many(big_vs: Collection[int], followees: int) -> bool:
    """Whether a pull costs less than to merge so many outboxes."""
    return len(big_vs) > max(OUTBOXES_MOST, followees // FOLLOWEES_FOR_ONE)


def _look_deeper(outboxes: dict[int, Slice], read: Slice, before: int, count: int) -> None:
    """Read those of many outboxes a page deep whose glance ended above what the page can reach."""
    newest = sorted({item_id for one in [read, *outboxes.values()] for item_id in one.entries}, reverse=True)
    reach = newest[count - 1] if len(newest) >= count else 0
    deeper = [big_v for big_v, one in outboxes.items() if one.is_truncated and one.bound >= reach]
    counts = [count] * len(deeper)
    replies = pipelined(feeds(), Window.readings(feeds(), [*map(Outbox, deeper)], before, counts))
    outboxes.update(zip(deeper, Window.slices(replies, counts), strict=True))


def hinting(reader_id: int, big_vs: Iterable[int]) -> Command:
    """Write the hint that `hint_of` reads, for as long as a window lives. Written by pages whose truth differs from
    the hint, and when a level is lowered; a hint may be wrong at any time.
    """
    hint = ",".join(map(str, sorted(big_vs)))
    return ("SET", keys.followed_big_vs(reader_id), hint, "EX", Window.ttl)


def doubting(reader_id: int) -> Command:
    """Have a hint of too many big-Vs end soon, so that the truth is asked again."""
    return ("EXPIRE", keys.followed_big_vs(reader_id), TOO_MANY_SECONDS, "LT")
