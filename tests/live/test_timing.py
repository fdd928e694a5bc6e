from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accounts import deactivation
from live import actions, timing
from live.models import Host, LiveSession, State
from tests.support.at_once import at_once
from tests.support.factories import UserFactory
from tests.support.workers import Workers

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def plan(minute: int, **fields: Any) -> LiveSession:
    host = fields.pop("host", None) or UserFactory()
    return actions.create(host=host, title="Show", starts_at=NOW + minute * MINUTE, now=NOW, **fields)


def states(*sessions: LiveSession) -> list[str]:
    found = dict(LiveSession.objects.values_list("pk", "state"))
    return [found[session.pk] for session in sessions]


@pytest.mark.slow
def test_as_time_goes_by(settings: Any) -> None:
    settings.LIVE_GRACE = timedelta(hours=2)
    show, brief, by_hand = plan(10, automatic=True, minutes=30), plan(15, automatic=True, minutes=5), plan(10)
    timeline = []
    for minute in (0, 9, 10, 15, 20, 39, 40, 129, 130, 500):
        timing.advance_due(now=NOW + minute * MINUTE)
        timeline.append((minute, *states(show, brief, by_hand)))
    up, live, replay, missed = State.UPCOMING, State.LIVE, State.REPLAY, State.MISSED
    assert timeline == [
        (0, up, up, up),
        (9, up, up, up),
        (10, live, up, up),
        (15, live, live, up),
        (20, live, replay, up),
        (39, live, replay, up),
        (40, replay, replay, up),
        (129, replay, replay, up),
        (130, replay, replay, missed),
        (500, replay, replay, missed),
    ]
    assert timing.advance_due(now=NOW + 500 * MINUTE) == 0


def test_what_its_host_forgets_to_end_ends(settings: Any) -> None:
    settings.LIVE_LONGEST = timedelta(hours=3)
    session = actions.start(session=plan(0), now=NOW)
    timing.advance_due(now=NOW + 179 * MINUTE)
    assert states(session) == [State.LIVE]
    timing.advance_due(now=NOW + 180 * MINUTE)
    assert states(session) == [State.REPLAY]


@pytest.mark.slow
def test_the_sessions_of_the_unseen_do_not_start_but_do_end() -> None:
    hidden, inactive, live = plan(1, automatic=True), plan(1, automatic=True), plan(0, automatic=True, minutes=5)
    timing.advance_due(now=NOW)
    actions.hide(session=hidden, now=NOW)
    deactivation.deactivate(user=inactive.host)
    deactivation.deactivate(user=live.host)
    timing.advance_due(now=NOW + 9 * MINUTE)
    assert states(hidden, inactive, live) == [State.UPCOMING, State.UPCOMING, State.REPLAY]


def test_what_was_put_off_meanwhile_stays_so() -> None:
    """The verb checks again, since a session found due may be postponed or hidden meanwhile."""
    host = UserFactory()
    by_hand, later, hidden = plan(0, host=host), plan(9, host=host, automatic=True), plan(0, host=host, automatic=True)
    actions.hide(session=hidden, now=NOW)
    for session in (by_hand, later, hidden):
        with pytest.raises(actions.WrongStateError):
            actions.start(session=session, now=NOW, by_itself=True)
    assert states(by_hand, later, hidden) == [State.UPCOMING] * 3


def test_what_was_off_for_long_is_missed_and_its_series_goes_on() -> None:
    host = UserFactory()
    first = plan(0, host=host, automatic=True)
    LiveSession.objects.update(repeat_minutes=60)
    timing.advance_due(now=NOW + 330 * MINUTE)
    following = LiveSession.objects.exclude(pk=first.pk).get()
    assert states(first, following) == [State.MISSED, State.UPCOMING]
    assert following.starts_at == NOW + 360 * MINUTE
    timing.advance_due(now=NOW + 360 * MINUTE)
    timing.advance_due(now=NOW + 425 * MINUTE)
    assert states(following) == [State.REPLAY]
    last = LiveSession.objects.latest("starts_at")
    assert last.starts_at == NOW + 480 * MINUTE, "the hour in which it was still on is left out"
    assert Host.objects.get().scheduled == 1


@pytest.mark.django_db(transaction=True)
def test_two_tasks_at_once_change_each_once(workers: Workers) -> None:
    sessions = [plan(0, automatic=True) for _ in range(6)]
    done = at_once(*[lambda: timing.advance_due(now=NOW)] * 3)
    assert sum(done) == len(sessions)
    assert set(LiveSession.objects.values_list("state", "version")) == {(State.LIVE, 2)}
