"""The accounts on a page: of the senders, of the people whom the texts name, and of lists. One statement a page.

Counts of posts are kept by each process for some minutes: no page counts what somebody said.
"""

import threading
import time
from collections.abc import Collection, Iterable
from functools import cache
from typing import Any

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from accounts.rows import user_columns, user_of
from clientapi.entities import Account
from relations.rules import blocks
from relations.visibility import is_username
from storage.connections import fetch, id_array

COUNTED = 1_000
"""Posts of a user that are counted."""
KEPT_SECONDS = 600.0
KEPT = 20_000
"""Users whose posts a process has counted."""
COUNTS = f"""
    SELECT asked.id, (
        SELECT count(*) FROM (
            SELECT FROM items_item i WHERE i.sender_id = asked.id AND i.status = 'published'
                AND i.reply_to_id IS NULL AND i.visibility IN ('public', 'followers') LIMIT {COUNTED}
        ) post
    ) FROM unnest(%(ids)s::bigint[]) AS asked (id)
"""  # noqa: S608 (a constant)


@cache
def _people() -> str:
    """Users by their ids, and users by their names as far as the reader may know of them."""
    return f"""
        SELECT {user_columns("u")} FROM accounts_user u WHERE u.id = ANY(%(ids)s::bigint[])
        UNION ALL
        SELECT {user_columns("u")} FROM accounts_user u
        WHERE lower(u.username) = ANY(%(names)s::text[]) AND NOT u.id = ANY(%(ids)s::bigint[]) AND u.is_active
            AND NOT {blocks("u.id", "%(reader)s")}
    """  # noqa: S608 (columns of our own model)


class PostCounts:
    """How many posts users have, as one process counted them within `KEPT_SECONDS`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[int, tuple[int, float]] = {}

    def of(self, ids: Collection[int]) -> dict[int, int]:
        """By id. One statement for those that are not known."""
        now = time.monotonic()
        found = {}
        missing = []
        for user_id in ids:
            kept = self._kept.get(user_id)
            if kept is not None and kept[1] > now:
                found[user_id] = kept[0]
            else:
                missing.append(user_id)
        if missing:
            counted: dict[int, int] = dict(fetch(COUNTS, {"ids": id_array(missing)}))
            found |= counted
            with self._lock:
                if len(self._kept) + len(counted) > KEPT:
                    self._kept.clear()
                self._kept |= {user_id: (count, now + KEPT_SECONDS) for user_id, count in counted.items()}
        return found

    def forget(self) -> None:
        """Count anew."""
        with self._lock:
            self._kept.clear()


post_counts = PostCounts()


class People:
    """Accounts by id, and those that texts name by name in lower case."""

    def __init__(self, users: Iterable[User]) -> None:
        users = list(users)
        counts = post_counts.of([user.pk for user in users])
        self.by_id = {str(user.pk): Account.of(user, counts.get(user.pk, 0)) for user in users}
        self.by_name = {account.username.lower(): account for account in self.by_id.values()}


def people(ids: Iterable[str], names: Iterable[str], reader: User | AnonymousUser) -> People:
    """The accounts of these senders, whom the reader sees, and of these names as far as the reader may know of them."""
    asked: dict[str, Any] = {
        "ids": id_array(int(one) for one in ids),
        "names": [name for name in names if is_username(name)],
        "reader": reader.pk or 0,
    }
    return People(user_of(row) for row in fetch(_people(), asked))


def accounts_of(users: Iterable[User]) -> list[Account]:
    """The accounts of users who were read already, in their order."""
    users = list(users)
    found = People(users).by_id
    return [found[str(user.pk)] for user in users]
