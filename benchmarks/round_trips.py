"""How many queries and round trips does a page cost?

Counted where they happen: statements that psycopg sends, and packets that redis-py sends (a pipeline is one). Over
HTTP, authentication is one query more, and the rate limit one round trip more.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import psycopg
from django.test import Client
from redis.connection import AbstractConnection

from accounts.actions import issue_token
from accounts.levels import touch
from accounts.models import User
from benchmarks.community import Community, materialise_inbox, users
from benchmarks.depth import FOLLOWEES, first_below, walk
from benchmarks.measure import Report
from items.models import Item, Status
from storage.connections import feeds, feeds_for_tasks, pipelined
from storage.window import Entry, deliver
from timeline.home import home_page
from timeline.inbox import Inbox, Tail, cap_of
from timeline.models import Delivery

TARGET = 2


class Counter:
    """The queries, round trips and messages of a stretch of code, counted."""

    def __init__(self) -> None:
        self.queries = 0
        self.round_trips = 0
        self.messages = 0


@contextmanager
def counted() -> Iterator[Counter]:
    """Count statements, round trips to feeds and cache, and messages to the broker, in this process."""
    counter = Counter()
    execute, send = psycopg.Cursor.execute, AbstractConnection.send_packed_command

    def counting_execute(self: Any, *args: Any, **options: Any) -> Any:
        counter.queries += 1
        return execute(self, *args, **options)

    def counting_send(self: Any, *args: Any, **options: Any) -> Any:
        if "broker" in str(getattr(self, "path", "")):
            counter.messages += 1
        else:
            counter.round_trips += 1
        return send(self, *args, **options)

    with (
        patch.object(psycopg.Cursor, "execute", counting_execute),
        patch.object(AbstractConnection, "send_packed_command", counting_send),
    ):
        yield counter


def run(community: Community) -> Report:
    """Run the benchmark, and return its report."""
    report = Report(
        "round_trips",
        __doc__.splitlines()[0],
        ["page", "served by", "SQL queries", "Redis round trips"],
        "each case once, on warm connections",
    )

    def case(name: str, read: Callable[[], Any], *, besides: tuple[int, int] = (0, 0)) -> None:
        with counted() as counter:
            page = read()
        source = page["X-Feed-Source"] if hasattr(page, "status_code") else ",".join(page.sources)
        report.rows.append([name, source, counter.queries, counter.round_trips])
        report.ratio(f"SQL queries: {name}", counter.queries - besides[0], at_most=TARGET)
        report.ratio(f"Redis round trips: {name}", counter.round_trips - besides[1], at_most=TARGET)

    reader = users(community.readers[FOLLOWEES])[0]
    home_page(reader)
    case("first page from the inbox", lambda: home_page(reader))
    steps = walk(reader)
    below = first_below(steps)
    case("page 10 from the inbox", lambda: home_page(reader, last_id=steps[9][0]))
    pipelined(feeds(), [Tail(reader.pk).drop()])
    case("first page past the floor", lambda: home_page(reader, last_id=steps[below][0]))
    case("page after it, from the tail", lambda: home_page(reader, last_id=steps[below + 1][0]))
    for count, hybrids in community.hybrids.items():
        hybrid = users(hybrids)[0]
        home_page(hybrid)
        case(f"with {count} outboxes", lambda hybrid=hybrid: home_page(hybrid))
    item = publish_quietly(reader, delivered=False)
    case("with a pending delivery", lambda: home_page(reader))
    Delivery.objects.all().delete()
    deliver_to_own_inbox(item)
    Item.objects.filter(pk=item.pk).update(status=Status.DELETED)
    home_page(users(community.readers[FOLLOWEES])[1])  # another page has heard of the delivery that was completed
    case("with a deleted item in the inbox", lambda: home_page(reader))
    original = Item.objects.filter(status=Status.PUBLISHED).exclude(sender=reader).latest("pk")
    item = publish_quietly(reader, repost_of=original)
    case("with a repost", lambda: home_page(reader))
    Item.objects.filter(pk=item.pk).update(status=Status.DELETED)
    home_page(reader)
    pipelined(feeds(), [Inbox(reader.pk).drop(), Tail(reader.pk).drop()])
    case("cold: no inbox", lambda: home_page(reader))
    materialise_inbox(reader.pk)
    User.objects.filter(pk=reader.pk).update(last_seen_at=None, level=0)
    case("cold: a dormant reader comes back", lambda: home_page(reader))
    touch([reader.pk])
    materialise_inbox(reader.pk)
    with over_http(reader) as get:
        get()
        case("over HTTP (less authentication and rate)", get, besides=(1, 1))
    return report


def publish_quietly(sender: User, *, repost_of: Item | None = None, delivered: bool = True) -> Item:
    """An item of the reader's own, without workers: in the windows, or pending."""
    item = Item.objects.create(sender=sender, content={"text": "bench"}, repost_of=repost_of)
    if delivered:
        deliver_to_own_inbox(item)
    else:
        Delivery.objects.create(item=item, sender=sender)
    return item


def deliver_to_own_inbox(item: Item) -> None:
    """Deliver an item to its sender's inbox."""
    entry = Entry(item.pk, item.sender_id)
    deliver(feeds_for_tasks(), entry, [Inbox(item.sender_id).key], [cap_of(item.sender.level)])


@contextmanager
def over_http(reader: User) -> Iterator[Callable[[], Any]]:
    """Ask for the page through the whole stack, in this process."""
    token = issue_token(user=reader)
    client = Client(headers={"Authorization": f"Token {token}", "Host": "localhost"})
    yield lambda: client.get("/api/v1/timeline/home")
