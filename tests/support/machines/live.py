"""Every page of every walk always equals the SQL oracle: first what was frozen at its start and is visible, then what
had ended.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import hypothesis.strategies as st
import pytest
import redis
from django.conf import settings as site
from django.db.models.functions import Now
from hypothesis import HealthCheck, event, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from accounts.levels import actions as levels
from accounts.levels import big_v
from accounts.models import User
from feedsite import celery
from live import actions, lineup
from live import walk as walking
from live.feed import live_page
from live.models import Host, LiveSession, ReplayDelivery, State
from live.replays import fan_out
from live.snapshot import SnapshotExpiredError, UnknownSnapshotError, WalkSnapshot
from live.walk import LivePage
from relations import actions as relations
from storage import connections, deliveries, keys
from tests.support import servers
from tests.support.emptying import empty_tables
from tests.support.live_oracle import feed
from tests.support.sessions import TASKS
from tests.support.workers import prompt_tasks

HOSTS = 4
READERS = 2
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)

hosts = st.integers(0, HOSTS - 1)
readers = st.integers(0, READERS - 1)
sizes = st.integers(1, 6)
some = st.integers(0, 10_000)  # picks one of whatever there is
QUEUE: list[tuple[str, tuple[Any, ...]]] = []


@dataclass
class Walk:
    reader: int
    frozen: list[tuple[int, str]]
    """Live and upcoming at the start."""
    ended: set[int]
    """Ended at the start."""
    page: LivePage
    last_id: int | None = None


class Live(RuleBasedStateMachine):
    """Tiny windows, and a broker that delays, repeats, reorders and loses messages."""

    @initialize(
        follows=st.sets(st.tuples(readers, hosts), min_size=3, max_size=8),
        states=st.lists(
            st.tuples(hosts, st.sampled_from([State.UPCOMING, State.LIVE, *[State.REPLAY] * 3])), max_size=20
        ),
        prompt=st.booleans(),
        cap=st.sampled_from([3, 100]),
        stars=st.sets(hosts, max_size=2),
    )
    def found(
        self,
        follows: set[tuple[int, int]],
        states: list[tuple[int, State]],
        prompt: bool,
        cap: int,
        stars: set[int],
    ) -> None:
        """Readers have read once. `prompt` workers leave nothing in the queue. A large `cap` keeps every replay."""
        site.LIVE_REPLAYS_CAP = cap
        empty_tables()
        self.feeds = connections.feeds_for_tasks()
        self.feeds.flushall()
        QUEUE.clear()
        self.now = NOON
        self.prompt = prompt
        self.hosts = [
            User.objects.create(username=f"host{number}", is_big_v=number in stars) for number in range(HOSTS)
        ]
        self.readers = [
            User.objects.create(username=f"reader{number}", level=3, last_seen_at=Now()) for number in range(READERS)
        ]
        self.walks: list[Walk] = []
        self.ending: dict[int, int] = {}
        self.dumps: dict[str, bytes] = {}
        for reader, host in sorted(follows):
            relations.follow(follower=self.readers[reader], followee=self.hosts[host])
        for reader in range(READERS):
            self.begin(reader, 3)
        self.work_all()
        for host, state in states:
            session = actions.create(host=self.hosts[host], title="words", starts_at=self.now, now=self.now)
            if state != State.UPCOMING:
                session = actions.start(session=session, now=self.now)
            if state == State.REPLAY:
                actions.end(session=session, now=self.now)
        self.work_all()

    # --- Hosts -------------------------------------------------------------------------------------------
    @rule(host=hosts, minutes=st.integers(0, 5))
    def create(self, host: int, minutes: int) -> None:
        starts_at = self.now + timedelta(minutes=minutes)
        actions.create(host=self.hosts[host], title="words", starts_at=starts_at, now=self.now)

    @precondition(lambda self: LiveSession.objects.exists())
    @rule(pick=some, seconds=st.integers(0, 1), then_end=st.booleans())
    def start(self, pick: int, seconds: int, then_end: bool) -> None:
        self.now += timedelta(seconds=seconds)
        session = self._try(actions.start, pick, State.UPCOMING)
        if session and then_end:
            actions.end(session=session, now=self.now)

    @precondition(lambda self: LiveSession.objects.exists())
    @rule(pick=some)
    def end(self, pick: int) -> None:
        self._try(actions.end, pick, State.LIVE)

    @precondition(lambda self: LiveSession.objects.exists())
    @rule(pick=some)
    def cancel(self, pick: int) -> None:
        self._try(actions.cancel, pick, State.UPCOMING)

    @precondition(lambda self: LiveSession.objects.filter(state=State.LIVE).exists())
    @rule(pick=some)
    def begin_to_end(self, pick: int) -> None:
        """It has its position, and commits later."""
        session = self._pick(pick, State.LIVE)
        self.ending.setdefault(session.pk, connections.fetch(actions.NEXT_ID)[0][0])

    @precondition(lambda self: self.ending)
    @rule()
    def commit_the_end(self) -> None:
        self._end_at(*self.ending.popitem())

    @precondition(lambda self: LiveSession.objects.filter(state=State.LIVE).count() > 1)
    @rule(pick=some, reader=readers, size=sizes)
    def end_across_a_freeze(self, pick: int, reader: int, size: int) -> None:
        """A walk starts when one is committed and the other has the lower position."""
        live = list(LiveSession.objects.filter(state=State.LIVE).order_by("pk"))
        one, other = live[pick % len(live)], live[(pick + 1) % len(live)]
        position = connections.fetch(actions.NEXT_ID)[0][0]
        actions.end(session=other, now=self.now)
        self.begin(reader, size)
        self._end_at(one.pk, position)
        self._walk_on(self.walks[-1], size)

    @precondition(lambda self: LiveSession.objects.exists())
    @rule(pick=some, minutes=st.integers(0, 5))
    def put_off(self, pick: int, minutes: int) -> None:
        if session := self._pick(pick, State.UPCOMING):
            actions.edit(session=session, now=self.now, starts_at=self.now + timedelta(minutes=minutes))

    @precondition(lambda self: LiveSession.objects.exists())
    @rule(pick=some, undo=st.booleans())
    def hide(self, pick: int, undo: bool) -> None:
        session = self._pick(pick)
        (actions.show_again if undo else actions.hide)(session=session, now=self.now)

    @rule(host=hosts, on=st.booleans())
    def flip_big_v(self, host: int, on: bool) -> None:
        if on:
            with suppress(big_v.NotActiveError):
                big_v.make_big_v(user=self.hosts[host])
        else:
            User.objects.filter(pk=self.hosts[host].pk).update(is_big_v=False)

    @rule(host=hosts, active=st.booleans())
    def suspend(self, host: int, active: bool) -> None:
        User.objects.filter(pk=self.hosts[host].pk).update(is_active=active)

    # --- Readers -----------------------------------------------------------------------------------------
    @rule(reader=readers, host=hosts)
    def follow(self, reader: int, host: int) -> None:
        relations.follow(follower=self.readers[reader], followee=self.hosts[host])

    @rule(reader=readers, host=hosts)
    def unfollow(self, reader: int, host: int) -> None:
        relations.unfollow(follower=self.readers[reader], followee=self.hosts[host])

    @rule(reader=readers, host=hosts, undo=st.booleans(), by_host=st.booleans())
    def block(self, reader: int, host: int, undo: bool, by_host: bool) -> None:
        one, other = self.readers[reader], self.hosts[host]
        one, other = (other, one) if by_host else (one, other)
        (relations.unblock if undo else relations.block)(blocker=one, blocked=other)

    @rule(reader=readers, host=hosts, undo=st.booleans())
    def mute(self, reader: int, host: int, undo: bool) -> None:
        (relations.unmute if undo else relations.mute)(muter=self.readers[reader], muted=self.hosts[host])

    @rule(reader=readers)
    def stay_away(self, reader: int) -> None:
        User.objects.filter(pk=self.readers[reader].pk).update(last_seen_at=Now() - timedelta(days=60))
        levels.lower_levels()

    @rule(reader=readers, size=sizes, write=st.booleans())
    def begin(self, reader: int, size: int, write: bool = True) -> None:
        """A snapshot that is not written means: the server died after its answer."""
        user = User.objects.get(pk=self.readers[reader].pk)
        expected = feed(user.pk)
        related = relations_of(user.pk)
        page = live_page(user, page_size=size, now=self.now)
        if write:
            page.store()
        frozen = [
            (session.pk, session.state)
            for session in in_order(LiveSession.objects.filter(host__in=related, hidden_at=None))
        ]
        ended = set(LiveSession.objects.filter(state=State.REPLAY).values_list("pk", flat=True))
        self._compare(page, expected, size)
        walk = Walk(reader, frozen, ended, page)
        self._look(walk, expected, page, size)
        self.walks.append(walk)

    @precondition(lambda self: self.walks)
    @rule(pick=some, size=sizes)
    def go_on(self, pick: int, size: int) -> None:
        walk = self.walks[pick % len(self.walks)]
        self._page(walk, walk.last_id, size)

    @precondition(lambda self: self.walks)
    @rule(pick=some, size=sizes)
    def again(self, pick: int, size: int) -> None:
        self._page(self.walks[pick % len(self.walks)], None, size)

    @precondition(lambda self: self.walks)
    @rule(pick=some, place=some, size=sizes, offset=st.integers(-1, 1))
    def jump(self, pick: int, place: int, size: int, offset: int) -> None:
        ids = [i for row in LiveSession.objects.order_by("pk").values_list("pk", "position") for i in row if i]
        if ids:
            self._page(self.walks[pick % len(self.walks)], ids[place % len(ids)] + offset, size)

    @rule(reader=readers, place=some, size=sizes)
    def replays_only(self, reader: int, place: int, size: int) -> None:
        user = User.objects.get(pk=self.readers[reader].pk)
        positions = list(LiveSession.objects.exclude(position=None).order_by("pk").values_list("position", flat=True))
        below = positions[place % len(positions)] if positions else 2**52
        page = live_page(user, last_id=below, page_size=size, now=self.now)
        page.store()
        of = dict(LiveSession.objects.exclude(position=None).values_list("pk", "position"))
        expected = [(i, s) for i, s in feed(user.pk) if s == State.REPLAY and of[i] < below]
        assert page.session_id is None
        self._compare(page, expected, size)

    @precondition(lambda self: self.walks)
    @rule(pick=some)
    def foreign(self, pick: int) -> None:
        walk = self.walks[pick % len(self.walks)]
        other = self.readers[(walk.reader + 1) % READERS]
        with pytest.raises(UnknownSnapshotError):
            live_page(other, session_id=walk.page.session_id, now=self.now)

    # --- Workers, the broker and Redis -------------------------------------------------------------------
    @precondition(lambda self: QUEUE)
    @rule(pick=some, keep=st.booleans())
    def work(self, pick: int, keep: bool) -> None:
        """A kept one runs again later."""
        message = QUEUE[pick % len(QUEUE)]
        if not keep:
            QUEUE.remove(message)
        run(message)

    @rule()
    def work_all(self) -> None:
        for _ in range(5_000):
            if not QUEUE:
                return
            run(QUEUE.pop(0))
        raise AssertionError("the work makes work without end")

    @precondition(lambda self: QUEUE)
    @rule(pick=some)
    def lose_message(self, pick: int) -> None:
        QUEUE.pop(pick % len(QUEUE))

    @rule()
    def sweep(self) -> None:
        ReplayDelivery.objects.update(sweep_at=Now())
        deliveries.sweep(ReplayDelivery, fan_out)
        lineup.queue_outdated(now=datetime.now(UTC) + timedelta(minutes=1))

    @rule(host=hosts, reader=readers, kind=st.sampled_from(["lineup", "replays", "snapshot", "everything"]), pick=some)
    def lose(self, host: int, reader: int, kind: str, pick: int) -> None:
        if kind == "everything":
            self.feeds.flushall()
        elif kind == "lineup":
            self.feeds.delete(keys.lineup(self.hosts[host].pk))
        elif kind == "replays":
            self.feeds.delete(keys.replays(self.readers[reader].pk))
        elif self.walks:
            self.feeds.delete(self._snapshot(self.walks[pick % len(self.walks)]).key)

    @rule(host=hosts)
    def copy(self, host: int) -> None:
        key = keys.lineup(self.hosts[host].pk)
        if dump := self.feeds.dump(key):
            self.dumps[key] = dump

    @precondition(lambda self: self.dumps)
    @rule()
    def bring_back(self) -> None:
        for key, dump in self.dumps.items():
            self.feeds.restore(key, 0, dump, replace=True)

    @rule(reader=readers, size=sizes)
    def walk_without_redis(self, reader: int, size: int) -> None:
        with servers.frozen(servers.servers.feeds):
            connections.feeds_breaker.trip()
            self.begin(reader, size)
            self._page(self.walks[-1], self.walks[-1].last_id, size)
        connections.feeds_breaker.reset()
        while True:  # a frozen server answers old requests first
            try:
                self.feeds.ping()
                break
            except redis.RedisError:
                continue

    @invariant()
    def workers_keep_up(self) -> None:
        if getattr(self, "prompt", False):
            self.work_all()

    def teardown(self) -> None:
        if not hasattr(self, "walks"):
            return
        self.sweep()
        self.work_all()
        assert not ReplayDelivery.objects.exists()
        assert not Host.objects.exclude(applied__gte=0).exists()
        for reader in range(READERS):
            self.begin(reader, 2)
            walked = self._walk_on(self.walks[-1], 3)
            assert walked == [session_id for session_id, _ in feed(self.readers[reader].pk)]

    # --- Behind the rules --------------------------------------------------------------------------------
    def _pick(self, pick: int, state: State | None = None, **fields: Any) -> LiveSession | None:
        there = LiveSession.objects.filter(**fields).order_by("pk")
        there = there.filter(state=state) if state else there
        return there[pick % there.count()] if there.exists() else None

    def _try(self, verb: Any, pick: int, state: State, **fields: Any) -> LiveSession | None:
        session = self._pick(pick, state, **fields)
        return verb(session=session, now=self.now) if session else None

    def _end_at(self, session_id: int, position: int) -> None:
        drawn = actions.NEXT_ID
        actions.NEXT_ID = f"SELECT {position}::bigint"
        try:
            self._try(actions.end, 0, State.LIVE, pk=session_id)
        finally:
            actions.NEXT_ID = drawn

    def _walk_on(self, walk: Walk, size: int) -> list[int]:
        page = walk.page
        walked = [int(item.id) for item in page.items]
        while page.has_more:
            page = self._page(walk, walk.last_id, size)
            walked += [int(item.id) for item in page.items]
        return walked

    def _page(self, walk: Walk, last_id: int | None, size: int) -> LivePage:
        """Compare with the frozen list and what is visible now."""
        user = User.objects.get(pk=self.readers[walk.reader].pk)
        rows = {row.pk: row for row in LiveSession.objects.all()}
        now = dict(feed(user.pk))
        related = set(now)
        entries = [(i, s) for i, s in walk.frozen if i in related]
        frozen_ids = {i for i, s in walk.frozen if s == State.LIVE}
        ended = sorted(
            (i for i in walk.ended | self._late(walk) if now.get(i) == State.REPLAY and i not in frozen_ids),
            key=lambda i: -(rows[i].position or 0),
        )
        expected = [*entries, *((i, State.REPLAY.value) for i in ended)]
        places = [i for i, _ in walk.frozen]
        if last_id in places:
            after = set(places[places.index(last_id) + 1 :])
            expected = [one for one in expected if one[0] in after or one[0] in ended]
        elif last_id is not None:
            expected = [(i, State.REPLAY.value) for i in ended if (rows[i].position or 0) < last_id]
        try:
            page = live_page(
                user, session_id=walk.page.session_id, last_id=last_id, page_size=size, now=self.now + BEYOND
            )
        except SnapshotExpiredError:
            assert not self.feeds.exists(self._snapshot(walk).key)
            event("expired")
            self.walks.remove(walk)
            self.begin(walk.reader, size)
            self.walks[-1], walk.__dict__ = walk, self.walks[-1].__dict__
            return walk.page
        page.store()
        assert page.session_id == walk.page.session_id
        self._compare(page, expected, size)
        self._look(walk, expected, page, size)
        return page

    def _snapshot(self, walk: Walk) -> WalkSnapshot:
        found = WalkSnapshot.named(walk.page.session_id or "", self.readers[walk.reader].pk)
        assert found is not None
        return found

    def _late(self, walk: Walk) -> set[int]:
        """Ended later, with a position from before the freeze."""
        frozen = max(
            (p for p in LiveSession.objects.filter(pk__in=walk.ended).values_list("position", flat=True) if p),
            default=0,
        )
        return set(LiveSession.objects.filter(position__lt=frozen).values_list("pk", flat=True))

    def _compare(self, page: LivePage, expected: list[tuple[int, str]], size: int) -> None:
        """Full, or right up to its limit."""
        event(f"page from {'+'.join(page.sources)}")
        found = [(int(item.id), item.shown_as) for item in page.items]
        if is_short(page):
            event("short")
            assert found == expected[: len(found)], page.sources
        else:
            assert found == expected[:size], page.sources
            assert page.has_more == (len(expected) > size), page.sources

    def _look(self, walk: Walk, expected: list[tuple[int, str]], page: LivePage, size: int) -> None:
        assert is_short(page) or page.has_more == (len(expected) > size), page.sources
        states = dict(LiveSession.objects.values_list("pk", "state"))
        assert all(item.state == states[int(item.id)] for item in page.items)
        if page.last_id is not None:
            walk.last_id = page.last_id


BEYOND = timedelta(seconds=10)
"""No lost snapshot is waited for after this."""


def relations_of(reader_id: int) -> set[int]:
    """Hosts in the feed if nobody were suspended."""
    user = User.objects.get(pk=reader_id)
    hidden = {
        *user.blocks.values_list("blocked", flat=True),
        *user.blocked_by.values_list("blocker", flat=True),
        *user.mutes.values_list("muted", flat=True),
    }
    return set(user.follows.values_list("followee", flat=True)) - hidden


TAKEN: list[int] = []
"""Snapshot entries that the last page read."""


def is_short(page: LivePage) -> bool:
    """It reached its entry limit."""
    return sum(TAKEN) >= walking.BOUND and page.has_more


def in_order(sessions: Any) -> list[LiveSession]:
    live = sessions.filter(state=State.LIVE).order_by("-started_at", "-pk")
    return [*live, *sessions.filter(state=State.UPCOMING).order_by("starts_at", "pk")]


def run(message: tuple[str, tuple[Any, ...]]) -> None:
    name, args = message
    if name in TASKS:
        TASKS[name](*args)


@pytest.fixture
def tiny_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "LIVE_REPLAYS_CAP", 3)
    monkeypatch.setattr(site, "WINDOW_SLACK", 1)
    monkeypatch.setattr(site, "PENDING_CAP", 3)
    monkeypatch.setattr(site, "LIVE_SNAPSHOTS_CAP", 3)
    monkeypatch.setattr(walking, "BOUND", 8)
    fill, take = walking.LiveWalk.fill, walking.FrozenEntries.take

    def filled(*args: Any) -> None:
        TAKEN.clear()
        fill(*args)

    def taken(*args: Any) -> list[int]:
        found = take(*args)
        TAKEN.append(len(found))
        return found

    monkeypatch.setattr(walking.LiveWalk, "fill", filled)
    monkeypatch.setattr(walking.FrozenEntries, "take", taken)
    monkeypatch.setattr(site, "FAN_OUT_ATTEMPTS", 1_000)
    monkeypatch.setattr(celery.app, "send_task", prompt_tasks(lambda *task: QUEUE.append(task)))


def walk_all(machine: type[Live], *, examples: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
