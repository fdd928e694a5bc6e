"""One community in growing sizes, by the number of its items: the tables that stay, generated in SQL.

Every size is a database of its own in the same server. All sizes are alike but for the number of members, and with it
of everything: a member has 100 items on average, by a power law, and follows about twenty others; the items lie evenly
in the same 2,000 days. Of a hundred items ten answer another one, five are reposts, one is deleted and four are for
few; one in a hundred answers one of the posts with a long thread. The words of an item are one of `TEXTS` texts, of
words by Zipf's law. A fifth of the items is liked, 1.8 times on average, and a tenth of the texts has a hashtag. The
senders of the items of the last 90 days are told of the likes.

Indexes are dropped before the rows come and built after them. Nothing has a picture, and no sender is a big-V.
"""

import itertools
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

from django.db import connection

from benchmarks.community import USERS
from benchmarks.ground import Size, emptied
from benchmarks.search import Writer
from items.words import document
from storage.connections import feeds_for_tasks, fetch

ITEMS_OF_A_SENDER = 100
DAYS = 2_000
FOLLOWED = 20
"""Others whom a member follows."""
TEXTS = 2**17
WORDS = (4, 12)
"""In a text, from and to."""
TAGS = 1_000
THREAD = 100_000
"""Items of which one has a long thread: one in a hundred of them answers it."""
PART = 2_000_000
"""Items that are written in one transaction."""
RARE = "nowhereelse"
"""A word that the oldest items have beside their own: `RARELY` of them in every size."""
RARELY = 30

