"""Events for Mastodon's clients, as server-sent events or WebSocket messages.

The protocol cannot say that events may be missing: connections end then, and clients ask when they return.

See docs/decisions.md: Apps hear the same bytes.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeVar

import msgspec
from django.contrib.auth.models import AnonymousUser

from accounts.models import QuotableBy, User
from clientapi.entities import Status
from clientapi.notifications import notices
from clientapi.paging import PageParams
from clientapi.statuses.presenting import Presenter, conversations, filter_results
from clientapi.streaming.streams import ClientHearer, Stream
from items.bodies import ItemBody, Quote
from items.conversations.conversations import listed_among
from items.filters.book import FilterCache
from items.filters.filters import FilterRule
from items.hydrate import QUOTING, hydrate, marks, quote_state, quoted_in
from items.quotes import is_own_quotable, quote_policy
from items.threads.muting import in_muted_thread
from items.visibility import for_mentioned, visible
from relations.rules import blocks, follows, is_wanted
from storage import ids
from storage.connections import fetch, id_array
from storage.events import (
    Edited,
    Entry,
    FiltersChanged,
    ItemEvent,
    Listener,
    ManyNotified,
    Notified,
    Position,
    Published,
    Withdrawn,
)
from stream import news, watching
from stream.dialects import Dialect, Message
from stream.watching import Watch

UPDATE, STATUS_UPDATE, DELETE, CONVERSATION = "update", "status.update", "delete", "conversation"
NOTIFIED = 20
"""Maximum notifications sent per event."""
UNDEFINED = b"undefined"
"""Data of an event without data, as Mastodon sends it. Browsers drop an event with empty data, and Mastodon.py fails.
"""
LATE = timedelta(seconds=5)
"""A notification older than its event by more than this is not new."""
UNIX = datetime(1970, 1, 1, tzinfo=UTC)
KNOWN = 20_000
"""For this number of readers, a process remembers the newest sent notification."""
HEARTBEAT = b":thump\n"
SOCKET_HEARTBEAT = b'{"stream":[],"event":"heartbeat","payload":"{}"}'
"""The server sends no pings of its own. Apps may fail on an empty message, on one without a list of streams, and on a
payload that is not JSON (masto.js). They ignore messages for none of their streams.
"""
SOCKET_QUIET_SECONDS = 30.0
"""A quiet socket gets a heartbeat this often, as in Mastodon."""
T = TypeVar("T")

_encode = msgspec.json.Encoder().encode

# OFFSET 0 forces a probe per item instead of a scan of everything that the readers liked.
MARKS = f"""
    SELECT met.* FROM unnest(%(readers)s::bigint[], %(items)s::bigint[]) AS pair (reader, item)
    JOIN items_item i ON i.id = pair.item
    CROSS JOIN LATERAL (
        SELECT pair.reader, pair.item, {marks("coalesce(i.repost_of_id, i.id)", "pair.reader")},
            {in_muted_thread("pair.reader", "said")}
        FROM items_item said WHERE said.id = coalesce(i.repost_of_id, i.id) OFFSET 0
    ) AS met (reader, item, is_liked, is_reposted, is_bookmarked, is_muted)
    WHERE met.is_liked OR met.is_reposted OR met.is_bookmarked OR met.is_muted
"""
FILTERING = """
    SELECT id, filters_version FROM accounts_user WHERE id = ANY(%(readers)s::bigint[]) AND filters_version <> 0
"""
BLOCKED = f"""
    SELECT pair.reader, pair.named FROM unnest(%(readers)s::bigint[], %(named)s::bigint[]) AS pair (reader, named)
    WHERE {blocks("pair.named", "pair.reader")}
"""
# Each item is read once for all its readers. OFFSET 0 forces a probe per item instead of a scan of all items.
ASKED = """
    (SELECT pair.item, array_agg(pair.reader) AS readers
    FROM unnest(%(readers)s::bigint[], %(items)s::bigint[]) AS pair (reader, item) GROUP BY pair.item) asked
