"""No reader gets an item twice or one they may not see. Pulling to the end gives every item."""

import itertools
from typing import Any

import hypothesis.strategies as st
import redis
from django.conf import settings as site
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from accounts.models import User
from discover.feed import FeedPage, load_more, refresh
from discover.issued_pages import record_issued_pages
from items import actions as items
from items.models import Item
from relations import actions as relations
from relations.models import Block, Mute
from storage import connections, keys
from tests.support import servers
from tests.support.emptying import empty_tables

READERS = 2
SENDERS = 4
readers = st.integers(0, READERS - 1)
senders = st.integers(0, SENDERS - 1)
some = st.integers(0, 10_000)
calls = st.sampled_from([refresh, load_more])
limits = st.integers(1, 6)


class Discover(RuleBasedStateMachine):
    """Others write, and Redis forgets, restores, or does not answer."""

    @initialize(posts=st.integers(0, 25))
    def found(self, posts: int) -> None:
        empty_tables()
        self.feeds = connections.feeds_for_tasks()
        self.feeds.flushall()
        self.readers = [User.objects.create(username=f"reader{number}") for number in range(READERS)]
        self.senders = [User.objects.create(username=f"sender{number}") for number in range(SENDERS)]
        self.shown: list[set[int]] = [set() for _ in self.readers]
        self.calls: list[dict[str, tuple[Any, FeedPage]]] = [{} for _ in self.readers]
        self.dumps: dict[int, bytes] = {}
        self.names = itertools.count()
        for number in range(posts):
            self._say(number % SENDERS)

    def _say(self, sender: int, **fields: Any) -> None:
        items.publish(sender=self.senders[sender], content={"text": "words"}, **fields)

    # --- Acts of readers
    @rule(reader=readers, call=calls, limit=limits, named=st.booleans())
    def pull(self, reader: int, call: Any, limit: int, named: bool) -> None:
        name = f"call {next(self.names)}" if named else None
        page = call(self.readers[reader], limit=limit, request_id=name)
        ids = [int(item.id) for item in page.items]
        assert len(ids) <= limit
        assert len(set(ids)) == len(ids)
        assert not self.shown[reader] & set(ids), "an item comes twice"
        by_sender = [item.sender.id for item in page.items]
        assert all(by_sender.count(sender) <= site.SENDER_CAP for sender in by_sender)
        assert set(ids) <= self._visible(reader)
        assert all(item.reason for item in page.items)
        self.shown[reader] |= set(ids)
        if name:
            self.calls[reader][name] = (call, page)

    @precondition(lambda self: any(self.calls))
    @rule(pick=some, limit=limits)
    def repeat(self, pick: int, limit: int) -> None:
        made = [(reader, name) for reader, named in enumerate(self.calls) for name in named]
        reader, name = made[pick % len(made)]
        call, page = self.calls[reader][name]
        again = call(self.readers[reader], limit=limit, request_id=name)
        assert again.has_more == page.has_more
        visible = self._visible(reader)
        assert [item.id for item in again.items] == [item.id for item in page.items if int(item.id) in visible]

    # --- Acts of others
    @rule(sender=senders, visibility=st.sampled_from(["public", "public", "followers", "self"]))
    def publish(self, sender: int, visibility: str) -> None:
        self._say(sender, visibility=visibility)

    @precondition(lambda self: Item.objects.exists())
    @rule(pick=some, change=st.sampled_from([items.delete, items.restore, items.reject, items.approve]))
    def change(self, pick: int, change: Any) -> None:
        change(item=Item.objects.order_by("pk")[pick % Item.objects.count()])

    @rule(reader=readers, sender=senders, undo=st.booleans())
    def mute(self, reader: int, sender: int, undo: bool) -> None:
        (relations.unmute if undo else relations.mute)(muter=self.readers[reader], muted=self.senders[sender])

    @rule(reader=readers, sender=senders, undo=st.booleans())
    def block(self, reader: int, sender: int, undo: bool) -> None:
        (relations.unblock if undo else relations.block)(blocker=self.senders[sender], blocked=self.readers[reader])

    # --- Acts of servers
    @rule()
    def record(self) -> None:
        record_issued_pages()

    @rule()
    def lose_everything(self) -> None:
        self.feeds.flushall()

    @rule(reader=readers)
    def expire(self, reader: int) -> None:
        self.feeds.delete(keys.candidates(self.readers[reader].pk))
        self.feeds.delete(keys.candidate_reasons(self.readers[reader].pk))

    @rule(reader=readers)
    def copy(self, reader: int) -> None:
        if dump := self.feeds.dump(keys.candidates(self.readers[reader].pk)):
            self.dumps[reader] = dump

    @precondition(lambda self: self.dumps)
    @rule()
    def bring_back(self) -> None:
        for reader, dump in self.dumps.items():
            self.feeds.restore(keys.candidates(self.readers[reader].pk), 0, dump, replace=True)

    @rule(reader=readers, call=calls)
    def pull_without_redis(self, reader: int, call: Any) -> None:
        with servers.frozen(servers.servers.feeds):
            self.pull(reader, call, 3, False)
        connections.feeds_breaker.reset()
        while True:  # a frozen server answers old requests first
            try:
                self.feeds.ping()
                break
            except redis.RedisError:
                continue

    # --- In the end
    def teardown(self) -> None:
        if not hasattr(self, "readers"):
            return
        for reader in range(READERS):
            silent = 0
            while silent < 2:
                before = len(self.shown[reader])
                self.pull(reader, load_more, 6, False)
                silent = 0 if len(self.shown[reader]) > before else silent + 1
            assert self._visible(reader) <= self.shown[reader], "something is never shown"

    def _visible(self, reader: int) -> set[int]:
        """Ids from plain queries."""
        user = self.readers[reader]
        hidden = {
            *Block.objects.filter(blocked=user).values_list("blocker", flat=True),
            *Mute.objects.filter(muter=user).values_list("muted", flat=True),
        }
        posts = Item.objects.published().filter(visibility="public", reply_to=None, repost_of=None)
        return set(posts.exclude(sender__in=hidden).values_list("pk", flat=True))


def pull_all(machine: type[Discover], *, examples: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