TABLES = (
    "accounts_user",
    "relations_follow",
    "items_item",
    "items_itemdocument",
    "items_itemtag",
    "items_itemcounts",
    "items_like",
    "notifications_notification",
    "notifications_act",
)
DROPPED = """
    SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid), c.conname, pg_get_constraintdef(c.oid)
    FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.contype IN ('u', 'x')
    WHERE i.indrelid = %s::regclass AND NOT i.indisprimary
        AND NOT EXISTS (SELECT FROM pg_constraint f WHERE f.conindid = i.indexrelid AND f.contype = 'f')
    ORDER BY 1
"""
# The item of number n, from 1 on, has this id.
FUNCTIONS = """
    CREATE FUNCTION bench_id(n bigint, begun bigint, step bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
        SELECT ((begun + n * step) << 12) | (n & 4095)
    $$;
    CREATE TABLE bench_text (number integer PRIMARY KEY, content jsonb, document tsvector, tag text);
    CREATE FUNCTION bench_likes(n bigint) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
        SELECT CASE WHEN n % 5 = 1
            THEN least(100, floor(0.9 * (1048576::float8 / ((hashint8extended(n, 1) & 1048575) + 1)) ^ 0.6))::integer
        ELSE 0 END
    $$;
"""
ITEMS = f"""
    INSERT INTO items_item (id, sender_id, type, title, content, extra_info, status, visibility, reply_to_id,
        root_id, repost_of_id, modified_at)
    SELECT id, ceil(%(senders)s * random() ^ 2.5)::bigint, CASE WHEN is_repost THEN 'repost' ELSE 'text' END, '',
        CASE WHEN is_repost THEN '{{}}' ELSE t.content END, '{{}}',
        CASE WHEN n %% 100 = 77 THEN 'deleted' ELSE 'published' END,
        CASE WHEN n %% 100 IN (16, 36, 56) THEN 'followers' WHEN n %% 100 = 86 THEN 'self' ELSE 'public' END,
        root, root, CASE WHEN is_repost THEN bench_id(n - 12, %(begun)s, %(step)s) END, feedsite_id_time(id)
    FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n
    JOIN bench_text t ON t.number = hashint8(n) & {TEXTS - 1}
    JOIN LATERAL (SELECT bench_id(n, %(begun)s, %(step)s) AS id, n %% 20 = 3 AND n > 12 AS is_repost, CASE
        WHEN n %% 100 = 50 THEN bench_id(n - n %% {THREAD} + 1, %(begun)s, %(step)s)
        WHEN n %% 10 = 0 THEN bench_id(greatest(1, n - 9 - 10 * (hashint8(n) & 63)), %(begun)s, %(step)s)
    END AS root) place ON true
"""  # noqa: S608 (constants)
DOCUMENTS = f"""
    INSERT INTO items_itemdocument (item_id, document)
    SELECT bench_id(n, %(begun)s, %(step)s),
        CASE WHEN n <= {RARELY} THEN t.document || '''{RARE}'':1'::tsvector ELSE t.document END
    FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n
    JOIN bench_text t ON t.number = hashint8(n) & {TEXTS - 1} WHERE n %% 20 <> 3
"""  # noqa: S608
HASHTAGS = f"""
    INSERT INTO items_itemtag (tag, item_id)
    SELECT t.tag, bench_id(n, %(begun)s, %(step)s)
    FROM generate_series(1, %(items)s::bigint) AS n
    JOIN bench_text t ON t.number = hashint8(n) & {TEXTS - 1} WHERE n %% 20 <> 3 AND t.tag <> '' ORDER BY 1, 2
"""  # noqa: S608
LIKES = """
    INSERT INTO items_like (user_id, item_id, created_at)
    SELECT 1 + (n * 7919 + liker * 104729) %% %(senders)s, bench_id(n, %(begun)s, %(step)s), now()
    FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n,
        LATERAL generate_series(1, bench_likes(n)) AS liker
"""
COUNTS = """
    INSERT INTO items_itemcounts (item_id, likes, replies, circle_replies, reposts)
    SELECT item_id, sum(likes), sum(replies), 0, sum(reposts) FROM (
        SELECT bench_id(n, %(begun)s, %(step)s) AS item_id, bench_likes(n) AS likes, 0 AS replies, 0 AS reposts
        FROM generate_series(1, %(items)s::bigint) AS n WHERE bench_likes(n) > 0
        UNION ALL
        SELECT coalesce(root_id, repost_of_id), 0, (root_id IS NOT NULL)::integer, (repost_of_id IS NOT NULL)::integer
        FROM items_item WHERE status = 'published' AND (root_id IS NOT NULL OR repost_of_id IS NOT NULL)
    ) counted GROUP BY item_id ORDER BY item_id
"""
FOLLOWS = """
    INSERT INTO relations_follow (follower_id, followee_id, created_at)
    SELECT DISTINCT follower, followee, now() FROM (
        SELECT follower, ceil(%(senders)s * random() ^ 2)::bigint AS followee
        FROM generate_series(1, %(senders)s) AS follower, generate_series(1, %(followed)s)
    ) drawn WHERE follower <> followee ORDER BY 1, 2
"""
READERS_FOLLOW = """
    INSERT INTO relations_follow (follower_id, followee_id, created_at)
    SELECT reader, followee, now() FROM unnest(%(readers)s::bigint[]) AS reader CROSS JOIN LATERAL (
        SELECT DISTINCT ceil(%(senders)s * random() ^ 2)::bigint + reader * 0 AS followee
        FROM generate_series(1, 2 * %(count)s) LIMIT %(count)s
    ) drawn
"""
FOLLOW_COUNTS = """
    UPDATE accounts_user u SET following_count = coalesce(f.following, 0), follower_count = coalesce(t.followers, 0)
    FROM accounts_user o
    LEFT JOIN (SELECT follower_id, count(*) AS following FROM relations_follow GROUP BY 1) f ON f.follower_id = o.id
    LEFT JOIN (SELECT followee_id, count(*) AS followers FROM relations_follow GROUP BY 1) t ON t.followee_id = o.id
    WHERE o.id = u.id
"""
TOLD = f"""
    WITH told AS (
        INSERT INTO notifications_notification (recipient_id, kind, item_id, position)
        SELECT i.sender_id, 'like', i.id, i.id FROM items_item i JOIN items_itemcounts c ON c.item_id = i.id
        WHERE c.likes > 0 AND i.id > bench_id(%(items)s::bigint * {DAYS - 90} / {DAYS}, %(begun)s, %(step)s)
        RETURNING id, recipient_id, item_id
    )
    INSERT INTO notifications_act (id, notification_id, recipient_id, actor_id)
    SELECT l.item_id + row_number() OVER (PARTITION BY told.id), told.id, told.recipient_id, l.user_id
    FROM told JOIN items_like l ON l.item_id = told.item_id
"""  # noqa: S608


