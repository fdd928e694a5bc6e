"""How much processor time does each act take from all processes together, and how many bytes does each row and key?

The units of docs/scaling.md, beside those that other benchmarks give. An act is the site's own function, called again
and again; its processor time is that of this process, of PostgreSQL and of Redis (`servers_time`), over the number of
calls. A row takes what its table takes with all indexes, over the number of rows; a task what its message takes in the
broker's list.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import cycle

import redis
from celery import current_app as app
from django.conf import settings
from django.db import connection

from accounts.models import User
from benchmarks.community import Community, materialise_inbox, users
from benchmarks.measure import Report, servers_time
from benchmarks.search import Writer, write
from discover.impressions import Impression, record, shard_of
from items import counts
from items.actions import like, publish
from items.models import Item
from items.query import parse
from items.search import search_items
from notifications.feed import notifications_page, unread_count
from storage import keys
from storage.connections import feeds, fetch, pipelined
from storage.queue import enqueue
from timeline import fanout
from timeline.home import home_page
from timeline.inbox import Inbox, Tail
from timeline.models import Delivery

WARM_UP = 10
ROWS = 20_000
"""Written of what the community has none."""
DOCUMENTS = 20_000
TASKS = 1_000
FOLLOWEES = 200

LIKES = """
    INSERT INTO items_like (user_id, item_id) SELECT u.id, i.id
    FROM (SELECT id FROM accounts_user ORDER BY id LIMIT %(each)s) u,
        (SELECT id FROM items_item WHERE status = 'published' ORDER BY id LIMIT %(items)s) i
    ON CONFLICT DO NOTHING
"""
# Four acts an entry, as of small items that some like.
NOTIFICATIONS = """
    WITH told AS (
        INSERT INTO notifications_notification (recipient_id, kind, item_id)
        SELECT sender_id, 'like', id FROM items_item WHERE status = 'published' ORDER BY id LIMIT %(count)s / 4
        ON CONFLICT DO NOTHING RETURNING id, recipient_id
    )
    INSERT INTO notifications_act (notification_id, recipient_id, actor_id)
    SELECT told.id, told.recipient_id, u.id FROM told, (SELECT id FROM accounts_user ORDER BY id LIMIT 4) u
"""
TABLES = {
    "user": ("accounts_user",),
    "follow": ("relations_follow",),
    "item": ("items_item",),
    "item's words for search": ("items_itemdocument",),
    "like": ("items_like",),
    "act in a notification": ("notifications_act", "notifications_notification"),
}


def run(community: Community) -> Report:
    """Run the benchmark, and return its report."""
    report = Report(
        "costs",
        __doc__.splitlines()[0],
        ["act or row", "CPU of all, ms", "of it this process", "bytes"],
        f"{community.size.cost_rounds} calls each; rows of {ROWS:,} and more",
    )
    _rows(report, community)
    _acts(report, community, community.size.cost_rounds)
    _fan_out(report, community)
    _tasks(report)
    return report


def _acts(report: Report, community: Community, rounds: int) -> None:
    people = users(community.readers[FOLLOWEES])
    items = cycle(Item.objects.published().order_by("-pk")[: rounds + WARM_UP])
    strangers = cycle(User.objects.order_by("pk")[100 : 100 + rounds + WARM_UP])
    turn = cycle(people)
    depth = {reader.pk: _floor(reader) for reader in people}

    def from_sql(_: int) -> object:
        reader = next(turn)
        pipelined(feeds(), [Tail(reader.pk).drop()])
        return home_page(reader, last_id=depth[reader.pk])

    acts: dict[str, Callable[[int], object]] = {
        "publish": lambda number: publish(sender=next(turn), content={"text": f"words {number}"}),
        "like": lambda _: like(user=next(strangers), item=next(items)),
        "a page of home below the inbox": from_sql,
        "build an inbox of level 3": lambda _: materialise_inbox(next(turn).pk),
        "a page of notifications": lambda _: notifications_page(next(strangers)),
        "the unread badge": lambda _: unread_count(next(strangers)),
        "a page of search": lambda _: search_items(parse("words"), next(turn)),
    }
    for name, act in acts.items():
        for number in range(WARM_UP):
            act(number)
        own, servers = time.process_time(), sum(servers_time())
        for number in range(rounds):
            act(number)
        own, servers = time.process_time() - own, sum(servers_time()) - servers
        report.rows.append([name, _ms((own + servers) / rounds), _ms(own / rounds), ""])
    app.control.purge()
    counts.fold()


def _floor(reader: User) -> int:
    """A position from which on PostgreSQL serves the reader's home."""
    last_id = None
    for _ in range(200):
        page = home_page(reader, last_id=last_id, limit=100)
        if "sql" in page.sources or not page.has_more:
            break
        last_id = page.last_id
    assert last_id
    return last_id


