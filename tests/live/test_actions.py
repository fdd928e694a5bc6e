"""Every verb in every state, two at once, and events lost before Redis."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import permutations
from typing import Any

import pytest
import redis
from django.core.exceptions import ValidationError
from django.db import connection, transaction

from accounts.models import User
from feedsite import celery
from live import actions, lineup
from live.actions import WrongStateError
from live.lineup import Lineup
from live.models import Host, LiveSession, Reminder, ReplayDelivery, State
from runtime.embedded import wait_for
from storage.connections import pipelined
from tests.support import servers
from tests.support.at_once import at_once
from tests.support.factories import UserFactory
from tests.support.patience import SHORT
from tests.support.sessions import TASKS
from tests.support.workers import Workers

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 5, 1, 12, 0, 0, 123_456, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def plan(host: User | None = None, **fields: Any) -> LiveSession:
    made: dict[str, Any] = {"title": "Show", "starts_at": NOW + HOUR} | fields
    return actions.create(host=host or UserFactory(), now=NOW, **made)


def brought(state: State) -> LiveSession:
    session = plan()
    match state:
        case State.LIVE:
            actions.start(session=session, now=NOW)
        case State.REPLAY:
            actions.start(session=session, now=NOW)
            actions.end(session=session, now=NOW + HOUR)
        case State.CANCELLED:
            actions.cancel(session=session, now=NOW)
        case State.MISSED:
            actions.mark_missed(session=session, now=NOW + 9 * HOUR)
    return session


def row(session: LiveSession) -> tuple[Any, ...]:
    return LiveSession.objects.values_list().get(pk=session.pk)


# --- Transitions -----------------------------------------------------------------------------------------
LATER = NOW + 9 * HOUR
VERBS: dict[str, tuple[Callable[..., Any], dict[State, State]]] = {
    "start": (partial(actions.start, now=LATER), {State.UPCOMING: State.LIVE}),
    "end": (partial(actions.end, now=LATER), {State.LIVE: State.REPLAY}),
    "cancel": (partial(actions.cancel, now=LATER), {State.UPCOMING: State.CANCELLED}),
    "miss": (partial(actions.mark_missed, now=LATER), {State.UPCOMING: State.MISSED}),
    "edit the title": (
        partial(actions.edit, now=LATER, title="New"),
        {state: state for state in (State.UPCOMING, State.LIVE, State.REPLAY)},
    ),
    "put it off": (partial(actions.edit, now=LATER, starts_at=LATER + HOUR), {State.UPCOMING: State.UPCOMING}),
    "let it run": (partial(actions.edit, now=LATER, automatic=True), {State.UPCOMING: State.UPCOMING}),
    "remind": (partial(actions.remind, user=None), {State.UPCOMING: State.UPCOMING}),
}


@pytest.mark.slow
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("name", VERBS)
def test_every_verb_in_every_state(name: str, state: State) -> None:
    verb, allowed = VERBS[name]
    if name == "remind":
        verb = partial(actions.remind, user=UserFactory())
    session = brought(state)
    before, host = row(session), Host.objects.get()
    if state not in allowed:
        with pytest.raises(WrongStateError) as refused:
            verb(session=session)
        assert refused.value.state == state
        assert row(session) == before
        assert Host.objects.get().version == host.version
        return
    verb(session=session)
    changed = LiveSession.objects.get(pk=session.pk)
    assert changed.state == allowed[state]
    after = Host.objects.get()
    moved = name in ("start", "end", "cancel", "miss", "put it off")
    assert (after.version > host.version) is moved, "the lineup is another one, and only then"
    assert after.scheduled == (1 if changed.state in (State.UPCOMING, State.LIVE) else 0)
    if name != "remind":
        assert changed.version == before[[field.name for field in LiveSession._meta.fields].index("version")] + 1


@pytest.mark.parametrize("state", State)
def test_an_admin_ends_whatever_goes_on(state: State) -> None:
    session = brought(state)
    becomes = {State.UPCOMING: State.CANCELLED, State.LIVE: State.REPLAY}
    assert actions.force_end(session=session, now=LATER) is (state in becomes)
    session.refresh_from_db()
    assert session.state == becomes.get(state, state)


def test_times_are_of_the_host_s_word_and_in_milliseconds() -> None:
    session = plan(starts_at=NOW + HOUR)
    session = actions.start(session=session, now=NOW + MINUTE)
    session = actions.end(session=session, now=NOW)  # the clock went back
    session.refresh_from_db()
    assert session.starts_at == (NOW + HOUR).replace(microsecond=123_000)
    assert session.started_at == session.ended_at == (NOW + MINUTE).replace(microsecond=123_000)
    assert session.position is not None


def test_a_session_is_missed_only_after_the_grace(settings: Any) -> None:
    settings.LIVE_GRACE = 2 * HOUR
    session = plan(starts_at=NOW)
    with pytest.raises(WrongStateError):
        actions.mark_missed(session=session, now=NOW + 2 * HOUR - MINUTE)
    actions.edit(session=session, now=NOW, starts_at=NOW + HOUR)
    with pytest.raises(WrongStateError):
        actions.mark_missed(session=session, now=NOW + 2 * HOUR)
    assert actions.mark_missed(session=session, now=NOW + 3 * HOUR).state == State.MISSED


def test_what_cannot_be_is_said_by_field() -> None:
    with pytest.raises(ValidationError) as wrong:
        plan(title=" ", url="http://x.example/", cover_url="nonsense", starts_at=NOW - HOUR, minutes=0)
    assert set(wrong.value.message_dict) == {"title", "url", "cover_url", "starts_at", "minutes"}
    assert not Host.objects.exists()
    session = plan(starts_at=NOW)
    actions.edit(session=session, now=NOW + HOUR, title="The time was right when it was set")
    with pytest.raises(ValidationError):
        actions.edit(session=session, now=NOW, starts_at=NOW + timedelta(days=400))


def test_a_replay_is_delivered_once_and_again_when_it_is_shown_again() -> None:
    def revisions() -> dict[int, int]:
        return dict(ReplayDelivery.objects.values_list("session_id", "revision"))

    session = brought(State.REPLAY)
    first = revisions()
    assert list(first) == [session.pk]
    assert actions.hide(session=session, now=NOW)
    assert not actions.hide(session=session, now=NOW)
    assert revisions() == first
    assert actions.show_again(session=session, now=NOW)
    again = revisions()
    assert list(again) == [session.pk]
    assert again != first
    assert not actions.show_again(session=session, now=NOW)
    hidden = brought(State.LIVE)
    actions.hide(session=hidden, now=NOW)
    actions.end(session=hidden, now=NOW)
    assert revisions() == again


def test_a_hidden_session_leaves_the_lineup_and_comes_back(feeds: redis.Redis) -> None:
    host = UserFactory()
    session = plan(host)
    seen = []
    for verb in (actions.hide, actions.show_again):
        verb(session=session, now=NOW)
        lineup.apply(host.pk)
        seen.append(
            [entry.session_id for entry in Lineup.read(pipelined(feeds, [Lineup(host.pk).read_command()])[0])[1]]
        )
    assert seen == [[], [session.pk]]


HELD: dict[str, Callable[..., Any]] = {"hold": actions.hide_for_review, "reject": actions.reject}


@pytest.mark.parametrize("verb", HELD.values(), ids=HELD)
def test_a_replay_that_its_host_does_not_want_is_none_after_a_review(verb: Callable[..., Any]) -> None:
    session = plan()
    LiveSession.objects.filter(pk=session.pk).update(repeat_minutes=60)
    actions.start(session=session, now=NOW)
    verb(session=session, now=NOW)
    actions.end(session=session, now=NOW + MINUTE / 2, keeps_short=False)
    assert not actions.approve(session=session, now=NOW + HOUR)
    session.refresh_from_db()
    assert (session.state, session.hidden_at is not None) == (State.REPLAY, True)
    assert not LiveSession.objects.exclude(pk=session.pk).exists(), "what was not approved is not repeated"


# --- Events out of order ---------------------------------------------------------------------------------
def test_events_in_any_order_leave_the_same_lineup(feeds: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue may reorder tasks: a start's task after the end's changes nothing."""
    host = UserFactory()
    written = []
    put = Lineup.put
    monkeypatch.setattr(
        Lineup,
        "put",
        lambda self, *args: written.append(put(self, *args)) or written[-1],  # type: ignore[func-returns-value]
    )
    session = plan(host)
    lineup.apply(host.pk)
    actions.start(session=session, now=NOW)
    lineup.apply(host.pk)
    actions.end(session=session, now=NOW)
    lineup.apply(host.pk)
    newest = Host.objects.get().version
    assert len(written) == 3
    for order in permutations([*written, written[0]]):
        feeds.flushall()
        for command in order:
            pipelined(feeds, [command])
        assert Lineup.read(pipelined(feeds, [Lineup(host.pk).read_command()])[0]) == (newest, []), order


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_broker_is_gone_and_the_sweeper_brings_it(
    broker_server: servers.Valkey, feeds: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = UserFactory()
    with servers.dead(broker_server):
        session = plan(host)
        actions.start(session=session, now=NOW)
    assert feeds.exists(Lineup(host.pk).key) == 0
    workers = Workers(TASKS, drops_others=True)
    monkeypatch.setattr(celery.app, "send_task", workers.send_task)
    celery_breaker_reset()
    assert lineup.queue_outdated(now=datetime.now(UTC) + MINUTE) == 1
    workers.work()
    version, entries = Lineup.read(pipelined(feeds, [Lineup(host.pk).read_command()])[0])
    assert (version, [entry.session_id for entry in entries]) == (Host.objects.get().version, [session.pk])
    assert lineup.queue_outdated(now=datetime.now(UTC) + MINUTE) == 0


def celery_breaker_reset() -> None:
    from storage.connections import broker_breaker

    broker_breaker.reset()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_transition_does_not_wait_for_a_frozen_redis(
    feeds_server: servers.Valkey, broker_server: servers.Valkey
) -> None:
    """With feeds and broker frozen, the state is committed and the answer waits only for short time-outs."""
    session = plan()
    with servers.frozen(feeds_server), servers.frozen(broker_server):
        begun = time.monotonic()
        actions.start(session=session, now=NOW)
        waited = time.monotonic() - begun
        assert lineup.apply(session.host_id) is False
    assert waited < SHORT, "no patience of minutes"
    session.refresh_from_db()
    assert session.state == State.LIVE


# --- Concurrent ------------------------------------------------------------------------------------------
def verdicts(outcomes: list[Any]) -> list[str]:
    return sorted("done" if isinstance(one, LiveSession) else type(one).__name__ for one in outcomes)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("state", "first", "second"),
    [
        (State.UPCOMING, actions.start, actions.start),
        (State.UPCOMING, actions.start, actions.cancel),
        (State.LIVE, actions.end, actions.end),
    ],
)
def test_of_two_at_once_one_is_done(workers: Workers, state: State, first: Any, second: Any) -> None:
    session = brought(state)
    version = LiveSession.objects.get().version
    outcomes = at_once(partial(first, session=session, now=NOW), partial(second, session=session, now=NOW))
    assert verdicts(outcomes) == ["WrongStateError", "done"]
    now = LiveSession.objects.get()
    assert now.version == version + 1
    (refused,) = [one for one in outcomes if isinstance(one, WrongStateError)]
    assert refused.state == now.state