class Dropped(NamedTuple):
    """A row of `DROPPED`: an index, or the constraint that it stands for."""

    index: str
    definition: str
    constraint: str | None
    condition: str | None


class Kind(NamedTuple):
    """Readers who follow so many others."""

    followees: int
    ids: list[int]


class Community:
    """The community of one size, in its database; `use` makes it the site's."""

    def __init__(self, items: int, size: Size) -> None:
        self.items, self.name = items, f"grown_{items}"
        self.senders = items // ITEMS_OF_A_SENDER
        self.step = DAYS * 86_400_000 // items
        free = itertools.count(self.senders + 1)
        self.kinds = [Kind(count, [next(free) for _ in range(size.grown_readers)]) for count in size.grown_followees]
        self.begun = 0
        """Milliseconds of an item id before the first item."""
        self.seconds = self._begin = 0.0

    def use(self) -> None:
        """Connect the site to this database, with empty feeds."""
        _connect(self.name)
        feeds_for_tasks().flushall()
        if fetch("SELECT to_regclass('bench_size') IS NOT NULL")[0][0]:
            ((self.begun, self.seconds),) = fetch("SELECT begun, seconds FROM bench_size")

    def is_there(self) -> bool:
        """Whether the database is there, and whole."""
        found = fetch("SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s", [self.name])
        return found == [("whole",)]

    def make(self) -> None:
        """Make the database out of the site's own, which has no rows yet, and fill it."""
        site = str(connection.settings_dict["NAME"])
        _connect("postgres")
        with connection.cursor() as cursor:
            cursor.execute(f'DROP DATABASE IF EXISTS "{self.name}"')
            cursor.execute(f'CREATE DATABASE "{self.name}" TEMPLATE "{site}"')
        _connect(self.name)
        self._begin = time.perf_counter()
        with connection.cursor() as cursor:
            cursor.execute(FUNCTIONS)
        self._fill()
        with connection.cursor() as cursor:
            for table in TABLES:
                cursor.execute(f"ALTER TABLE {table} RESET (autovacuum_enabled)")
            cursor.execute("VACUUM ANALYZE")
            cursor.execute("CHECKPOINT")
            self.seconds = time.perf_counter() - self._begin
            facts = [self.begun, self.seconds]
            cursor.execute("CREATE TABLE bench_size AS SELECT %s::bigint AS begun, %s::float8 AS seconds", facts)
            cursor.execute(f"COMMENT ON DATABASE \"{self.name}\" IS 'whole'")
        _connect(site)

    def _fill(self) -> None:
        """Fill the tables, three at a time."""
        ((now,),) = fetch("SELECT (extract(epoch FROM now() - '2000-01-01T00:00:00Z'::timestamptz) * 1000)::bigint")
        self.begun = now - self.items * self.step
        self._write_texts()
        with ThreadPoolExecutor() as pool:
            ways = [pool.submit(way) for way in (self._fill_items, self._fill_words, self._fill_others)]
        for way in ways:
            way.result()
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
            cursor.execute(TOLD, self._facts)
        self._say("notifications")

    @property
    def _facts(self) -> dict[str, int]:
        return {"items": self.items, "senders": self.senders, "begun": self.begun, "step": self.step}

    def _say(self, what: str) -> None:
        print(f"{self.name}: {what} at {time.perf_counter() - self._begin:.0f} s", flush=True)

    def _fill_items(self) -> None:
        with _session():
            self._write("items_item", ITEMS, in_parts=True, at_once=3)
            self._write("items_itemcounts", COUNTS)

    def _fill_words(self) -> None:
        with _session():
            self._write("items_itemdocument", DOCUMENTS, in_parts=True, at_once=2)
            self._write("items_itemtag", HASHTAGS)

    def _fill_others(self) -> None:
        readers = sum(len(kind.ids) for kind in self.kinds)
        with _session():
            with self._without_indexes("accounts_user"), connection.cursor() as cursor:
                for first, count, level in ((1, self.senders, 1), (self.senders + 1, readers, 3)):
                    cursor.execute(USERS, {"first": first, "count": count, "level": level, "big_vs": 0})
                highest = "SELECT setval(pg_get_serial_sequence('accounts_user', 'id'), max(id)) FROM accounts_user"
                cursor.execute(highest)
            with self._without_indexes("relations_follow"), connection.cursor() as cursor:
                cursor.execute(FOLLOWS, self._facts | {"followed": FOLLOWED})
                for kind in self.kinds:
                    cursor.execute(READERS_FOLLOW, self._facts | {"readers": kind.ids, "count": kind.followees})
            with connection.cursor() as cursor:
                cursor.execute(FOLLOW_COUNTS)
                cursor.execute("VACUUM FULL accounts_user")
            self._write("items_like", LIKES, in_parts=True)

    def _write(self, table: str, statement: str, *, in_parts: bool = False, at_once: int = 1) -> None:
        with self._without_indexes(table):
            parts = [(1, self.items)]
            if in_parts:
                parts = [(first, min(first + PART - 1, self.items)) for first in range(1, self.items + 1, PART)]
            with ThreadPoolExecutor(at_once) as pool:
                for _ in pool.map(lambda part: self._write_part(table, statement, *part), parts):
                    pass

    def _write_part(self, table: str, statement: str, first: int, last: int) -> None:
        with _session(first / self.items), connection.cursor() as cursor:
            cursor.execute(statement, self._facts | {"first": first, "last": last})
        self._say(f"{table} from {first:,} on")

    @contextmanager
    def _without_indexes(self, table: str) -> Iterator[None]:
        """Drop the indexes of a table but for those that keys name, and build them again at the end."""
        found = fetch(DROPPED, [table], into=Dropped._make)
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
            for one in found:
                cursor.execute(
                    f'ALTER TABLE {table} DROP CONSTRAINT "{one.constraint}"'
                    if one.constraint
                    else f"DROP INDEX {one.index}"
                )
            yield
            for one in found:
                cursor.execute(
                    f'ALTER TABLE {table} ADD CONSTRAINT "{one.constraint}" {one.condition}'
                    if one.constraint
                    else one.definition
                )
                self._say(f"index {one.index}")

    def _write_texts(self) -> None:
        writer = Writer()
        chance = random.Random(11)  # noqa: S311 (texts, no secrets)
        with connection.cursor() as cursor:
            cursor.execute("CREATE TEMPORARY TABLE said (number integer, text text, document text, tag text)")
            with cursor.copy("COPY said FROM STDIN") as copy:
                for number in range(TEXTS):
                    text = " ".join(writer.drawn(writer.words, chance.randint(*WORDS)))
                    tag = f"tag{int(TAGS ** chance.random())}" if number % 10 == 0 else ""
                    text = f"{text} #{tag}" if tag else text
                    copy.write_row((number, text, document("", text), tag))
            cursor.execute(
                "INSERT INTO bench_text (number, content, document, tag)"
                " SELECT number, jsonb_build_object('text', text), document::tsvector, tag FROM said"
            )
            cursor.execute("DROP TABLE said")
            cursor.execute("ANALYZE bench_text")


