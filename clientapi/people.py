"""The accounts on a page: of the senders, of the people whom the texts name, and of lists. One statement a page.

Counts of posts are kept by each process for some minutes: no page counts what somebody said.
"""

import threading
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from clientapi.entities import Account, Facts, account_of
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


# In the order of `entities.Facts`.
FACTS = """
    u.id, u.username, u.display_name, u.bio, u.is_locked, u.is_indexable, u.avatar::text, u.banner::text, u.date_joined,
    u.follower_count, u.following_count
"""
BY_ID = f"SELECT {FACTS} FROM accounts_user u WHERE u.id = ANY(%(ids)s::bigint[])"  # noqa: S608 (constants)
# Users by their ids, and users by their names as far as the reader may know of them.
BY_ID_AND_NAME = f"""
    {BY_ID}
    UNION ALL
    SELECT {FACTS} FROM accounts_user u
    WHERE lower(u.username) = ANY(%(names)s::text[]) AND NOT u.id = ANY(%(ids)s::bigint[]) AND u.is_active
        AND NOT {blocks("u.id", "%(reader)s")}
"""  # noqa: S608 (constants)


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

    def __init__(self, facts: Sequence[tuple[Any, ...]]) -> None:
        counts = post_counts.of([one[0] for one in facts])
        self.by_id = {str(one[0]): account_of(one, counts.get(one[0], 0)) for one in facts}
        self.by_name = {account.username.lower(): account for account in self.by_id.values()}


def people(ids: Iterable[str], names: Iterable[str], reader: User | AnonymousUser) -> People:
    """The accounts of these senders, whom the reader sees, and of these names as far as the reader may know of them."""
    asked: dict[str, Any] = {"ids": id_array(map(int, ids))}
    known = [name for name in names if is_username(name)]
    if not known:
        return People(fetch(BY_ID, asked))
    return People(fetch(BY_ID_AND_NAME, asked | {"names": known, "reader": reader.pk or 0}))


def accounts_of(users: Iterable[User]) -> list[Account]:
    """The accounts of users who were read already, in their order."""
    users = list(users)
    found = People([tuple(Facts.of(user)) for user in users]).by_id
    return [found[str(user.pk)] for user in users]
