"""Compares windows with PostgreSQL above their floors, and drops wrong ones.

Too many entries are fine, because pages verify. Missing entries are not.
"""

import logging
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from accounts.levels import policy
from items.visibility import in_timelines, is_listed, public_post
from relations.rules import followed_big_vs, known_tags, tag_follows
from runtime import metrics
from storage.connections import Command, feeds_errors, feeds_for_tasks, fetch, pipelined, register_script
from storage.window import INFINITY, RUN, Window, to_score
from timeline.inbox import Inbox
from timeline.oracle import entry_ids
from timeline.outbox import Outbox, source_of

logger = logging.getLogger(__name__)

PART = 500
SAMPLE_PART = 10
# Checks one user per point, even if few of them have an inbox.
READERS_AT = f"""
    SELECT DISTINCT u.id FROM unnest(%s::bigint[]) point, LATERAL (
        SELECT * FROM accounts_user WHERE id >= point AND level > 0 ORDER BY id LIMIT 1) u
    WHERE {policy.has_inbox()}
"""
READERS = f"""
    SELECT u.id, {policy.has_inbox()}, {policy.EPOCH}, CASE WHEN u.is_big_v THEN {policy.outbox_epoch()} END,
        {policy.PUSH_GENERATION},
        ARRAY({followed_big_vs("u.id")})
    FROM accounts_user u WHERE u.id = ANY(%(ids)s) ORDER BY u.id
"""
PENDING = "SELECT item_id FROM timeline_delivery"
TAGS = known_tags(f"g.id, g.name, g.epoch # {policy.GENERATION}", f"g.id IN ({tag_follows('ANY(%(ids)s)')})")
TAGGED_IDS = f"""
    SELECT i.id FROM items_itemtag t JOIN items_item i ON i.id = t.item_id
    WHERE t.tag = %s AND t.item_id > %s AND {public_post("i")}
"""
OUTBOX_IDS = f"""
    SELECT i.id FROM items_item i
    WHERE i.sender_id = %s AND {in_timelines("i")} AND {is_listed("i")} AND i.id > %s
"""
SENDERS_OF = "SELECT id, sender_id FROM items_item WHERE id = ANY(%s) AND reply_to_id IS NULL"
# The run of the server, and the whole window.
WHOLE = register_script(RUN + "return {run(), redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')}")


class CheckedReader(NamedTuple):
    """A user, and what their windows must be built for: a row of `READERS`."""

    user_id: int
    has_inbox: bool
    epoch: int | None
    outbox_epoch: int | None
    """None if the user is not a big-V."""
    push_generation: int
    big_vs: list[int]


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a window and PostgreSQL disagree.

    Kinds: `missing` (only in PostgreSQL), `extra` (that sender has no such item), `order` (the score is not the id),
    `floor` (there is none).
    """

    key: str
    kind: str
    ids: tuple[int, ...]

    def __str__(self) -> str:
        more = ", …" if len(self.ids) > 5 else ""
        return f"{self.key}: {self.kind} ({len(self.ids)}): {', '.join(map(str, self.ids[:5]))}{more}"


@dataclass(slots=True)
class WindowContent:
    """Everything that a window in Redis holds."""

    floor: int
    epoch: int
    pushes: int
    building: bool
    is_of_this_run: bool
    entries: dict[int, int]
    """Item id to sender."""
    misplaced: list[int]

    @property
    def is_used(self) -> bool:
        """Whether the window is built, and in the server's current run."""
        return not self.building and self.is_of_this_run


def differences(user_ids: Iterable[int]) -> Iterator[Difference]:
    """How these users' windows differ from PostgreSQL. Checks twice, because items move."""
    ids = list(user_ids)
    for first in range(0, len(ids), PART):
        part = ids[first : first + PART]
        suspects = set(_differences(part))
        if suspects:
            yield from sorted(suspects.intersection(_differences(part)), key=str)


def sample_differences(*, count: int, seconds: float) -> list[Difference]:
    """Check random readers' windows, for at most `seconds`."""
    until = time.monotonic() + seconds
    found: list[Difference] = []
    ((first, last),) = fetch("SELECT min(id), max(id) FROM accounts_user")
    # Readers after a gap in the ids are sampled more often, which is harmless.
    points = [random.randint(first, last) for _ in range(count)] if last else []  # noqa: S311 (a sample)
    readers = [row[0] for row in fetch(READERS_AT, [points])]
    for place in range(0, len(readers), SAMPLE_PART):
        if time.monotonic() > until:
            break
        part = readers[place : place + SAMPLE_PART]
        with feeds_errors():
            found += differences(part)
        metrics.oracle_readers.inc(len(part))
    for difference in found:
        metrics.oracle_differences.labels(difference.kind).inc()
        logger.error("a window differs from PostgreSQL. Repair it with `timeline_check --repair`: %s", difference)
    return found


