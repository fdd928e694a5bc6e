"""The audience of all public posts, a hashtag, or a list."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from items.tags.tags import has_tag
from items.visibility import public_post, visible
from relations.rules import members
from storage.connections import fetch, id_array
from storage.events import ItemEvent
from stream.news import EVENTS, event_params
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
    SELECT i.place, i.before, i.id, watch.place FROM watch JOIN i ON {has_tag("i.id", "watch.tag")}
    JOIN accounts_user s ON s.id = i.sender_id WHERE watch.tag <> '' AND {_SEEN}
    UNION ALL
    SELECT i.place, i.before, i.id, watch.place FROM watch JOIN i ON i.sender_id IN ({members("watch.list")})
    JOIN accounts_user s ON s.id = i.sender_id WHERE watch.list <> 0 AND {_LISTED}
"""


class Watch(NamedTuple):
    """A reader who watches a hashtag (canonical), a list, or without both all public posts."""

    reader: int
    tag: str = ""
    list_id: int = 0


class _AudienceRow(NamedTuple):
    """A row of `AUDIENCE`. `watch`: the watch's number, from 1."""

    place: int
    before: bool
    item: int
    watch: int


class SeeingWatcher(NamedTuple):
    """A watcher who sees or saw the item of an event."""

    place: int
    """The event's place in the batch."""
    before: bool
    item: int
    watch: Watch


def audience(watches: Iterable[Watch], items: Sequence[tuple[int, ItemEvent]]) -> list[SeeingWatcher]:
    """The watchers who see or saw the item of each event. Raises Django's database errors."""
    every = list(watches)
    if not every or not items:
        return []
    asked = event_params(items)
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
        into=_AudienceRow._make,
    )
    return [SeeingWatcher(row.place, row.before, row.item, every[row.watch - 1]) for row in rows]
