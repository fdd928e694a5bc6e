"""The community of the benchmarks, generated in SQL, the same in every run.

Senders post by a power law: the first hundred of 20,000 have an eighth of all items. One item in ten is a reply.
"""

import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.core.management.commands.flush import Command as Flush
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.test import Client
from django.utils import timezone
from oauth2_provider.models import AccessToken, set_token_value

from accounts.actions import issue_token
from accounts.levels import policy
from accounts.models import User
from benchmarks.measure import Size
from clientapi.oauth.actions import OUT_OF_BAND, register
from items.models import Item
from storage.connections import feeds_for_tasks, fetch, pipelined
from storage.window import INFINITY, Window, WindowEntry
from timeline import inbox, outbox
from timeline.inbox import Inbox
from timeline.models import Delivery
from timeline.outbox import Outbox

FOLLOWEES_OF_HYBRIDS = 200
"""Ordinary followees of readers who pull outboxes."""
FIRST_READER = 500_001
FIRST_PUBLISHER = 900_001
FIRST_FOLLOWER = 1_000_001

USERS = """
    INSERT INTO accounts_user (id, password, is_superuser, username, display_name, bio, email, is_big_v, level,
        last_seen_at, following_count, follower_count, is_staff, is_active, date_joined)
    SELECT id, '!', false, 'user' || id, 'User ' || id, '', '', id <= %(big_vs)s, %(level)s, now(), 0, 0,
        false, true, now()
    FROM generate_series(%(first)s::bigint, %(first)s + %(count)s - 1) AS id
"""
CHUNK = 5_000_000
"""Rows of one statement, so that a long one shows how far it is."""


def items_sql(first: str, last: str, now: str) -> str:
    """An item every eight seconds up to now, with about 120 bytes of content: those numbered from first to last."""
    return f"""
    WITH numbered AS (
        SELECT g, ceil(%(senders)s * random() ^ 2.5)::bigint AS sender,
            (extract(epoch FROM {now} - '2000-01-01T00:00:00Z'::timestamptz) * 1000)::bigint AS now
        FROM generate_series({first}, {last}) AS g
    )
    INSERT INTO items_item (id, sender_id, type, title, content, extra_info, status, visibility, reply_to_id,
        root_id, modified_at)
    SELECT ((now - (%(items)s - g + 1) * 8000::bigint) << 12) | (g & 4095), sender, 'text', '',
        jsonb_build_object('text', repeat(left(md5(g::text), 5 + g %% 4) || ' ', 6 + g %% 18)), '{{}}', 'published',
        'public', root, root, now()
    FROM numbered, LATERAL (SELECT greatest(1, g - 1 - g %% 491) AS h) earlier, LATERAL (
        SELECT h - (h %% 10 = 0)::int AS post  -- no reply
    ) answered, LATERAL (
        SELECT CASE WHEN g %% 10 = 0 THEN ((now - (%(items)s - post + 1) * 8000::bigint) << 12) | (post & 4095) END
            AS root
    ) reply
    """


ITEMS = items_sql("1", "%(items)s", "now()")
ITEMS_BETWEEN = items_sql("%(first)s", "%(last)s", "%(now)s::timestamptz")
BACKGROUND = """
    INSERT INTO relations_follow (follower_id, followee_id, created_at)
    SELECT DISTINCT follower, followee, now() FROM (
        SELECT follower, ceil(%(senders)s * random() ^ 2)::bigint AS followee
        FROM generate_series(1, %(senders)s) AS follower, generate_series(1, 20)
    ) drawn WHERE follower <> followee
"""
# `count` ordinary senders, different for every reader.
FOLLOW_SENDERS = """
    INSERT INTO relations_follow (follower_id, followee_id, created_at)
    SELECT reader, chosen.id, now() FROM unnest(%(readers)s::bigint[]) AS reader CROSS JOIN LATERAL (
        SELECT id FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS id
        ORDER BY hashint8extended(id, reader) LIMIT %(count)s
    ) chosen
"""
FOLLOW_PUBLISHER = """
    INSERT INTO relations_follow (follower_id, followee_id, created_at)
    SELECT id, %(publisher)s, now() FROM generate_series(%(first)s::bigint, %(first)s + %(count)s - 1) AS id
"""
# Eight words per item by a law like Zipf's: of w1 to w20000 the first are frequent.
WORDS = """
    WITH newest AS (
        SELECT id FROM items_item WHERE status = 'published' AND id < %(below)s ORDER BY id DESC LIMIT %(count)s
    ), written AS (
    INSERT INTO items_itemdocument (item_id, document)
    SELECT i.id, (
        SELECT string_agg('w' || floor(20000 ^ (
            (hashint8extended(i.id, place) & 1048575) / 1048576.0::float8))::integer || ':' || place, ' ')::tsvector
        FROM generate_series(1, 8) AS place
    ) FROM newest i ON CONFLICT DO NOTHING)
    SELECT min(id) FROM newest
"""
FOLLOW_COUNTS = """
    UPDATE accounts_user u SET following_count = coalesce(f.following, 0), follower_count = coalesce(t.followers, 0)
    FROM accounts_user o
    LEFT JOIN (SELECT follower_id, count(*) AS following FROM relations_follow GROUP BY 1) f ON f.follower_id = o.id
    LEFT JOIN (SELECT followee_id, count(*) AS followers FROM relations_follow GROUP BY 1) t ON t.followee_id = o.id
    WHERE o.id = u.id
"""
PLAIN_INDEXES = """
    SELECT c.relname, pg_get_indexdef(c.oid) FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid
    WHERE x.indrelid = ANY(%(tables)s::regclass[]) AND NOT EXISTS (
        SELECT FROM pg_constraint WHERE conindid = x.indexrelid)
"""


