"""Loads a data set by COPY, in one transaction.

The users are new, so no inbox lacks their posts. Outboxes of hashtags do, so all windows are invalidated.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import msgspec
import numpy as np
import redis
from django.contrib.auth.hashers import make_password
from django.db import DatabaseError, connection, transaction
from django.db.models.functions import Now

from accounts import passwords
from accounts.levels import policy
from accounts.levels.big_v import upgrade_big_vs
from accounts.models import Level, User
from accounts.names import folded_name
from community.checking import check
from community.dataset import Dataset, PostRow, UserRow
from community.importing_media import Pictures
from community.problems import DatasetRefusedError, ProblemReport
from discover import filling
from items.models import Item, ItemDocument, ItemTag, ItemType, Status, Visibility
from items.search.indexing import copy_index
from media import attaching
from media.models import MediaFile
from media.objects import facts_for_json
from relations.models import Follow
from storage import ids, keys
from storage.connections import feeds_for_tasks, pipelined
from storage.window import Window
from timeline import outbox
from timeline.models import Import, ImportedUser

CHUNK = 20_000
"""Posts per batch of ids. All their texts are in memory."""
LOCK = "feedsite.load"
MICROSECOND = timedelta(microseconds=1)

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class LoadResult:
    """A data set's record. `is_new`: this call loaded it."""

    record: Import
    is_new: bool
    media: int = 0
    """Pictures and videos that this call stored."""


def load(
    dataset: Dataset,
    *,
    password: str | None = None,
    say: Callable[[str], None] = print,
) -> LoadResult:
    """Check the whole data set, then copy it, unless it was loaded before. After a kill, load again.

    Raises DatasetRefusedError with all wrong lines, and DatasetError. Without a `password` the users cannot sign in.
    """
    pictures = Pictures(dataset)
    try:
        loaded = _load(dataset, pictures, password, say)
    except BaseException:
        pictures.take_back()
        raise
    finally:
        pictures.end()
    if loaded.record.settled_at is None:
        _settle(loaded.record, say)
    return loaded


def _settle(record: Import, say: Callable[[str], None]) -> None:
    """Finish a load: vacuum, drop old windows, and begin outboxes of big-Vs. Can be repeated."""
    say("sorting out the tables ...")
    vacuum(say)
    filling.recommend()
    users = list(ImportedUser.objects.filter(source=record).values_list("user_id", flat=True))
    drop_windows(users, say)
    for big_v in User.objects.filter(is_big_v=True, pk__in=users).values_list("pk", flat=True):
        outbox.begin(big_v)
    Import.objects.filter(pk=record.pk).update(settled_at=Now())


@transaction.atomic
def _load(
    dataset: Dataset,
    pictures: Pictures,
    password: str | None,
    say: Callable[[str], None],
) -> LoadResult:
    _lock(say)
    done = Import.objects.filter(fingerprint=dataset.fingerprint).first()
    if done:
        if password is not None:
            User.objects.filter(pk__in=ImportedUser.objects.filter(source=done).values("user")).update(
                password=passwords.hashed(password)
            )
        return LoadResult(done, is_new=False)

    say("checking the data set ...")
    report = ProblemReport()
    users = check(dataset, report)
    user_ids = _new_ids(users)
    say("copying users, follows and posts ...")
    follows = _Follows(dataset)
    _copy_users(users, follows, user_ids, password)
    _copy_rows(Follow, ("follower_id", "followee_id", "created_at"), follows.rows(user_ids))
    for user in users:
        if user.avatar:
            pictures.set_face(user, user_ids[user.id])
    posts = _copy_posts(dataset, pictures, user_ids)
    if report:
        raise DatasetRefusedError(report)
    record = Import.objects.create(fingerprint=dataset.fingerprint, users=len(users), follows=len(follows), posts=posts)
    imported = ((user_ids[user.id], record.pk, user.id) for user in users)
    _copy_rows(ImportedUser, ("user_id", "source_id", "original_id"), imported)
    policy.renew_generation()
    upgrade_big_vs(list(user_ids.values()))
    say("checking the references ...")
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    return LoadResult(record, is_new=True, media=len(pictures))


