"""The readers who watch more than their home: all public posts, a hashtag, one of their lists.

One query for a batch of events and all watchers, by the rules that serve the pages of these. It says, as the audience
of homes does (stream.news), who sees an item now, and who saw it before it was changed or withdrawn.

See docs/decisions.md: Apps hear the same bytes.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from items.tags import carries
from items.visibility import public_post, visible
from relations.rules import members
from storage.connections import fetch, id_array
from storage.events import ItemEvent
from stream.news import EVENTS, asked_of
from timeline.rules import shown
from timeline.senders import LIST

_SEEN = visible("i", "s", "watch.reader")
_LISTED = shown("watch.reader", LIST.wanted)
AUDIENCE = f"""
    WITH {EVENTS}, watch AS MATERIALIZED (
        SELECT * FROM unnest(%(readers)s::bigint[], %(tags)s::text[], %(lists)s::bigint[])
            WITH ORDINALITY AS one (reader, tag, list, place)
    )
    SELECT i.place, i.before, i.id, watch.place FROM watch JOIN i ON {public_post("i")}
    JOIN accounts_user s ON s.id = i.sender_id WHERE watch.tag = '' AND watch.list = 0 AND {_SEEN}
    UNION ALL
    SELECT i.place, i.before, i.id, watch.place FROM watch JOIN i ON {carries("i.id", "watch.tag")}
    JOIN accounts_user s ON s.id = i.sender_id WHERE watch.tag <> '' AND {_SEEN}
    UNION ALL
    SELECT i.place, i.before, i.id, watch.place FROM watch JOIN i ON i.sender_id IN ({members("watch.list")})
    JOIN accounts_user s ON s.id = i.sender_id WHERE watch.list <> 0 AND {_LISTED}
"""  # noqa: S608 (constants)


class Watch(NamedTuple):
    """A reader who watches a hashtag in its canonical form, a list of theirs, or without either all public posts."""

    reader: int
    tag: str = ""
    list_id: int = 0


class _Row(NamedTuple):
    """A row of `AUDIENCE`: what `Seen` has, and the place of the watch among all, from 1 on."""

    place: int
    before: bool
    item: int
    watch: int


class Seen(NamedTuple):
    """A watcher sees the item of an event, or saw it before the event."""

    place: int
    """The place of the event in the stream of events."""
    before: bool
    item: int
    watch: Watch


def audience(watches: Iterable[Watch], items: Sequence[tuple[int, ItemEvent]]) -> list[Seen]:
    """The watchers of the items of these events, which are given with their places. Raises Django's database errors."""
    every = list(watches)
    if not every or not items:
        return []
    asked = asked_of(items)
    rows = fetch(
        AUDIENCE,
        {
            "places": id_array(place for place, _, _ in asked),
            "items": id_array(item for _, item, _ in asked),
            "before": [before for _, _, before in asked],
            "readers": id_array(watch.reader for watch in every),
            "tags": [watch.tag for watch in every],
            "lists": id_array(watch.list_id for watch in every),
        },
        into=_Row._make,
    )
    return [Seen(row.place, row.before, row.item, every[row.watch - 1]) for row in rows]
