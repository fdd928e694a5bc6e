"""How many deliveries a second does one process make?

The limit: ZREMRANGEBYRANK and ZADD for the same followers as RESP bytes, two chunks in flight. `trimmed rarely` trims
as rarely as windows do. A peer uses redis-py's pipeline.

All windows are full, with lengths between cap and cap plus slack, so trims are as frequent as on a site.
"""

from collections.abc import Sequence
from itertools import product
from statistics import mean

import redis
from django.conf import settings
from django.db import connection

from benchmarks.community import Community, build_window, entries, fresh_item, materialise_inbox
from benchmarks.measure import BenchmarkReport, interleaved, over, span
from storage.connections import feeds_for_tasks, fetch
from storage.replies import borrowed_connection, reply_reader
from storage.window import PIPELINE_LENGTH, WindowEntry, deliver
from timeline import fanout
from timeline.inbox import Inbox, cap_of
from timeline.models import Delivery

TARGETS = {1_000: 0.7, 10_000: 0.85}
"""Least share of the limit's rate for a whole fan-out, by number of followers."""


def run(community: Community) -> BenchmarkReport:
    size = community.size
    report = BenchmarkReport(
        "fan_out",
        __doc__.splitlines()[0],
        ["followers", "level (cap)", "fan_out", "deliver", "raw ZADD + trim", "trimmed rarely", "redis-py pipeline"],
        f"{size.fan_out_rounds} rounds each; deliveries/s, means",
    )
    client = feeds_for_tasks()
    for level in sorted(settings.LEVEL_CAPS):
        fill(community, level, community.followers)
        for followers, publisher in community.publishers.items():
            _measure(report, community, publisher, followers, level)
    for pattern in ("rawin:*", "rarein:*"):
        for key in client.scan_iter(pattern, count=1000):
            client.unlink(key)
    report.figure("deliveries a second", span([float(row[2]) for row in report.rows]))
    return report


def fill(community: Community, level: int, followers: Sequence[int]) -> None:
    """Fill followers' windows, and the peers' keys.

    The site builds one window of every length between cap and cap plus slack. The server copies them.
    """
    client = feeds_for_tasks()
    cap, slack = cap_of(level), settings.WINDOW_SLACK
    with connection.cursor() as cursor:
        cursor.execute("UPDATE accounts_user SET level = %s WHERE id = ANY(%s)", [level, list(followers)])
        cursor.execute("VACUUM ANALYZE accounts_user")
    # A reader with the most followees has a full inbox.
    model = community.readers[max(community.readers)][0]
    materialise_inbox(model)
    held = entries(model)[:cap]
    newest, sender = held[0].item_id, held[0].sender_id
    padding = [WindowEntry(newest + place, sender) for place in range(slack, 0, -1)]
    for place in range(slack + 1):
        build_window(f"model:{place}", [*padding[slack - place :], *held])
        _zset(client, f"model:rare:{place}", [*padding[slack - place :], *held])
    _zset(client, "model:raw", held)
    pipeline = client.pipeline(transaction=False)
    for number, follower in enumerate(followers):
        pipeline.copy(f"model:{number % (slack + 1)}", Inbox(follower).key, replace=True)
        pipeline.copy("model:raw", raw_key(follower), replace=True)
        pipeline.copy(f"model:rare:{number % (slack + 1)}", rare_key(follower), replace=True)
        if number % 500 == 0:
            pipeline.execute()
    pipeline.execute()


def raw_key(follower: int) -> str:
    """A follower's key for the limit, as long as an inbox's key."""
    return f"rawin:{follower}"


def rare_key(follower: int) -> str:
    """A follower's key for the limit that trims rarely."""
    return f"rarein:{follower}"


def _zset(client: redis.Redis, key: str, held: Sequence[WindowEntry]) -> None:
    client.unlink(key)
    client.zadd(key, {entry.member: entry.item_id for entry in held})