"""
ANSWERED = f"""
    SELECT answered.* FROM {ASKED} CROSS JOIN LATERAL (
        SELECT pair.reader, i.id, i.sender_id FROM items_item i JOIN accounts_user s ON s.id = i.sender_id
            CROSS JOIN unnest(asked.readers) AS pair (reader)
        WHERE i.id = asked.item AND {visible("i", "s", "pair.reader")} OFFSET 0
    ) AS answered
"""
QUOTES = f"""
    SELECT quote.* FROM {ASKED} CROSS JOIN LATERAL (
        SELECT pair.reader, i.id, {quote_state("pair.reader")}
        FROM {QUOTING} CROSS JOIN unnest(asked.readers) AS pair (reader) WHERE i.id = asked.item OFFSET 0
    ) AS quote
"""
# A conversation that a sender's message does not list for the reader is not told of either
# (items.conversations.recipients).
CONVERSATIONS = f"""
    SELECT p.user_id, p.conversation_id, max(event.place)
    FROM unnest(%(places)s::int[], %(items)s::bigint[]) AS event (place, item) JOIN items_item i ON i.id = event.item
    JOIN items_participant p ON p.conversation_id = coalesce(i.conversation_id, i.id)
    WHERE {for_mentioned("i")} AND (p.user_id = ANY(%(readers)s::bigint[])) IS TRUE AND p.last >= i.id
        AND (p.user_id = i.sender_id OR {is_wanted("p.user_id", "i.sender_id")})
    GROUP BY 1, 2
"""
FOLLOWS = f"""
    SELECT pair.reader, pair.sender FROM unnest(%(readers)s::bigint[], %(senders)s::bigint[]) AS pair (reader, sender)
    WHERE {follows("pair.reader", "pair.sender")}
"""
Marks = tuple[bool, bool, bool, bool]
Answered = frozenset[tuple[str, str]]
"""Replied-to items with their senders."""
UNMARKED: Marks = (False, False, False, False)


class StreamEvent(NamedTuple):
    """An event of an item for one stream of a hearer."""

    place: int
    """Index of the event in the batch."""
    kind: str
    item: int
    hearer: ClientHearer
    stream: Stream


# --- Bytes -----------------------------------------------------------------------------------------------
def message(hearer: ClientHearer, stream: Stream, kind: str, payload: bytes | None) -> bytes:
    """An event in the format of the connection: a socket message or a server-sent event."""
    if not hearer.is_socket:
        return b"event: %s\ndata: %s\n\n" % (kind.encode(), UNDEFINED if payload is None else payload)
    told = {"stream": list(stream.name), "event": kind}
    if payload is not None:
        told["payload"] = payload.decode()
    return _encode(told)


def heartbeat(hearer: ClientHearer, _position: Position | None, quiet: float) -> bytes:
    """What keeps a quiet connection open. In a socket it is a message for no stream."""
    if not hearer.is_socket:
        return HEARTBEAT
    return SOCKET_HEARTBEAT if quiet >= SOCKET_QUIET_SECONDS else b""


# --- A batch -------------------------------------------------------------------------------------------
def messages_for(hearers: Iterable[ClientHearer], entries: Sequence[Entry]) -> list[Message]:
    """The messages that a batch of events gives these hearers, in order. Raises Django's database errors."""
    everyone = list(hearers)
    events = [
        (place, event) for place, (_, event) in enumerate(entries) if isinstance(event, (Published, Edited, Withdrawn))
    ]
    told = [*_home_events(everyone, events), *_watched_events(everyone, events)] if everyone and events else []
    payloads = _payloads(told)
    messages: list[tuple[int, ClientHearer, bytes]] = []
    for one in told:
        payload = payloads.of(one)
        if payload is not None:
            messages.append((one.place, one.hearer, message(one.hearer, one.stream, one.kind, payload)))
    messages += _conversations(everyone, events)
    messages += _personal(everyone, entries)
    messages.sort(key=lambda one: one[0])
    return [(hearer, entries[place][0], data) for place, hearer, data in messages]


