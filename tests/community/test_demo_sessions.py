"""The demo's sessions: every state at once, also hours later."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import Count, F, Q

from community import demo
from live import lineup, reminders, timing
from live.models import Host, LiveSession, Reminder, State
from notifications.feed import unread_count

pytestmark = pytest.mark.django_db


def counts() -> Counter[str]:
    return Counter(dict(LiveSession.objects.values_list("state").annotate(Count("pk"))))


@pytest.mark.long
def test_a_demo_that_runs_for_hours_is_not_dead() -> None:
    demo.make(size=24)
    now = datetime.now(UTC)
    begun = counts()
    assert min(begun[State.LIVE], begun[State.UPCOMING]) >= 3
    assert begun[State.REPLAY] >= 20
    for session in LiveSession.objects.select_related("host"):
        session.full_clean(exclude=["id"])
    scheduled = Count("user__live_sessions", filter=Q(user__live_sessions__state__in=["live", "upcoming"]))
    assert not Host.objects.alias(real=scheduled).exclude(scheduled=F("real")).exists()
    assert not Reminder.objects.exclude(session__state=State.UPCOMING).exists()
    waiting = Reminder.objects.get().user
    assert lineup.queue_outdated(now=now + timedelta(minutes=1)) == Host.objects.count(), (
        "the sweeper writes the lineups"
    )

    alive = 0
    for minute in range(0, 8 * 60, 30):
        timing.advance_due(now=now + timedelta(minutes=minute))
        states = counts()
        assert states[State.LIVE] + states[State.UPCOMING] == begun[State.LIVE] + begun[State.UPCOMING]
        alive += states[State.LIVE] > 0
    assert alive > 10, "of 16 times that one looks"
    assert counts()[State.REPLAY] > 1.5 * begun[State.REPLAY]
    assert State.MISSED not in counts()
    (due,) = LiveSession.objects.filter(reminders_due=True)
    reminders.send(due.pk)
    assert unread_count(waiting).unread >= 1


@pytest.mark.slow
def test_the_smallest_community_has_shows_too() -> None:
    demo.make(size=demo.SMALLEST)
    assert LiveSession.objects.filter(state=State.LIVE).exists()
