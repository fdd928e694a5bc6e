"""Reads the windows of a page: the inbox or the tail below it, and the outboxes to merge.

A hint in Redis says which outboxes to read. PostgreSQL's answer (timeline.truth) checks the windows and corrects the
hint. Readers who follow hashtags use no tail: a hashtag added to an old item would not reach it.
"""

import re
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from accounts.models import User
from storage import keys
from storage.connections import Command, FeedsRefusedError, feeds, feeds_errors, pipelined
from storage.window import INFINITY, NO_SLICE, Slice, Window, only_looks
from timeline.inbox import Inbox, Tail
from timeline.outbox import Outbox, outbox_key
from timeline.senders import Scope
from timeline.truth import Truth

OUTBOXES_MOST = 32
"""Up to this many outboxes are always merged. Of each the first reading takes a third of a page, and twice its share of
the page. Few reach further (`_read_deeper`).
"""
GLANCE = 3
"""Entries to read first from each outbox if there are more."""
FOLLOWEES_FOR_ONE = 8
"""Readers with many followees and hashtags merge one more outbox for each 8 of them. Beyond that a pull is cheaper: an
outbox costs a page 0.055 ms, and a followee costs a pull 0.0065 ms.
"""
TOO_MANY_SECONDS = 300
"""TTL of a hint of too many outboxes once a page used it. That page only pulls, so it cannot correct the hint."""
BOUND, ENTRIES = attrgetter("bound"), attrgetter("entries")
SOURCE = re.compile(rb"-?[1-9][0-9]{0,17}")
"""A part of a hint: an id, or minus an id."""


@dataclass(slots=True)
class Reading:
    """What a page read from the windows: up to `count` entries of each below the id `before`, merged."""

    before: int
    count: int
    inbox: Slice
    outboxes: Mapping[int, Slice]
    """By source (timeline.outbox)."""
    tail: Slice | None
    token: str
    """Token needed to write the tail. Empty if the tail was found."""
    uses_tail: bool = field(init=False)
    """Whether the tail alone serves the page."""
    parts: list[Slice] = field(init=False)
    """The slices to merge into the page."""
    bound: int = field(init=False)
    """The id above which all parts are complete."""
    ids: list[int] = field(init=False)
    """The newest `count` ids of all parts above the bound."""

    def __post_init__(self) -> None:
        self.uses_tail = self.tail is not None and self.before <= self.inbox.floor + 1
        self.parts = [self.tail] if self.tail and self.uses_tail else [self.inbox, *self.outboxes.values()]
        self.bound = max(map(BOUND, self.parts))
        self.ids = self.merge((), self.bound)

    def merge(self, pending: Iterable[int], bound: int) -> list[int]:
        """The newest `count` ids of all parts and `pending`, above the bound."""
        found = set(pending).union(*map(ENTRIES, self.parts))
        return sorted([item_id for item_id in found if bound < item_id < self.before], reverse=True)[: self.count]

    @property
    def senders(self) -> set[int]:
        """The senders of `ids`. Each costs PostgreSQL some probes."""
        sender_of: dict[int, int] = {}
        for part in self.parts:
            sender_of.update(zip(part.entries, part.senders, strict=True))
        return {sender_of[item_id] for item_id in self.ids}

    def candidates(self, truth: Truth) -> tuple[list[int], int]:
        """The ids with pending deliveries, and the id below which only PostgreSQL knows more, or 0."""
        bound = max(truth.pending_bound, self.bound)
        ids = self.merge(truth.pending, bound) if truth.pending or bound > self.bound else self.ids
        return ids, self.below(ids, bound)

    def below(self, ids: Sequence[int], bound: int) -> int:
        """The id below which only PostgreSQL knows more than these ids above the bound, or 0."""
        return bound + 1 if bound > 0 and len(ids) < self.count else 0

    def sources(self, truth: Truth, ids: Sequence[int]) -> set[str]:
        """What served these ids: inbox, outbox, pending or sql. A tail counts as `sql`, which filled it."""
        found = {"sql" if self.uses_tail else "inbox"}
        if self.outboxes:
            found.add("outbox")
        if not truth.pending.isdisjoint(ids):
            found.add("pending")
        return found

    def is_current(self, truth: Truth) -> bool:
        """Whether no delivery was completed since the reading, and no needed window is missing or outdated."""
        if truth.has_moved or (self.tail and self.uses_tail and self.tail.epoch != truth.epoch):
            return False
        return truth.outboxes.keys() <= self.outboxes.keys()

    def is_shallow(self, truth: Truth) -> bool:
        """Whether the inbox lacks the pushes that the reader's level takes."""
        return self.inbox.epoch == truth.epoch and truth.push_generation not in (0, self.inbox.pushes)

    def is_whole(self, truth: Truth) -> bool:
        """Whether the reading holds all items of followed big-Vs: from their outboxes, or pushed into the inbox."""
        return truth.names_big_vs or self.inbox.pushes == truth.push_generation

    def missing(self, reader_id: int, truth: Truth) -> list[tuple[Inbox | Outbox, int]]:
        """The unusable windows, with the epochs to build them for."""
        found: list[tuple[Inbox | Outbox, int]] = []
        if truth.epoch is not None and not self.inbox.is_built_for(truth.epoch):
            found.append((Inbox(reader_id), truth.epoch))
        for source, epoch in truth.outboxes.items():
            if epoch is not None and not self.outboxes.get(source, NO_SLICE).is_built_for(epoch):
                found.append((Outbox(source), epoch))
        return found

    def only_needed(self, truth: Truth) -> "Reading":
        """This reading without the outboxes that `truth` does not need."""
        needed = truth.outboxes
        if self.outboxes.keys() == needed.keys():
            return self
        return replace(self, outboxes={source: part for source, part in self.outboxes.items() if source in needed})