def _home_events(hearers: Sequence[ClientHearer], events: Sequence[tuple[int, ItemEvent]]) -> Iterator[StreamEvent]:
    homes: dict[int, list[tuple[ClientHearer, Stream]]] = {}
    for hearer in hearers:
        for stream in hearer.streams:
            if stream.has_home:
                homes.setdefault(hearer.reader, []).append((hearer, stream))
    if not homes:
        return
    hits, _replies, outside = news.audience({Listener(reader) for reader in homes}, events)
    for place, event in events:
        now = hits.get((place, False), set()) - outside.get(place, set())
        before = hits.get((place, True), set()) - outside.get(place, set())
        for reader, kind in _event_kinds(event, {one.reader for one in now}, {one.reader for one in before}):
            for hearer, stream in homes[reader]:
                yield StreamEvent(place, kind, event.item, hearer, stream)


def _watched_events(hearers: Sequence[ClientHearer], events: Sequence[tuple[int, ItemEvent]]) -> Iterator[StreamEvent]:
    watchers: dict[Watch, list[tuple[ClientHearer, Stream]]] = {}
    for hearer in hearers:
        for stream in hearer.streams:
            if stream.is_public or stream.tag or stream.list_id:
                watch = Watch(hearer.reader, stream.tag, stream.list_id)
                watchers.setdefault(watch, []).append((hearer, stream))
    sees: dict[tuple[int, bool], set[Watch]] = {}
    for seen in watching.audience(watchers, events):
        sees.setdefault((seen.place, seen.before), set()).add(seen.watch)
    for place, event in events:
        now, before = sees.get((place, False), set()), sees.get((place, True), set())
        for watch, kind in _event_kinds(event, now, before):
            for hearer, stream in watchers[watch]:
                yield StreamEvent(place, kind, event.item, hearer, stream)


def _conversations(
    hearers: Sequence[ClientHearer], events: Sequence[tuple[int, ItemEvent]]
) -> Iterator[tuple[int, ClientHearer, bytes]]:
    listening: dict[int, list[tuple[ClientHearer, Stream]]] = {}
    for hearer in hearers:
        for stream in hearer.streams:
            if stream.has_conversations:
                listening.setdefault(hearer.reader, []).append((hearer, stream))
    if not listening or not events:
        return
    params = {
        "places": id_array(place for place, _ in events),
        "items": id_array(event.item for _, event in events),
        "readers": id_array(listening),
    }
    places: dict[int, dict[int, int]] = {}
    for reader_id, conversation_id, place in fetch(CONVERSATIONS, params):
        places.setdefault(reader_id, {})[conversation_id] = place
    for reader in User.objects.active().filter(pk__in=places):
        found = listed_among(reader, places[reader.pk])
        for shown in conversations(found, reader):
            payload = _encode(shown)
            for hearer, stream in listening[reader.pk]:
                place = places[reader.pk][int(shown.id)]
                yield place, hearer, message(hearer, stream, CONVERSATION, payload)


def _event_kinds(event: ItemEvent, now: set[T], before: set[T]) -> Iterator[tuple[T, str]]:
    """Who hears which kind of event. Who sees the item now hears of it, others who saw it that it is gone."""
    seen = UPDATE if isinstance(event, Published) else STATUS_UPDATE
    yield from ((one, seen) for one in now)
    if not isinstance(event, Published):
        yield from ((one, DELETE) for one in before - now)


# --- Statuses ------------------------------------------------------------------------------------------
class QuoteForReader(NamedTuple):
    """The state of a quote for a reader, and the reader's marks on the quoted item."""

    state: str
    marks: Marks = UNMARKED


class StatusShape(NamedTuple):
    """What the bytes of a status depend on besides the reader's filters. Equal shapes get the same bytes."""

    item: int
    marks: Marks = UNMARKED
    hidden: frozenset[str] = frozenset()
    """Mentioned names of accounts that block the reader."""
    answered: Answered = frozenset()
    inside: QuoteForReader | None = None
    quotable: frozenset[str] = frozenset()
    """The ids of the item and its quoted item, if the reader may quote them."""


