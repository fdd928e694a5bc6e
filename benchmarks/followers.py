"""Senders with a thousand to a million followers, for what is asked about growth.

The followers of the smaller senders are among those of the larger. Each has a window; it holds a few entries, for
full ones of a million would need 80 GB. Every sender has some readers of their own besides, whose inboxes are full.
"""

import time
from collections.abc import Iterable, Sequence

from celery import current_app as app
from django.db import connection

from accounts.models import User
from benchmarks.community import (
    FIRST_FOLLOWER,
    FIRST_PUBLISHER,
    FIRST_READER,
    FOLLOW_PUBLISHER,
    FOLLOW_SENDERS,
    ITEMS,
    USERS,
    build_window,
    materialise_inbox,
)
from benchmarks.fan_out import raw_key
from benchmarks.ground import Size, emptied
from storage.connections import feeds_for_tasks, fetch, pipelined
from storage.window import Entry
from timeline import active_fans, fanout
from timeline.inbox import Inbox
from timeline.models import Delivery, DeliveryRange

OWN_ITEMS = 5
"""Newest items of each sender: a page of their readers shows these, and others' below."""
CHUNK = 10_000


class Followers:
    """The data set, and who of it plays which part."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.publishers = {count: FIRST_PUBLISHER + place for place, count in enumerate(size.growth_followers)}
        """By the number of their followers: the first ones of ..."""
        self.followers = range(FIRST_FOLLOWER, FIRST_FOLLOWER + max(size.growth_followers))
        fewest = size.growth_followers[1]
        self.active = self.followers[:fewest][:: fewest // size.active][: size.active]
        """Followers at level 3, spread among those of all senders but the smallest; all others are at level 1."""
        free = iter(range(FIRST_READER, FIRST_PUBLISHER))
        self.readers = {count: [next(free) for _ in range(size.readers)] for count in size.growth_followers}
        """Besides them, by the number of followers of one whom they follow."""
        self.seconds = 0.0

    def build(self) -> None:
        """Generate everything, in place of earlier data."""
        begin = time.perf_counter()
        size = self.size
        emptied(find_people=False)
        readers = [reader for some in self.readers.values() for reader in some]
        with connection.cursor() as cursor:
            cursor.execute("SELECT setseed(0.25)")
            # The rows refer to each other by construction.
            cursor.execute("SET session_replication_role = replica")
            for first, count, level in (
                (1, size.growth_senders, 3),
                (FIRST_READER, len(readers), 3),
                (FIRST_PUBLISHER, len(self.publishers), 3),
                (FIRST_FOLLOWER, len(self.followers), 1),
            ):
                cursor.execute(USERS, {"first": first, "count": count, "level": level, "big_vs": 0})
            cursor.execute("UPDATE accounts_user SET level = 3 WHERE id = ANY(%s)", [list(self.active)])
            cursor.execute("SELECT setval(pg_get_serial_sequence('accounts_user', 'id'), max(id)) FROM accounts_user")
            cursor.execute(ITEMS, {"items": size.growth_items, "senders": size.growth_senders})
            some = {"first": 1, "last": size.growth_senders, "count": min(50, size.growth_senders)}
            cursor.execute(FOLLOW_SENDERS, some | {"readers": readers})
            for count, publisher in self.publishers.items():
                for first, followers in ((self.followers.start, count), (self.readers[count][0], size.readers)):
                    cursor.execute(FOLLOW_PUBLISHER, {"publisher": publisher, "first": first, "count": followers})
            cursor.execute(
                """
                INSERT INTO items_item (id, sender_id, type, title, content, extra_info, status, visibility,
                    modified_at)
                SELECT feedsite_next_id(), sender, 'text', '', '{"text": "mine"}', '{}', 'published', 'public', now()
                FROM unnest(%s::bigint[]) AS sender, generate_series(1, %s)
                """,
                [list(self.publishers.values()), OWN_ITEMS],
            )
            cursor.execute(
                """
                UPDATE accounts_user u SET follower_count = counted.followers
                FROM (SELECT followee_id, count(*) AS followers FROM relations_follow GROUP BY followee_id) counted
                WHERE u.id = counted.followee_id
                """
            )
            cursor.execute("RESET session_replication_role")
            for table in ("accounts_user", "relations_follow", "items_item"):
                cursor.execute(f"VACUUM ANALYZE {table}")
        for reader in readers:
            materialise_inbox(reader)
        give_windows(self.followers)
        self.seconds = time.perf_counter() - begin

    def described(self) -> str:
        """The data set in a line."""
        ((follows,),) = fetch("SELECT count(*) FROM relations_follow")
        counts = ", ".join(f"{count:,}" for count in self.publishers)
        return (
            f"senders with {counts} followers, {follows:,} follows; windows of a few entries; "
            f"generated in {self.seconds:.0f} s"
        )

    def senders(self) -> dict[int, User]:
        """The publishers, by their number of followers."""
        found = User.objects.in_bulk(self.publishers.values())
        return {count: found[publisher] for count, publisher in self.publishers.items()}

    def set_big_v(self, counts: Iterable[int]) -> None:
        """Make senders big-Vs with their active fans known, and all others ordinary."""
        chosen = [self.publishers[count] for count in counts]
        User.objects.filter(is_big_v=True).update(is_big_v=False)
        User.objects.filter(pk__in=chosen).update(is_big_v=True)
        for publisher in chosen:
            assert active_fans.build(publisher)


def give_windows(followers: Sequence[int], *, peers: bool = True) -> None:
    """A window of one old entry for each, and for the peers a key of the same content."""
    client = feeds_for_tasks()
    old = Entry(2**20, 1)
    build_window("model:window", [old])
    client.zadd("model:raw", {old.member: old.item_id})
    for first in range(0, len(followers), CHUNK):
        part = followers[first : first + CHUNK]
        copies = [_copy(b"model:window", Inbox(follower).key) for follower in part]
        pipelined(client, copies + [_copy(b"model:raw", raw_key(follower)) for follower in part if peers])


def _copy(model: bytes, key: str) -> bytes:
    """RESP by hand: packing millions of commands would take longer than running them."""
    return b"*4\r\n$4\r\nCOPY\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n$7\r\nREPLACE\r\n" % (
        *(len(model), model),
        *(len(key), key.encode()),
    )


def deliver_all(item_id: int) -> None:
    """All that workers do for an item, one after the other: the fan-out, and the ranges that it was split into."""
    if not fanout.fan_out(item_id):
        for range_id in DeliveryRange.objects.filter(delivery_id=item_id).order_by("pk").values_list("pk", flat=True):
            fanout.fan_out_range(range_id)


def nothing_left() -> bool:
    """Whether every delivery was completed. Messages to workers, which do not run, are purged."""
    app.control.purge()
    return not Delivery.objects.exists()