def _lock(say: Callable[[str], None]) -> None:
    """Let one load run at a time. It waits also while PostgreSQL undoes a killed one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtext(%s))", [LOCK])
        if cursor.fetchone() == (False,):
            say("waiting for another load to end ...")
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [LOCK])


def _new_ids(users: list[UserRow]) -> dict[int, int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence('accounts_user', 'id')) FROM generate_series(1, %s)",
            [len(users)],
        )
        return {user.id: row[0] for user, row in zip(users, cursor.fetchall(), strict=True)}


class _Follows:
    """The follows of a data set, in 24 bytes each."""

    def __init__(self, dataset: Dataset) -> None:
        now = datetime.now(UTC)
        self.followers, self.followees, moments = array("q"), array("q"), array("q")
        for follow in dataset.follows():
            self.followers.append(follow.follower_id)
            self.followees.append(follow.followee_id)
            moments.append(((follow.created_at or now) - ids.EPOCH) // MICROSECOND)
        self._moments = moments

    def __len__(self) -> int:
        return len(self._moments)

    def rows(self, user_ids: dict[int, int]) -> Iterator[Row]:
        """The rows to copy, by time, because lists of people are ordered by id."""
        for place in np.argsort(np.frombuffer(self._moments, dtype=np.int64), kind="stable").tolist():
            moment = ids.EPOCH + self._moments[place] * MICROSECOND
            yield user_ids[self.followers[place]], user_ids[self.followees[place]], moment


def _copy_users(users: list[UserRow], follows: _Follows, user_ids: dict[int, int], password: str | None) -> None:
    following, followers = Counter(follows.followers), Counter(follows.followees)
    hashed = make_password(None) if password is None else passwords.hashed(password)
    now = datetime.now(UTC)
    fields: dict[str, Any] = {
        "password": hashed,
        "is_superuser": False,
        "bio": "",
        "email": "",
        "is_big_v": False,
        "level": Level.DORMANT.value,
        "is_staff": False,
        "is_active": True,
        "date_joined": now,
    }
    constants = tuple(fields.values())
    rows = (
        (
            user_ids[row.id],
            row.name,
            "",
            folded_name(row.name, ""),
            following[row.id],
            followers[row.id],
            *constants,
        )
        for row in users
    )
    names = ("username", "display_name", "folded_name")
    _copy_rows(User, ("id", *names, "following_count", "follower_count", *fields), rows)


def _copy_posts(dataset: Dataset, pictures: Pictures, user_ids: dict[int, int]) -> int:
    constants = (
        "",
        "{}",
        Status.PUBLISHED.value,
        Visibility.PUBLIC.value,
    )
    named = ("id", "sender_id", "type", "content", "media", "modified_at")
    columns = (*named, "title", "extra_info", "status", "visibility")
    encode = msgspec.json.Encoder().encode
    count = 0
    for item_ids, posts in _posts_with_ids(dataset):
        shown = _store_media(pictures, item_ids, posts, user_ids)
        rows = (
            (
                item_id,
                user_ids[post.author_id],
                shown[item_id][0].kind if item_id in shown else ItemType.TEXT.value,
                encode(_content(post, shown.get(item_id, ()))).decode(),
                encode(facts_for_json(shown.get(item_id, ()))).decode(),
                post.created_at,
                *constants,
            )
            for item_id, post in zip(item_ids, posts, strict=True)
        )
        _copy_rows(Item, columns, rows)
        copy_index((item_id, "", post.text) for item_id, post in zip(item_ids, posts, strict=True))
        count += len(posts)
    return count


def _store_media(
    pictures: Pictures, item_ids: list[int], posts: list[PostRow], user_ids: dict[int, int]
) -> dict[int, list[MediaFile]]:
    shown = {}
    for item_id, post in zip(item_ids, posts, strict=True):
        if post.media:
            shown[item_id] = pictures.of_post(post, user_ids[post.author_id])
            attaching.assign_to_item(shown[item_id], item_id=item_id)
    return shown


def _content(post: PostRow, media: Sequence[MediaFile]) -> dict[str, Any]:
    return {"text": post.text} | ({"media": [str(row.pk) for row in media]} if media else {})


def _posts_with_ids(dataset: Dataset) -> Iterator[tuple[list[int], list[PostRow]]]:
    """Posts in chunks, with item ids in file order. A full millisecond continues in the next: some sources only know
    days.
    """
    posts = dataset.posts()
    # A millisecond's first id → the id after its last post. Each post takes the lowest free id. Later chunks continue
    # there, also past a full millisecond.
    following: dict[int, int] = {}
    while chunk := list(islice(posts, CHUNK)):
        firsts = [ids.compose(post.created_at, 0) for post in chunk]
        known = set(firsts)  # milliseconds, by first id, for which `taken` is complete
        taken = _taken_ids(known)
        following = {first: after for first, after in following.items() if after >= first + 2**ids.SEQUENCE_BITS}
        item_ids = []
        for first in firsts:
            item_id = following.get(first, first)
            while _is_taken(item_id, known, taken):
                item_id += 1
            taken.add(item_id)
            following[first] = item_id + 1
            item_ids.append(item_id)
        yield item_ids, chunk


def _is_taken(item_id: int, known: set[int], taken: set[int]) -> bool:
    first = item_id >> ids.SEQUENCE_BITS << ids.SEQUENCE_BITS
    if first not in known:
        known.add(first)
        taken |= _taken_ids({first})
    return item_id in taken


def _taken_ids(firsts: Iterable[int]) -> set[int]:
    # OFFSET 0 forces an index probe each. During a load autovacuum may record the table as empty. Then the planner
    # would compare every item with every id.
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT i.id FROM unnest(%s::bigint[]) AS m (first)
            CROSS JOIN LATERAL (SELECT id FROM items_item WHERE id >= m.first AND id < m.first + %s OFFSET 0) i
            """,
            [list(firsts), 2**ids.SEQUENCE_BITS],
        )
        return {row[0] for row in cursor.fetchall()}