def _measure(report: BenchmarkReport, community: Community, publisher: int, followers: int, level: int) -> None:
    client = feeds_for_tasks()
    people = community.followers[:followers]
    keys = [Inbox(follower).key for follower in people]
    cap = cap_of(level)
    caps = [cap] * followers
    rounds, warm_up = community.size.fan_out_rounds, 3
    count = rounds + warm_up
    items = [fresh_item(publisher) for _ in range(count)]
    peer = redis.Redis.from_url(settings.REDIS_URL)
    raw_keys = [raw_key(follower) for follower in people]
    rare_keys = [rare_key(follower) for follower in people]
    # In a row for each case, because a delivery measures the windows for one id in MEASURE_EVERY.
    ids = [row[0] for row in fetch("SELECT feedsite_next_id() FROM generate_series(1, %s)", [4 * count])]
    times = interleaved(
        {
            "fan_out": lambda number: fanout.fan_out(items[number].pk),
            "deliver": lambda number: deliver(client, WindowEntry(ids[number], publisher), keys, caps),
            "raw": lambda number: raw(client, ids[count + number], publisher, raw_keys, cap),
            "trimmed rarely": lambda number: rarely(client, ids[2 * count + number], publisher, rare_keys, cap, number),
            "redis-py": lambda number: by_redis_py(peer, ids[3 * count + number], publisher, raw_keys, cap),
        },
        rounds=rounds,
        warm_up=warm_up,
    )
    last = Inbox(people[-1]).key
    newest = f"{publisher}:{items[-1].pk}"
    assert client.zscore(last, newest) is not None, "the last follower's inbox lacks the item"
    assert not Delivery.objects.filter(sender_id=publisher).exists(), "a fan-out was not completed"
    rates = {name: followers / mean(seconds) for name, seconds in times.items()}
    report.rows.append([followers, f"{level} ({cap})", *(round(rates[name]) for name in times)])
    for name, limit in product(("deliver", "fan_out"), ("raw", "trimmed rarely")):
        target = TARGETS.get(followers) if (name, limit) == ("fan_out", "raw") else None
        ratio = 1 / over(times, name, limit, mean)
        report.ratio(f"{name} / {limit}, {followers:,} followers, level {level}", ratio, at_least=target)
    report.ratio(
        f"fan_out / redis-py, {followers:,} followers, level {level}", 1 / over(times, "fan_out", "redis-py", mean)
    )


def raw(client: redis.Redis, item_id: int, publisher: int, keys: Sequence[str], cap: int) -> None:
    """Write an item by a trim by rank and a ZADD for each key, as bytes."""
    add, trim = _templates(item_id, publisher, cap)
    both = trim + add
    _send(client, [both % ((len(key), key.encode()) * 2) for key in keys], 2)


def rarely(client: redis.Redis, item_id: int, publisher: int, keys: Sequence[str], cap: int, number: int) -> None:
    """Write an item, and trim only keys that have used up their slack."""
    add, trim = _templates(item_id, publisher, cap)
    slack = settings.WINDOW_SLACK
    adds = [add % (len(key), key.encode()) for key in keys]
    full = keys[(slack - number) % (slack + 1) :: slack + 1]
    _send(client, adds + [trim % (len(key), key.encode()) for key in full], 1)


def _templates(item_id: int, publisher: int, cap: int) -> tuple[bytes, bytes]:
    score, member = b"%d" % item_id, b"%d:%d" % (publisher, item_id)
    above = b"%d" % -cap
    add = b"*4\r\n$4\r\nZADD\r\n$%%d\r\n%%b\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n"
    trim = b"*4\r\n$15\r\nZREMRANGEBYRANK\r\n$%%d\r\n%%b\r\n$1\r\n0\r\n$%d\r\n%b\r\n"
    return add % (len(score), score, len(member), member), trim % (len(above), above)


def _send(client: redis.Redis, parts: Sequence[bytes], each: int) -> None:
    """Send the parts in chunks. Reads `each` replies per part while the next chunk is under way."""
    waiting = 0
    with borrowed_connection(client) as connection:
        read = reply_reader(connection)
        for first in range(0, len(parts), PIPELINE_LENGTH):
            chunk = parts[first : first + PIPELINE_LENGTH]
            connection.send_packed_command([b"".join(chunk)])
            read(waiting)
            waiting = each * len(chunk)
        read(waiting)


def by_redis_py(client: redis.Redis, item_id: int, publisher: int, keys: list[str], cap: int) -> None:
    """Write an item by redis-py's pipeline."""
    entry = {f"{publisher}:{item_id}": item_id}
    for first in range(0, len(keys), PIPELINE_LENGTH):
        pipeline = client.pipeline(transaction=False)
        for key in keys[first : first + PIPELINE_LENGTH]:
            pipeline.zremrangebyrank(key, 0, -cap)
            pipeline.zadd(key, entry)
        pipeline.execute()
