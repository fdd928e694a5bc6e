"""Reading the windows of a page: the reader's inbox or the tail below it, and the outboxes that the page merges.

They are read before PostgreSQL is asked (timeline.truth), so what they are worth is known afterwards: whether they were
built for the epochs that the truth names, and whether an outbox is lacking. Which big-Vs a reader follows is a hint in
Redis, which the truth corrects.
"""

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from feedsite import keys
from feedsite.connections import Command, feeds, feeds_errors, pipelined
from feedsite.window import INFINITY, NO_SLICE, Slice, Window
from timeline.inbox import Inbox, Tail
from timeline.outbox import Outbox
from timeline.truth import Truth

NARROW = 16
"""Up to so many outboxes are read a whole page deep at once; of more, only `GLANCE` entries first."""
GLANCE = 3


@dataclass(frozen=True, slots=True)
class Reading:
    """What the windows of a reader held below the id `before`: up to `count` entries each."""

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
        return self.tail is not None and self.before <= self.inbox.floor + 1

    @property
    def bound(self) -> int:
        """All parts are complete above it."""
        return max(part.bound for part in self.parts)

    def candidates(self, pending: Iterable[int] = (), bound: int = 0) -> list[int]:
        """The newest `count` ids of all parts and of what is pending, above the bound of both."""
        bound = max(bound, self.bound)
        found = set(pending).union(*(part.entries for part in self.parts))
        return sorted((item_id for item_id in found if bound < item_id < self.before), reverse=True)[: self.count]

    def below(self, ids: Sequence[int], bound: int = 0) -> int:
        """Below this id the windows hold nothing more than these candidates; 0: they hold more, or nothing follows."""
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
        """Whether the inbox takes big-Vs' pushes, as far as the truth did not name the outboxes to be merged."""
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
        """The same without the outboxes that do not belong to it."""
        needed = truth.big_vs or {}
        if self.outboxes.keys() == needed.keys():
            return self
        return replace(self, outboxes={big_v: part for big_v, part in self.outboxes.items() if big_v in needed})


def look(
    reader_id: int,
    *,
    before: int,
    count: int,
    big_vs: Iterable[int] | None,
    merges: bool = False,
    tail: bool = False,
    epoch: int = 0,
) -> tuple[Reading, set[int] | None]:
    """Read the windows, and the hint where `big_vs`, whose outboxes are read, are not known; (reading, hint).

    `merges` says that the reader may merge outboxes, `tail` that the tail is of use where none is merged, and `epoch`
    for what it must have been written, or 0 where that is not known. One round trip; a second one where a hint
    names big-Vs, or there are many. Raises FeedsUnavailableError.
    """
    inbox, token = Inbox(reader_id), ""
    known = list(big_vs or ())
    depth = count if len(known) <= NARROW else GLANCE
    commands = [inbox.reading(before, count), *(Outbox(big_v).reading(before, depth) for big_v in known)]
    if big_vs is None and merges:
        commands.append(("GET", keys.followed_big_vs(reader_id)))
    elif tail and not known and before < INFINITY and count <= Tail.LENGTH // 2:
        token = secrets.token_hex(8)
        commands.insert(0, Tail(reader_id).reading(before, count, epoch, token))
    with feeds_errors():
        replies = pipelined(feeds(), commands)
        pulled = Tail.slice(replies.pop(0), count) if token else None
        hint = to_hint(replies.pop()) if big_vs is None and merges else None
        read = Window.slice(replies.pop(0), count)
        if hint is not None and not hint and tail and before < INFINITY:
            return look(reader_id, before=before, count=count, big_vs=(), tail=tail)[0], hint
        if hint and read.is_usable:
            known = list(hint)
            depth = count if len(known) <= NARROW else GLANCE
            replies = pipelined(feeds(), [Outbox(big_v).reading(before, depth) for big_v in known])
        outboxes = dict(zip(known, (Window.slice(reply, depth) for reply in replies), strict=True)) if replies else {}
        if depth < count:
            _look_deeper(outboxes, read, before, count)
    return Reading(before, count, read, outboxes, pulled, "" if pulled else token), hint


def _look_deeper(outboxes: dict[int, Slice], read: Slice, before: int, count: int) -> None:
    """Of many outboxes, read a page deep only those whose glance ended above what the page can reach."""
    newest = sorted({item_id for one in [read, *outboxes.values()] for item_id in one.entries}, reverse=True)
    reach = newest[count - 1] if len(newest) >= count else 0
    deeper = [big_v for big_v, one in outboxes.items() if one.is_truncated and one.bound >= reach]
    replies = pipelined(feeds(), [Outbox(big_v).reading(before, count) for big_v in deeper])
    for big_v, reply in zip(deeper, replies, strict=True):
        outboxes[big_v] = Window.slice(reply, count)


def to_hint(reply: bytes | None) -> set[int] | None:
    """The big-Vs that a reader follows, as the hint says; None where there is none."""
    return None if reply is None else {int(big_v) for big_v in reply.split(b",") if big_v}


def hinting(reader_id: int, big_vs: Iterable[int]) -> Command:
    """Keep a hint for as long as a window lives."""
    hint = ",".join(map(str, sorted(big_vs)))
    return ("SET", keys.followed_big_vs(reader_id), hint, "EX", Window.ttl)