class Grown:
    """The communities of all sizes."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.communities = [Community(items, size) for items in size.grown_items]

    def build(self) -> None:
        """Make the databases that are not there."""
        missing = [community for community in self.communities if not community.is_there()]
        if missing:
            emptied()
        for community in missing:
            community.make()
        with own_database():
            for community in self.communities:
                community.use()

    def described(self) -> str:
        """The data set in a line."""
        sizes = "; ".join(
            f"{one.items:,} items by {one.senders:,} senders in {one.seconds:.0f} s" for one in self.communities
        )
        return f"Generated: {sizes}"


@contextmanager
def own_database() -> Iterator[None]:
    """Connect the site to its own database again at the end."""
    site = str(connection.settings_dict["NAME"])
    try:
        yield
    finally:
        _connect(site)


def _connect(name: str) -> None:
    connection.close()
    connection.settings_dict["NAME"] = name


@contextmanager
def _session(seed: float = 0.25) -> Iterator[None]:
    """A session of this thread that loads fast: how the rows come is not measured."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET maintenance_work_mem = '768MB'; SET work_mem = '256MB'; SET synchronous_commit = off")
            cursor.execute("SET wal_compression = off; SET session_replication_role = replica")
            cursor.execute("SELECT setseed(%s)", [seed])
        yield
    finally:
        connection.close()