@pytest.mark.django_db(transaction=True)
def test_a_host_plans_no_more_than_the_cap_at_once(workers: Workers, settings: Any) -> None:
    settings.LIVE_SCHEDULED_CAP = 3
    host = UserFactory()
    outcomes = at_once(*[partial(plan, host)] * 6)
    assert verdicts(outcomes) == ["TooManySessionsError"] * 3 + ["done"] * 3
    assert Host.objects.get().scheduled == LiveSession.objects.count() == 3


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("first", ["start", "remind"])
def test_asking_and_starting_wait_for_each_other(workers: Workers, first: str) -> None:
    """No stored reminder is lost: a late one is refused, one in time is sent."""
    session, fan = plan(), UserFactory()
    verbs = {
        "start": partial(actions.start, session=session, now=NOW),
        "remind": partial(actions.remind, user=fan, session=session),
    }
    second = verbs.pop("remind" if first == "start" else "start")
    held = threading.Event()

    def hold() -> Any:
        with transaction.atomic():
            verbs[first]()
            held.set()
            until_somebody_waits()

    def follow() -> Any:
        assert held.wait(60)
        return second()

    done, outcome = at_once(hold, follow)
    assert done is None
    session.refresh_from_db()
    assert session.state == State.LIVE
    if first == "start":
        assert isinstance(outcome, WrongStateError)
        assert outcome.state == State.LIVE
    assert Reminder.objects.exists() is session.reminders_due is (first == "remind")


def until_somebody_waits() -> None:
    """Fails if nobody waits for a lock of this connection."""

    def is_waited_for() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid)))"
            )
            return bool(cursor.fetchone() == (True,))

    assert wait_for(is_waited_for, 60), "nobody waits"


def test_the_index_of_lineups_is_used() -> None:
    """Reading a host's lineup must not grow with their replays."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN " + lineup.CURRENT, {"host": 1})
        assert "live_lineup" in str(cursor.fetchall())
    assert "live.apply" in TASKS