def repair(found: Iterable[Difference]) -> int:
    """Drop the windows that differ. Returns how many."""
    dropped = {difference.key for difference in found}
    pipelined(feeds_for_tasks(), [Window(key).drop() for key in sorted(dropped)])
    return len(dropped)


def _differences(user_ids: list[int]) -> Iterator[Difference]:
    # Reads in a page's order: a delivery completed before is in the windows.
    readers = fetch(READERS, {"ids": user_ids}, into=CheckedReader._make)
    tags = fetch(TAGS, {"ids": user_ids})
    pending = {row[0] for row in fetch(PENDING)}
    commands: list[Command] = []
    for reader in readers:
        commands += [_read_whole(Inbox(reader.user_id).key), _read_whole(Outbox(reader.user_id).key)]
    replies = pipelined(feeds_for_tasks(), commands)
    for place, reader in enumerate(readers):
        user_id, big_vs = reader.user_id, reader.big_vs
        inbox, outbox = _parse_content(replies[2 * place]), _parse_content(replies[2 * place + 1])
        if outbox and outbox.is_used and outbox.epoch == reader.outbox_epoch:
            published = {row[0] for row in fetch(OUTBOX_IDS, [user_id, outbox.floor])}
            yield from _compare(Outbox(user_id).key, outbox, published - pending)
        if inbox and inbox.is_used and reader.has_inbox and inbox.epoch == reader.epoch:
            shown = set(entry_ids(user_id, above=inbox.floor, by_sender=True)) - pending
            if big_vs and shown and not inbox.pushes == reader.push_generation > 0:
                pulled = fetch(
                    "SELECT id FROM items_item WHERE id = ANY(%s) AND sender_id = ANY(%s)", [list(shown), big_vs]
                )
                shown.difference_update(row[0] for row in pulled)
            yield from _compare(Inbox(user_id).key, inbox, shown)
    for first in range(0, len(tags), PART):
        part = [(tag, epoch, Outbox(source_of(tag=tag_id)).key) for tag_id, tag, epoch in tags[first : first + PART]]
        replies = pipelined(feeds_for_tasks(), [_read_whole(key) for _, _, key in part])
        for (tag, epoch, key), reply in zip(part, replies, strict=True):
            outbox = _parse_content(reply)
            if outbox and outbox.is_used and outbox.epoch == epoch:
                posts = {row[0] for row in fetch(TAGGED_IDS, [tag, outbox.floor])}
                yield from _compare(key, outbox, posts - pending)


def _compare(key: str, window: WindowContent, expected: set[int]) -> Iterator[Difference]:
    if window.floor == INFINITY:
        yield Difference(key, "floor", (window.floor,))
    if window.misplaced:
        yield Difference(key, "order", tuple(sorted(window.misplaced, reverse=True)))
    if missing := expected - window.entries.keys():
        yield Difference(key, "missing", tuple(sorted(missing, reverse=True)))
    senders = dict(fetch(SENDERS_OF, [list(window.entries)])) if window.entries else {}
    extra = [item_id for item_id, sender_id in window.entries.items() if senders.get(item_id) != sender_id]
    if extra:
        yield Difference(key, "extra", tuple(sorted(extra, reverse=True)))


def _read_whole(key: str) -> Command:
    return ("EVALSHA", WHOLE, 1, key)


def _parse_content(reply: list[Any]) -> WindowContent | None:
    run, flat = reply
    if not flat:
        return None
    content = WindowContent(
        floor=INFINITY, epoch=0, pushes=0, building=False, is_of_this_run=False, entries={}, misplaced=[]
    )
    scores = {member: to_score(score) for member, score in zip(flat[0::2], flat[1::2], strict=True)}
    content.floor = scores.pop(b"floor", INFINITY)
    content.epoch = -scores.pop(b"epoch", 0)
    content.pushes = -scores.pop(b"pushes", 0)
    scores.pop(b"deepen", None)
    for member, score in scores.items():
        if member.startswith(b"run:"):
            content.is_of_this_run |= member == run
            continue
        if member.startswith(b"build:"):
            content.building = True
            continue
        sender_id, item_id = map(int, member.split(b":"))
        if item_id != score:
            content.misplaced.append(item_id)
        if item_id > content.floor:
            content.entries[item_id] = sender_id
    return content