def _fan_out(report: Report, community: Community) -> None:
    """Whole fan-outs of the publisher whom most follow, over their deliveries."""
    followers = max(community.publishers)
    items = [_fresh(community.publishers[followers]) for _ in range(8)]
    own = servers = 0.0
    for number, item in enumerate(items):
        before = time.process_time(), sum(servers_time())
        fanout.fan_out(item)
        if number >= 2:
            own += time.process_time() - before[0]
            servers += sum(servers_time()) - before[1]
    each = (len(items) - 2) * followers
    report.rows.append([f"a delivery, of {followers:,}", _ms((own + servers) / each), _ms(own / each), ""])


def _fresh(publisher: int) -> int:
    item = Item.objects.create(sender_id=publisher, content={"text": "bench"})
    Delivery.objects.create(item=item, sender_id=publisher)
    return int(item.pk)


def _rows(report: Report, community: Community) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(LIKES, {"each": 200, "items": ROWS // 200})
        cursor.execute(NOTIFICATIONS, {"count": ROWS})
        cursor.execute("RESET session_replication_role")
    if fetch("SELECT count(*) FROM items_itemdocument")[0][0] < DOCUMENTS:
        write(Writer(), min(DOCUMENTS, community.size.items // 2))
    for name, tables in TABLES.items():
        size = count = 0
        for table in tables:
            with connection.cursor() as cursor:
                cursor.execute(f"VACUUM ANALYZE {table}")
            query = f"SELECT pg_total_relation_size('{table}'), (SELECT count(*) FROM {table})"  # noqa: S608
            ((taken, rows),) = fetch(query)
            size, count = size + taken, count or rows
        report.rows.append([f"{name} (row)", "", "", round(size / count)])
    inbox = feeds().memory_usage(Inbox(community.readers[FOLLOWEES][0]).key, samples=0)
    report.rows.append(["a full inbox of level 3 (key)", "", "", inbox])
    report.rows.append(["an impression of a day (key)", "", "", _impression(community.readers[FOLLOWEES][0])])


def _impression(reader: int) -> float:
    """The bytes of the filter of a day and shard, over the impressions that it is made for."""
    today = datetime.now(UTC).date()
    record([Impression(reader, today, range(1, 1_001))])
    held = feeds().memory_usage(keys.impressions(today, shard_of(reader)), samples=0) or 0
    return round(held / settings.IMPRESSION_CAPACITY, 2)


def _tasks(report: Report) -> None:
    """The cost of a task that waits; the queue is emptied after it."""
    broker = redis.Redis.from_url(settings.CACHE_URL.partition("?")[0])  # the same server, database 0
    queue = app.conf.task_default_queue
    app.control.purge()
    for number in range(TASKS):
        enqueue("timeline.fan_out", 10**15 + number)
    held = broker.memory_usage(queue, samples=0) or 0
    report.rows.append(["a task that waits (message)", "", "", round(held / TASKS)])
    app.control.purge()
    broker.close()


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 4)
