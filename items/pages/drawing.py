"""Parts of cards, drawn once for all their readers.

The key of a part has a digest of everything that it shows: a changed post, name, picture or language is another key.
Whether a reader may see a post is never read from here: pages draw what their statements found.

See docs/decisions.md: A card is drawn once for all its readers.
"""

import hashlib
from collections.abc import Callable, Hashable, Mapping
from datetime import datetime
from typing import Any

import msgspec
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from items.bodies import Counts, ItemBody, Quote
from items.pages.reading import Moment, ago, moment
from items.pages.recent import Recent

MOST = 2_000
"""Parts that a process keeps. With `LONGEST` at most 16 MB, usually 5 MB. For 300 readers 1,000 are enough."""
LONGEST = 8_000
"""Parts with more characters are drawn each time."""
SLOT = "\0"
"""Stands before and after the name or time of a slot. No text in PostgreSQL contains it."""
UNCOUNTED: dict[str, Any] = {
    "counts": Counts(0, 0, 0),
    "liked": False,
    "reposted": False,
    "bookmarked": False,
    "can_reply": False,
}
"""What the footer of a card shows, which is drawn by itself."""

Parts = tuple[str | datetime, ...]
"""HTML, and in every second place the name or the time of a slot."""

_encode = msgspec.msgpack.Encoder().encode
_kept: Recent[Parts] = Recent(MOST)


def facts_of(item: ItemBody) -> bytes:
    """All that a card can show of an item, but its footer."""
    return _encode(_uncounted(item))


def digest(facts: bytes) -> bytes:
    """`facts` in few bytes. People write them, so nobody may find two of one digest."""
    return hashlib.blake2b(facts, digest_size=16).digest()


def _uncounted(item: ItemBody) -> ItemBody:
    item = msgspec.structs.replace(item, **UNCOUNTED)
    if item.repost_of:
        item.repost_of = _uncounted(item.repost_of)
    if item.quote and item.quote.item:
        item.quote = Quote(item.quote.id, _uncounted(item.quote.item), item.quote.state)
    return item


def drawn(key: Hashable | None, draw: Callable[[], str]) -> Parts:
    """The parts of what `draw` returns, or once returned for the same key. None: draw it each time."""
    parts = _kept.get(key) if key is not None else None
    if parts is None:
        html = draw()
        parts = _cut(html)
        if key is not None and len(html) <= LONGEST:
            _kept.put(key, parts)
    return parts


def _cut(html: str) -> Parts:
    pieces = str(html).split(SLOT)
    return tuple(
        datetime.fromisoformat(piece) if number % 2 and piece[:1].isdigit() else piece
        for number, piece in enumerate(pieces)
    )


def slot(name: str) -> SafeString:
    """A slot of `filled`."""
    return mark_safe(f"{SLOT}{name}{SLOT}")  # noqa: S308 (a constant)


def slotted_moment(time: datetime) -> Moment:
    """A time whose age `filled` puts in."""
    return moment(time)._replace(ago=slot(time.isoformat()))


def filled(parts: Parts, slots: Mapping[str, Callable[[Any], str]], card: Any) -> SafeString:
    """The HTML of parts: ages as of now, and what `slots` draw for this card."""
    pieces = list(parts)
    for place in range(1, len(pieces), 2):
        of = pieces[place]
        pieces[place] = escape(ago(of)) if isinstance(of, datetime) else slots[of](card)
    return mark_safe("".join(pieces))  # type: ignore[arg-type]  # noqa: S308 (made by templates)