class Community:
    """The data set, and the roles in it."""

    def __init__(self, size: Size, folder: Path | None = None) -> None:
        self.size, self.folder = size, folder
        free = iter(range(FIRST_READER, FIRST_PUBLISHER))
        self.readers = {count: [next(free) for _ in range(size.readers)] for count in size.followees}
        """Readers of level 3, by number of followees."""
        self.hybrids = {count: [next(free) for _ in range(size.readers)] for count in size.outboxes}
        """Readers of level 2, by number of big-Vs whose outboxes they pull."""
        self.publishers = {count: FIRST_PUBLISHER + place for place, count in enumerate(size.followers)}
        """By number of followers. Theirs are the first of `followers`."""
        self.followers = range(FIRST_FOLLOWER, FIRST_FOLLOWER + max(size.followers))

    def build(self) -> None:
        """Replace all data, and build the readers' windows."""
        size = self.size
        emptied()
        with loading() as cursor:
            for first, count, level in (
                (1, size.senders, 1),
                (FIRST_READER, len(self.readers) * size.readers, 3),
                (FIRST_READER + len(self.readers) * size.readers, len(self.hybrids) * size.readers, 2),
                (FIRST_PUBLISHER, len(self.publishers), 3),
                (FIRST_FOLLOWER, len(self.followers), 1),
            ):
                cursor.execute(USERS, {"first": first, "count": count, "level": level, "big_vs": size.big_vs})
            insert_items(cursor, size.items, size.senders)
            cursor.execute(BACKGROUND, {"senders": size.senders})
            some = {"first": size.big_vs + 1, "last": size.senders}
            for count, readers in self.readers.items():
                cursor.execute(FOLLOW_SENDERS, some | {"readers": readers, "count": count})
            for count, readers in self.hybrids.items():
                cursor.execute(FOLLOW_SENDERS, some | {"readers": readers, "count": FOLLOWEES_OF_HYBRIDS})
                big_vs = {"first": 1, "last": size.big_vs}
                cursor.execute(FOLLOW_SENDERS, big_vs | {"readers": readers, "count": count})
            for count, publisher in self.publishers.items():
                cursor.execute(
                    FOLLOW_PUBLISHER, {"publisher": publisher, "first": self.followers.start, "count": count}
                )
        self.materialise()

    def materialise(self) -> None:
        """Build all windows that pages read."""
        for big_v in range(1, self.size.big_vs + 1):
            materialise_outbox(big_v)
        for readers in (*self.readers.values(), *self.hybrids.values()):
            for reader in readers:
                materialise_inbox(reader)

    def index_words(self, count: int) -> None:
        """Index the newest items for search."""
        below = 2**53
        with connection.cursor() as cursor:
            with without_indexes("items_itemdocument"):
                for done in range(0, count, CHUNK):
                    cursor.execute(WORDS, {"count": min(CHUNK, count - done), "below": below})
                    (below,) = cursor.fetchone()
                    show_progress("indexed", min(done + CHUNK, count), count)
            cursor.execute("VACUUM ANALYZE items_itemdocument")

    def described(self) -> str:
        """The data set in a line."""
        (follows,), (users,) = fetch("SELECT count(*) FROM relations_follow") + fetch(
            "SELECT count(*) FROM accounts_user"
        )
        return f"{self.size.items:,} items by {self.size.senders:,} senders, {users:,} users, {follows:,} follows"


def insert_items(cursor: CursorWrapper, items: int, senders: int) -> None:
    """Insert the items in chunks, as `ITEMS` does at once."""
    now = timezone.now()
    for first in range(1, items + 1, CHUNK):
        last = min(first + CHUNK - 1, items)
        params = {"items": items, "senders": senders, "first": first, "last": last, "now": now}
        cursor.execute(ITEMS_BETWEEN, params)
        show_progress("inserted", last, items)


def show_progress(what: str, done: int, all_of_them: int) -> None:
    """Print how far a statement of several chunks is."""
    if all_of_them > CHUNK:
        print(f"  {datetime.now(UTC):%H:%M} {what}: {done:,} of {all_of_them:,} items", flush=True)


