"""Accounts of senders, mentioned people and lists of people. One statement per page.

Each process caches counts of posts and senders' accounts. Which items a reader sees never lags.
"""

import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from django.contrib.auth.models import AnonymousUser
from rest_framework.request import Request

from accounts.models import User, is_username
from clientapi.entities import Account, AccountFacts, account_of
from clientapi.paging import MOST_PEOPLE, PEOPLE, PageParams, page_params, paged_answer
from clientapi.params import Params
from items.bodies import Sender
from items.visibility import for_followers
from relations.people import PeopleTable, people_page
from relations.rules import READER, may_know_of
from relations.visibility import FOLLOWING_COUNT
from storage.connections import fetch, id_array
from web.rest import FeedResponse

COUNTED = 1_000
"""A user's posts are counted up to this number."""
KEPT_SECONDS = 600.0
KEPT = 20_000
"""Size of the cache of post counts."""
FRESH_SECONDS, FRESH = 30.0, 4_096
"""How long a sender's account is cached, and for how many senders."""
COUNTS = f"""
    SELECT asked.id, (
        SELECT count(*) FROM (
            SELECT FROM items_item i WHERE i.sender_id = asked.id AND i.status = 'published'
                AND i.reply_to_id IS NULL AND {for_followers("i")} LIMIT {COUNTED}
        ) post
    ) FROM unnest(%(ids)s::bigint[]) AS asked (id)
"""


# Same order as `entities.AccountFacts`.
FACTS = f"""
    u.id, u.username, u.display_name, u.bio, u.profile_fields::text, u.is_locked, u.is_indexable, u.avatar::text,
    u.banner::text, u.date_joined, u.follower_count, {FOLLOWING_COUNT}
"""
BY_ID = f"SELECT {FACTS} FROM accounts_user u WHERE u.id = ANY(%(ids)s::bigint[])"
# Users by id, and users by name if the reader may know of them.
BY_ID_AND_NAME = f"""
    {BY_ID}
    UNION ALL
    SELECT {FACTS} FROM accounts_user u
    WHERE lower(u.username) = ANY(%(names)s::text[]) AND NOT u.id = ANY(%(ids)s::bigint[])
        AND {may_know_of("u", READER)}
"""


class PostCounts:
    """The number of posts of each user, cached for `KEPT_SECONDS`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[int, tuple[int, float]] = {}

    def of(self, ids: Collection[int]) -> dict[int, int]:
        """Counts by user id. One statement for those that are not cached."""
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
        """Drop all counts."""
        with self._lock:
            self._kept.clear()


post_counts = PostCounts()


class Senders:
    """Cached accounts of senders. One is used while items show the same name and picture."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[Account, Sender, float]] = {}

    def of(self, senders: Mapping[str, Sender]) -> dict[str, Account]:
        """The cached accounts, by id."""
        now = time.monotonic()
        found = {}
        for sender_id, sender in senders.items():
            kept = self._kept.get(sender_id)
            if kept is not None and kept[2] > now and kept[1] == sender:
                found[sender_id] = kept[0]
        return found

    def note(self, senders: Mapping[str, Sender], accounts: Mapping[str, Account]) -> None:
        """Cache accounts of these senders."""
        until = time.monotonic() + FRESH_SECONDS
        with self._lock:
            if len(self._kept) + len(senders) > FRESH:
                self._kept.clear()
            for sender_id, sender in senders.items():
                if sender_id in accounts:
                    self._kept[sender_id] = accounts[sender_id], sender, until

    def forget(self) -> None:
        """Drop all accounts."""
        with self._lock:
            self._kept.clear()


known_senders = Senders()


class People:
    """The accounts of a page, by id and by lower-case name."""

    def __init__(self, accounts: dict[str, Account]) -> None:
        self.by_id = accounts
        self._by_name: dict[str, Account] | None = None

    @property
    def by_name(self) -> dict[str, Account]:
        """The accounts by lower-case name."""
        if self._by_name is None:
            self._by_name = {account.username.lower(): account for account in self.by_id.values()}
        return self._by_name

    def without(self, names: Collection[str]) -> "People":
        """The accounts for a reader who may not know of these names."""
        some = People(self.by_id)
        some._by_name = {name: account for name, account in self.by_name.items() if name not in names}
        return some


def _accounts(facts: Sequence[AccountFacts]) -> dict[str, Account]:
    counts = post_counts.of([one.id for one in facts])
    return {str(one.id): account_of(one, counts.get(one.id, 0)) for one in facts}


def people(senders: Mapping[str, Sender], names: Iterable[str], reader: User | AnonymousUser) -> People:
    """The accounts of senders, and of the names that the reader may know of."""
    found = known_senders.of(senders)
    missing = {sender_id: sender for sender_id, sender in senders.items() if sender_id not in found}
    named = [name for name in names if is_username(name)]
    asked: dict[str, Any] = {"ids": id_array(map(int, missing))}
    if named:
        asked |= {"names": named, "reader": reader.pk or 0}
        read = _accounts(fetch(BY_ID_AND_NAME, asked, into=AccountFacts._make))
    elif missing:
        read = _accounts(fetch(BY_ID, asked, into=AccountFacts._make))
    else:
        return People(found)
    known_senders.note(missing, read)
    return People(read | found)


def accounts_by_id(ids: Collection[str]) -> dict[str, Account]:
    """The accounts with these ids. The caller checks that the reader may know of them."""
    return _accounts(fetch(BY_ID, {"ids": id_array(map(int, ids))}, into=AccountFacts._make)) if ids else {}


def accounts_of(users: Iterable[User]) -> list[Account]:
    """The accounts of loaded users, in order."""
    users = list(users)
    found = _accounts([AccountFacts.of(user) for user in users])
    return [found[str(user.pk)] for user in users]


def people_answer(request: Request, owner_id: int, listed: PeopleTable, reader: User | AnonymousUser) -> FeedResponse:
    """Answer with a page of a list of people."""
    asked = page_params(Params(request), default=PEOPLE, most=MOST_PEOPLE)
    page, next_id, prev_id = list_people(owner_id, listed, reader, asked)
    return paged_answer(request, accounts_of(page), next_id=next_id, prev_id=prev_id)


def list_people(
    owner_id: int, listed: PeopleTable, reader: User | AnonymousUser, asked: PageParams
) -> tuple[list[User], int | None, int | None]:
    """A page of a list of people, and the ids of its Link."""
    page = people_page(
        owner_id,
        listed,
        reader,
        last_id=asked.max_id,
        since_id=asked.since_id or 0,
        min_id=asked.min_id,
        limit=asked.limit,
    )
    return page.people, *asked.link_ids(page.newest_id, page.oldest_id, page.last_id, page.has_more)