def read_windows(
    scope: Scope, *, before: int, count: int, sources: Collection[int], epoch: int = 0, newest: int = INFINITY
) -> Reading:
    """Read the windows below `before`, not above `newest`, up to `count` entries each.

    Without `sources` it also reads the tail, of this epoch or of any (0). One round trip, or two if an outbox reaches
    far into the page. Raises FeedsUnavailableError.
    """
    reader_id = scope.reader_id
    others = len(sources)
    even = count // 3 + 2 * count // (others + 1)
    depth = max(1, min(count, even)) if others <= OUTBOXES_MOST else GLANCE
    top = min(before, newest + 1)
    counts = [count, *[depth] * others]
    commands = Window.read_commands(feeds(), [keys.inbox(reader_id), *map(outbox_key, sources)], top, counts)
    token = ""
    if before < INFINITY and not (sources or scope.has_tags or only_looks.get()) and count <= Tail.LENGTH // 2:
        token = secrets.token_hex(8)
        commands.insert(0, Tail(reader_id).read_command(before, count, epoch, token))
    with feeds_errors():
        replies = pipelined(feeds(), commands)
        tail = Tail.slice(replies.pop(0), count) if token else None
        inbox, *outboxes = Window.slices(replies, counts)
        by_source = dict(zip(sources, outboxes, strict=True))
        if depth < count:
            _read_deeper(by_source, inbox, top, count)
    return Reading(before, count, inbox, by_source, tail, "" if tail else token)


def read_hint(reader_id: int) -> set[int] | None:
    """The outboxes that the hint in Redis names. None without a hint. Raises FeedsUnavailableError."""
    try:
        with feeds_errors():
            (reply,) = pipelined(feeds(), [("GET", keys.merged_outboxes(reader_id))])
    except FeedsRefusedError:
        return None
    if reply is None:
        return None
    return {int(source) for source in reply.split(b",") if SOURCE.fullmatch(source)}


def is_pull_cheaper(sources: Collection[int], reader: User) -> bool:
    """Whether a pull costs less than merging these outboxes."""
    probes = reader.following_count + reader.followed_tag_count
    return len(sources) > max(OUTBOXES_MOST, probes // FOLLOWEES_FOR_ONE)


def _read_deeper(outboxes: dict[int, Slice], read: Slice, before: int, count: int) -> None:
    newest = sorted({item_id for one in [read, *outboxes.values()] for item_id in one.entries}, reverse=True)
    reach = newest[count - 1] if len(newest) >= count else 0
    deeper = [source for source, one in outboxes.items() if one.is_truncated and one.bound >= reach]
    counts = [count] * len(deeper)
    replies = pipelined(feeds(), Window.read_commands(feeds(), [*map(outbox_key, deeper)], before, counts))
    outboxes.update(zip(deeper, Window.slices(replies, counts), strict=True))


def set_hint(reader_id: int, sources: Iterable[int]) -> Command:
    """Command that writes the hint of the outboxes to merge. It may be wrong without harm."""
    hint = ",".join(map(str, sorted(sources)))
    return ("SET", keys.merged_outboxes(reader_id), hint, "EX", Window.ttl)


def expire_hint(reader_id: int) -> Command:
    """Command that lets a hint of too many outboxes expire soon: a page that only pulls cannot correct it."""
    return ("EXPIRE", keys.merged_outboxes(reader_id), TOO_MANY_SECONDS, "LT")
