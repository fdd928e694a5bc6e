"""Nodes freeze, replicas without acknowledged writes take over, slots move."""

import itertools
from typing import Any, ClassVar

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import precondition, rule
from redis.crc import key_slot

from runtime.embedded import Valkey
from storage import keys
from tests.support import servers
from tests.support.clusters import ValkeyCluster
from tests.support.effort import tries
from tests.support.machines import homes, live, recommended
from tests.support.machines.homes import Home, people

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
]
EXAMPLES = tries(3, 8)


class OneByOne:
    """The next primary for each test that freezes the feeds server."""

    def __init__(self, cluster: ValkeyCluster) -> None:
        self.nodes = itertools.cycle([node for node in cluster.nodes if cluster.is_primary(node)])

    @property
    def process(self) -> Any:
        return next(self.nodes).process


@pytest.fixture(autouse=True)
def _feeds_server(cluster: ValkeyCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers.servers, "feeds", OneByOne(cluster))
    HomeOnCluster.cluster = cluster


class HomeOnCluster(Home):
    cluster: ClassVar[ValkeyCluster]
    cut: Valkey | None = None

    @precondition(lambda self: self.cut is None)
    @rule(person=people, kind=st.sampled_from([keys.inbox, keys.outbox]))
    def cut_off(self, person: int, kind: type[str]) -> None:
        """Somebody's primary acknowledges writes without its replica."""
        self.cut = self.cluster.replica_of(self.cluster.primary_of(kind(self.users[person].pk)))
        self.cluster.cut_off(self.cut)

    @precondition(lambda self: self.cut is not None)
    @rule(again=st.booleans())
    def take_over(self, again: bool) -> None:
        """`again` makes the old primary take over right after."""
        assert self.cut is not None
        self.cluster.take_over(self.cut)
        if again:
            self.cluster.settled()
            self.cluster.take_over(self.cluster.replica_of(self.cut))
        self.cut = None

    @precondition(lambda self: self.cut is None)
    @rule(person=people, kind=st.sampled_from([keys.inbox, keys.outbox]), to=st.integers(0, 1))
    def move(self, person: int, kind: type[str], to: int) -> None:
        key = kind(self.users[person].pk)
        source = self.cluster.primary_of(key)
        others = [node for node in self.cluster.nodes if node is not source and self.cluster.is_primary(node)]
        self.cluster.move(key_slot(key.encode()), source, others[to])

    def teardown(self) -> None:
        """A cut-off replica would keep the next cluster from settling."""
        try:
            super().teardown()
        finally:
            if self.cut is not None:
                self.cluster.mend()


@pytest.mark.long
@pytest.mark.usefixtures("tiny_homes")
def test_every_page_is_what_the_oracle_says() -> None:
    homes.walk_all(HomeOnCluster, examples=EXAMPLES)


@pytest.mark.long
@pytest.mark.usefixtures("tiny_live")
def test_every_page_of_every_walk_is_what_the_oracle_says() -> None:
    live.walk_all(live.Live, examples=EXAMPLES)


@pytest.mark.long
def test_nothing_comes_twice() -> None:
    recommended.pull_all(recommended.Discover, examples=EXAMPLES)