class Payloads(NamedTuple):
    """The statuses of a batch as JSON, by item and reader. Deleted items are missing."""

    by_pair: dict[tuple[int, int], bytes]
    pictured: set[int]
    """Items with pictures."""

    def of(self, one: StreamEvent) -> bytes | None:
        """The payload of an event. None if the hearer's stream does not include the item."""
        if one.kind == DELETE:
            return str(one.item).encode()
        if one.stream.only_media and one.item not in self.pictured:
            return None
        return self.by_pair.get((one.item, one.hearer.reader))


def _payloads(told: Sequence[StreamEvent]) -> Payloads:
    pairs = {(one.item, one.hearer.reader) for one in told if one.kind != DELETE}
    if not pairs:
        return Payloads({}, set())
    items = {int(item.id): item for item in hydrate(sorted({item for item, _ in pairs}), AnonymousUser())}
    pairs = {pair for pair in pairs if pair[0] in items}
    quoting = [item.shown for item in items.values() if item.shown.quote]
    quoted = quoted_in(quoting, AnonymousUser())
    for item in quoting:
        item.quote = Quote(quoted[item.id][0].id, quoted[item.id][0], "accepted")  # shown to readers who may see it
    presenter = Presenter(list(items.values()), AnonymousUser())
    shapes = _shapes(pairs, items, presenter)
    shown = {shape: _status_of_shape(shape, items[shape.item], presenter) for shape in set(shapes.values())}
    encoded = {shape: _encode(status) for shape, status in shown.items()}
    payloads = {pair: encoded[shape] for pair, shape in shapes.items()}
    sees = {pair for pair, shape in shapes.items() if shape.inside and shape.inside.state == "accepted"}
    for pair, met in _matching_filters(pairs, items, sees).items():
        payloads[pair] = _encode(_with_filters(shown[shapes[pair]], met))
    return Payloads(payloads, {item_id for item_id, item in items.items() if item.media})


def _shapes(
    pairs: Collection[tuple[int, int]], items: Mapping[int, ItemBody], presenter: Presenter
) -> dict[tuple[int, int], StatusShape]:
    marked = _marks(pairs)
    hidden = _hidden(pairs, {item_id: presenter.names(item) for item_id, item in items.items()})
    answered, inside, quotable = (
        _visible_replied_to(pairs, items),
        _quotes_for_readers(pairs, items),
        _quotable(pairs, items),
    )
    return {
        pair: StatusShape(
            pair[0],
            marked.get(pair, UNMARKED),
            hidden.get(pair, frozenset()),
            answered.get(pair, frozenset()),
            inside.get(pair),
            quotable[pair],
        )
        for pair in pairs
    }


def _status_of_shape(shape: StatusShape, item: ItemBody, presenter: Presenter) -> Status:
    seen, muted = _marked(item, shape.marks), {item.shown.id} if shape.marks[3] else set()
    if shape.inside and seen.shown.quote and seen.shown.quote.item:
        whole = _marked(seen.shown.quote.item, shape.inside.marks)
        muted |= {whole.id} if shape.inside.marks[3] else set()
        is_seen = shape.inside.state == "accepted"
        seen.shown.quote = Quote(whole.id, whole if is_seen else None, shape.inside.state)  # type: ignore[arg-type]
    return presenter.for_readers(shape.hidden, dict(shape.answered), shape.quotable, frozenset(muted)).status(seen)


def _quotes(items: Mapping[int, ItemBody]) -> dict[int, ItemBody]:
    shown = {item_id: item.shown.quote for item_id, item in items.items()}
    return {item_id: quote.item for item_id, quote in shown.items() if quote and quote.item}


def _parts(items: Mapping[int, ItemBody]) -> dict[int, list[ItemBody]]:
    """Each item with the item that it quotes."""
    quoted = _quotes(items)
    return {item_id: [item.shown, *filter(None, [quoted.get(item_id)])] for item_id, item in items.items()}