def emptied(*, find_people: bool = True) -> None:
    """Empty the database and Redis.

    Without `find_people` drop the index of names, which takes long to build.
    """
    call_command(Flush(), interactive=False, verbosity=0)  # the site's own refuses to delete members
    policy.renew_after_failover()
    feeds_for_tasks().flushall()
    (index,) = (index for index in User._meta.indexes if index.name == "user_names")
    with connection.cursor() as cursor, connection.schema_editor() as editor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [index.name])
        (is_there,) = cursor.fetchone()
        if find_people and not is_there:
            editor.add_index(User, index)
        if is_there and not find_people:
            editor.remove_index(User, index)


@contextmanager
def loading() -> Iterator[CursorWrapper]:
    """A cursor that skips checks of references, and builds indexes and counts follows at the end."""
    tables = ("accounts_user", "relations_follow", "items_item")
    with connection.cursor() as cursor:
        cursor.execute("SELECT setseed(0.25)")
        # References are correct by construction. Checking a million of them measures nothing.
        cursor.execute("SET session_replication_role = replica")
        with without_indexes(*tables):
            yield cursor
        cursor.execute("SELECT setval(pg_get_serial_sequence('accounts_user', 'id'), max(id)) FROM accounts_user")
        cursor.execute(FOLLOW_COUNTS)
        cursor.execute("RESET session_replication_role")
        for table in tables:
            cursor.execute(f"VACUUM ANALYZE {table}")


@contextmanager
def without_indexes(*tables: str) -> Iterator[None]:
    """Build the indexes of tables, but those of constraints, after the block.

    Row by row they take many times as long once they outgrow PostgreSQL's memory.
    """
    indexes = fetch(PLAIN_INDEXES, {"tables": [*tables]})
    with connection.cursor() as cursor:
        for name, _ in indexes:
            cursor.execute(f'DROP INDEX "{name}"')
        try:
            yield
        finally:
            cursor.execute("SET maintenance_work_mem = '1GB'")
            for _, definition in indexes:
                cursor.execute(definition)
            cursor.execute("RESET maintenance_work_mem")


def materialise_inbox(user_id: int) -> None:
    """Build an inbox as a worker does."""
    token = secrets.token_hex(8)
    epoch = fetch(f"SELECT {policy.EPOCH} FROM accounts_user u WHERE u.id = %s", [user_id])[0][0]
    pipelined(feeds_for_tasks(), [Inbox(user_id).drop(), Inbox(user_id).begin(token, epoch)])
    assert inbox.materialise(user_id, token), user_id


def materialise_outbox(user_id: int) -> None:
    """Build an outbox as a worker does."""
    token = secrets.token_hex(8)
    epoch = outbox.epoch_of(user_id)
    assert epoch is not None
    pipelined(feeds_for_tasks(), [Outbox(user_id).drop(), Outbox(user_id).begin(token, epoch)])
    assert outbox.materialise(user_id, token), user_id


def entries(user_id: int) -> list[WindowEntry]:
    """The entries of a reader's inbox, newest first."""
    (reply,) = pipelined(feeds_for_tasks(), [Inbox(user_id).read_command(INFINITY, 100_000)])
    read = Window.slice(reply, 100_000)
    return [WindowEntry(item, sender) for item, sender in zip(read.entries, read.senders, strict=True)]


def build_window(key: str, held: Sequence[WindowEntry]) -> None:
    """Build a window of these entries, complete down to the last one."""
    window = Window(key)
    complete = window.complete("bench", 1, held[-1].item_id - 1, held)
    pipelined(feeds_for_tasks(), [window.drop(), window.begin("bench", 1), complete])


def users(user_ids: Sequence[int]) -> list[User]:
    """The users with these ids, in order."""
    found = User.objects.in_bulk(user_ids)
    return [found[user_id] for user_id in user_ids]


def fresh_item(publisher: int) -> Item:
    """A new item with a delivery that no worker knows."""
    item = Item.objects.create(sender_id=publisher, content={"text": "bench"})
    Delivery.objects.create(item=item, sender_id=publisher)
    return item


# --- Headers of requests -------------------------------------------------------------------------------------
def by_token(user: User) -> dict[str, str]:
    """Headers of an app with this site's token."""
    return {"Authorization": f"Token {issue_token(user=user)}"}


def by_session(user: User, *visited: str) -> dict[str, str]:
    """Headers of a logged-in browser, after visits of these pages."""
    client = Client(headers={"Host": "localhost"})
    client.force_login(user, settings.AUTHENTICATION_BACKENDS[0])
    for address in visited:
        client.get(address)
    return {"Cookie": "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())}


def by_app(people: Iterable[User]) -> list[dict[str, str]]:
    """Headers of Mastodon apps, one for each user."""
    app = register(name="bench", addresses=[OUT_OF_BAND], asked="read").app
    headers, rows = [], []
    for user in people:
        token = secrets.token_urlsafe(24)
        ends = timezone.now() + timedelta(days=1)
        rows.append(AccessToken(user=user, application=app, scope="read", expires=ends, resource=[]))
        set_token_value(rows[-1], token)
        headers.append({"Authorization": f"Bearer {token}"})
    AccessToken.objects.bulk_create(rows)
    return headers