def _copy_rows(model: type[Any], columns: tuple[str, ...], rows: Iterable[Row]) -> None:
    quote = connection.ops.quote_name
    target = f"{quote(model._meta.db_table)} ({', '.join(map(quote, columns))})"
    with connection.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def vacuum(say: Callable[[str], None]) -> None:
    """Vacuum and analyze: otherwise the planner assumes small tables, and index-only scans read the heap."""
    models = (User, Follow, Item, ItemDocument, ItemTag, ImportedUser)
    tables = ", ".join(connection.ops.quote_name(model._meta.db_table) for model in models)
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"VACUUM (ANALYZE) {tables}")
    except DatabaseError as error:
        say(f"VACUUM ANALYZE failed. PostgreSQL will run it later: {one_line(error)}")


def one_line(error: Exception) -> str:
    """The first line of a server's message."""
    return str(error).strip().partition("\n")[0]


def drop_windows(user_ids: list[int], say: Callable[[str], None]) -> None:
    """Delete windows under these ids. Redis may be older than this database."""
    kinds = (keys.inbox, keys.outbox, keys.tail)
    windows = (Window(key(user_id)) for user_id in user_ids for key in kinds)
    try:
        while commands := [window.drop() for window in islice(windows, CHUNK)]:
            pipelined(feeds_for_tasks(), commands)
    except redis.RedisError as error:
        say(f"The feeds server does not answer, so old windows were not dropped: {one_line(error)}")