def _quotes_for_readers(
    pairs: Collection[tuple[int, int]], items: Mapping[int, ItemBody]
) -> dict[tuple[int, int], QuoteForReader]:
    quoted = _quotes(items)
    asked = {(int(items[item].shown.id), reader) for item, reader in pairs if item in quoted}
    if not asked:
        return {}
    rows = fetch(
        QUOTES, {"readers": id_array(reader for _, reader in asked), "items": id_array(item for item, _ in asked)}
    )
    states = {(item, reader): state for reader, item, state in rows}
    marked = _marks({(int(quoted[item].id), reader) for item, reader in pairs if item in quoted})
    return {
        (item, reader): QuoteForReader(
            states[int(items[item].shown.id), reader], marked.get((int(quoted[item].id), reader), UNMARKED)
        )
        for item, reader in pairs
        if item in quoted
    }


def _quotable(
    pairs: Collection[tuple[int, int]], items: Mapping[int, ItemBody]
) -> dict[tuple[int, int], frozenset[str]]:
    """By item and reader: the ids of the item and its quoted item, if the reader may quote them."""
    parts = _parts(items)
    asked = {
        (reader, int(part.sender.id))
        for item, reader in pairs
        for part in parts[item]
        if quote_policy(part) == QuotableBy.FOLLOWERS
    }
    params = {"readers": id_array(reader for reader, _ in asked), "senders": id_array(sender for _, sender in asked)}
    following = {(reader, str(sender)) for reader, sender in (fetch(FOLLOWS, params) if asked else ())}

    def may(reader: int, part: ItemBody) -> bool:
        who = quote_policy(part)
        is_follower = who == QuotableBy.FOLLOWERS and (reader, part.sender.id) in following
        return is_own_quotable(part, reader) or who == QuotableBy.EVERYONE or is_follower

    return {(item, reader): frozenset(part.id for part in parts[item] if may(reader, part)) for item, reader in pairs}


def _marks(pairs: Collection[tuple[int, int]]) -> dict[tuple[int, int], Marks]:
    rows = fetch(
        MARKS, {"items": id_array(item for item, _ in pairs), "readers": id_array(reader for _, reader in pairs)}
    )
    return {(item, reader): tuple(did) for reader, item, *did in rows}


def _marked(item: ItemBody, did: Marks) -> ItemBody:
    fields = dict(zip(("liked", "reposted", "bookmarked"), did[:3], strict=True))
    original = msgspec.structs.replace(item.repost_of, **fields) if item.repost_of else None
    return msgspec.structs.replace(item, repost_of=original, **fields)


def _hidden(
    pairs: Collection[tuple[int, int]], names: Mapping[int, Mapping[str, str]]
) -> dict[tuple[int, int], frozenset[str]]:
    """By item and reader: the mentioned accounts that block the reader."""
    asked = {(reader, int(user)) for item, reader in pairs for user in names[item].values()}
    if not asked:
        return {}
    rows = fetch(
        BLOCKED, {"readers": id_array(reader for reader, _ in asked), "named": id_array(named for _, named in asked)}
    )
    blocked = {(reader, str(named)) for reader, named in rows}
    found = {
        (item, reader): frozenset(name for name, user in names[item].items() if (reader, user) in blocked)
        for item, reader in pairs
    }
    return {pair: hidden for pair, hidden in found.items() if hidden} if blocked else {}


def _visible_replied_to(
    pairs: Collection[tuple[int, int]], items: Mapping[int, ItemBody]
) -> dict[tuple[int, int], Answered]:
    """By item and reader: the replied-to items that the reader may see, with their senders."""
    parts = _parts(items)
    replies = {item_id: {part.reply_to for part in some if part.reply_to} for item_id, some in parts.items()}
    asked = {(reader, int(reply_to)) for item, reader in pairs for reply_to in replies[item]}
    if not asked:
        return {}
    rows = fetch(
        ANSWERED, {"readers": id_array(reader for reader, _ in asked), "items": id_array(item for _, item in asked)}
    )
    senders = {(reader, str(item)): str(sender) for reader, item, sender in rows}
    return {
        (item, reader): frozenset((one, senders[reader, one]) for one in replies[item] if (reader, one) in senders)
        for item, reader in pairs
    }


# --- Filters -------------------------------------------------------------------------------------------
book = FilterCache()


def _matching_filters(
    pairs: Collection[tuple[int, int]], items: Mapping[int, ItemBody], sees: Collection[tuple[int, int]]
) -> dict[tuple[int, int], list[FilterRule]]:
    """By item and reader: the filter rules that match. `sees`: pairs whose reader sees the quoted item."""
    versions = dict(fetch(FILTERING, {"readers": id_array({reader for _, reader in pairs})}))
    if not versions:
        return {}
    book.load_missing(versions)
    readers: dict[int, list[int]] = {}
    for item, reader in pairs:
        if reader in versions:
            readers.setdefault(item, []).append(reader)
    return {
        (item, reader): rules
        for item, some in readers.items()
        for reader, rules in book.matching_rules(
            items[item], some, [one for one in some if (item, one) in sees]
        ).items()
    }


def _with_filters(status: Status, met: Sequence[FilterRule]) -> Status:
    results = filter_results(met)
    reblog = msgspec.structs.replace(status.reblog, filtered=results) if status.reblog else None
    return msgspec.structs.replace(status, filtered=results, reblog=reblog)


# --- News of one user ---------------------------------------------------------------------------------
def _personal(hearers: Sequence[ClientHearer], entries: Sequence[Entry]) -> Iterator[tuple[int, ClientHearer, bytes]]:
    by_reader: dict[int, list[ClientHearer]] = {}
    for hearer in hearers:
        by_reader.setdefault(hearer.reader, []).append(hearer)
    for place, (position, event) in enumerate(entries):
        match event:
            case Notified(user, _):
                yield from _notification_messages(place, position, user, by_reader.get(user, []))
            case ManyNotified(payloads):
                for user in payloads.keys() & by_reader.keys():
                    yield from _notification_messages(place, position, user, by_reader[user])
            case FiltersChanged(user):
                for hearer in by_reader.get(user, []):
                    for stream in hearer.streams:
                        if stream.has_home:
                            yield place, hearer, message(hearer, stream, "filters_changed", None)


class LastNotified:
    """The newest notification sent to each of `KNOWN` readers. For one thread only."""

    def __init__(self) -> None:
        self._of: OrderedDict[int, int] = OrderedDict()

    def after(self, reader: int, position: Position) -> int:
        """The id above which a reader's notifications are new at the position."""
        age = timedelta(milliseconds=position.milliseconds) - LATE - (ids.EPOCH - UNIX)
        return max(self._of.get(reader, 0), max(age // ids.MILLISECOND, 0) << ids.SEQUENCE_BITS)

    def note(self, reader: int, notice: int) -> None:
        """Remember the newest notification sent to a reader."""
        self._of[reader] = notice
        self._of.move_to_end(reader)
        if len(self._of) > KNOWN:
            self._of.popitem(last=False)


last_notified = LastNotified()


def _notification_messages(
    place: int, position: Position, user_id: int, hearers: Sequence[ClientHearer]
) -> Iterator[tuple[int, ClientHearer, bytes]]:
    """The messages of a reader's new notifications, oldest first. Of more than `NOTIFIED`, the oldest are not sent."""
    listening = [(hearer, stream) for hearer in hearers for stream in hearer.streams if stream.has_notifications]
    reader = User.objects.active().filter(pk=user_id).first() if listening else None
    if reader is None:
        return
    after = last_notified.after(user_id, position)
    news = notices.page(reader, PageParams(NOTIFIED, since_id=after)).acts
    if not news:
        return
    last_notified.note(user_id, news[0].id)
    for shown in notices.presented(news[::-1], reader):
        payload = _encode(shown)
        for hearer, stream in listening:
            yield place, hearer, message(hearer, stream, "notification", payload)


CLIENTS = Dialect("apps", messages_for, None, heartbeat)
