"""Everybody who asked is told once when it starts, whatever dies."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from accounts import deactivation
from accounts.models import User
from live import actions, reminders
from live.models import LiveSession, Reminder
from notifications import actions as notifications
from notifications.feed import notifications_page, unread_count, unread_counts
from notifications.models import Act, Notification
from relations import actions as relations
from storage import events
from storage.events import ManyNotified
from stream.news import news_for
from tests.support.api import client_of
from tests.support.at_once import at_once
from tests.support.factories import UserFactory
from tests.support.statements import statements
from tests.support.workers import Workers

pytestmark = pytest.mark.django_db
NOTHING = {"unread": 0, "capped": False, "conversations": 0, "requests": 0}

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
MANY, BATCH = 250, 100


@pytest.fixture
def session() -> LiveSession:
    host = UserFactory(username="host", display_name="The Host")
    return actions.create(host=host, title="Evening show", starts_at=NOW, now=NOW)


def crowd(session: LiveSession, size: int) -> list[User]:
    fans = User.objects.bulk_create(User(username=f"fan{number}", level=3) for number in range(size))
    Reminder.objects.bulk_create(Reminder(session=session, user=fan) for fan in fans)
    return fans


def told(session: LiveSession) -> list[int]:
    return sorted(Notification.objects.filter(session_id=session.pk).values_list("recipient_id", flat=True))


@pytest.mark.slow
def test_users_who_asked_read_it(session: LiveSession, client: Client) -> None:
    fan = UserFactory()
    actions.remind(user=fan, session=session)
    assert unread_count(fan).unread == 0
    actions.start(session=session, now=NOW)
    assert reminders.send(session.pk) == 1
    assert reminders.send(session.pk) == 0
    assert unread_count(fan).unread == 1
    api = client_of(fan)
    (entry,) = api.get("/api/v1/me/notifications").json()["items"]
    assert entry["kind"] == "live"
    assert entry["session"] == {"id": str(session.pk), "title": "Evening show", "state": "live"}
    assert entry["item"] is None
    assert entry["actors"][0]["username"] == "host"
    client.force_login(fan)
    page = client.get("/notifications").content.decode()
    assert "went live" in page
    assert f'<a href="/live/{session.pk}">Evening show</a>' in page
    assert "Evening show" not in client.get("/notifications/mentions").content.decode()


def test_hidden_sessions_are_not_told(session: LiveSession) -> None:
    muting, blocking, blocked, gone, fan = UserFactory.create_batch(5)
    for user in (muting, blocking, blocked, gone, fan):
        actions.remind(user=user, session=session)
    actions.remind(user=session.host, session=session)
    relations.mute(muter=muting, muted=session.host)
    relations.block(blocker=blocking, blocked=session.host)
    relations.block(blocker=session.host, blocked=blocked)
    deactivation.deactivate(user=gone)
    actions.start(session=session, now=NOW)
    reminders.send(session.pk)
    assert told(session) == [fan.pk]
    assert not Reminder.objects.exists()

    def is_told() -> bool:
        page = notifications_page(fan)
        assert unread_count(fan).unread == unread_counts([fan.pk])[fan.pk].unread == len(page.items)
        return bool(page.items)

    assert is_told()
    actions.hide(session=session, now=NOW)
    assert not is_told()
    actions.show_again(session=session, now=NOW)
    assert is_told()
    relations.mute(muter=fan, muted=session.host)
    assert not is_told()
    relations.unmute(muter=fan, muted=session.host)
    deactivation.deactivate(user=session.host)
    assert not is_told()


def test_the_page_costs_one_more_query_for_all_sessions(session: LiveSession) -> None:
    fan, host = UserFactory(), session.host
    for _ in range(5):
        other = actions.create(host=host, title="t", starts_at=NOW, now=NOW)
        actions.remind(user=fan, session=other)
        actions.start(session=other, now=NOW)
        reminders.send(other.pk)
    with statements() as asked:
        page = notifications_page(fan)
    assert [entry.kind for entry in page.items] == ["live"] * 5
    assert len(asked) <= 3


@pytest.mark.slow
def test_many_are_told_in_batches_and_once_though_a_worker_dies(
    session: LiveSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    fans = crowd(session, MANY)
    actions.start(session=session, now=NOW)
    tell, calls = notifications.notify_of_session, []

    def dying(**kwargs: Any) -> None:
        tell(**kwargs)
        calls.append(len(kwargs["user_ids"]))
        if len(calls) == 2:
            raise ConnectionError("the worker dies before the commit")

    monkeypatch.setattr(notifications, "notify_of_session", dying)
    with pytest.raises(ConnectionError):
        reminders.send(session.pk, size=BATCH)
    assert len(told(session)) == BATCH, "the first batch stands, the second is as if it had not been"
    assert Reminder.objects.count() == MANY - BATCH
    assert reminders.sweep() == 1
    assert reminders.send(session.pk, size=BATCH) == MANY - BATCH
    assert told(session) == sorted(fan.pk for fan in fans)
    assert Act.objects.count() == MANY
    assert calls == [100, 100, 100, 50]
    assert reminders.sweep() == 0


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_two_workers_share_the_work(session: LiveSession, workers: Workers) -> None:
    fans = crowd(session, 300)
    actions.start(session=session, now=NOW)
    assert ("live.remind", (session.pk,)) in workers.queue
    taken = at_once(*[lambda: reminders.send(session.pk, size=20)] * 3)
    assert sum(taken) == len(fans)
    assert told(session) == sorted(fan.pk for fan in fans)
    reminders.send(session.pk)  # as the sweeper does if other workers held all rows
    assert not LiveSession.objects.get().reminders_due


@pytest.mark.django_db(transaction=True)
def test_what_a_dying_worker_held_is_not_given_up(session: LiveSession, workers: Workers) -> None:
    """Another worker finds nothing to take, but must not end the reminders."""
    fan = UserFactory()
    actions.remind(user=fan, session=session)
    actions.start(session=session, now=NOW)
    taken, looked = threading.Event(), threading.Event()

    def dying() -> None:
        with transaction.atomic():
            reminders.send(session.pk)
            taken.set()
            assert looked.wait(60)
            raise ConnectionError

    def other() -> int:
        assert taken.wait(60)
        try:
            return reminders.send(session.pk)
        finally:
            looked.set()

    assert at_once(dying, other)[1] == 0
    assert reminders.sweep() == 1
    assert reminders.send(session.pk) == 1
    assert told(session) == [fan.pk]


def test_open_pages_hear_of_it_by_one_event_a_batch(
    session: LiveSession, feeds: Any, django_capture_on_commit_callbacks: Any
) -> None:
    fans = crowd(session, 60)
    with django_capture_on_commit_callbacks(execute=True):
        actions.start(session=session, now=NOW)
    feeds.delete("events")
    with django_capture_on_commit_callbacks(execute=True):
        reminders.send(session.pk)
    ((_, fields),) = feeds.xrange("events")
    event = events.event_of(fields)
    assert isinstance(event, ManyNotified)
    assert event.payloads == {fan.pk: NOTHING | {"unread": 1} for fan in fans}
    listener, stranger = events.Listener(fans[0].pk), events.Listener(UserFactory().pk)
    heard = news_for([listener, stranger], [(events.Position(1, 0), event)])
    assert [one for one, _, _ in heard] == [listener]


def test_what_comes_to_nothing_forgets_who_asked(session: LiveSession) -> None:
    other = actions.create(host=session.host, title="t", starts_at=NOW, now=NOW)
    for each in (session, other):
        actions.remind(user=UserFactory(), session=each)
    actions.cancel(session=session, now=NOW)
    actions.mark_missed(session=other, now=NOW + timedelta(days=1))
    assert not Reminder.objects.exists()
    assert reminders.sweep() == 0


def test_the_sweep_costs_an_index() -> None:
    with statements() as sent:
        reminders.sweep()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {sent[-1]}")
        assert "live_reminders_due" in str(cursor.fetchall())


def test_reminders_of_a_held_session_wait_for_its_approval(session: LiveSession, workers: Workers) -> None:
    fan = UserFactory()
    actions.remind(user=fan, session=session)
    actions.hide_for_review(session=session, now=NOW)
    actions.start(session=session, now=NOW)
    reminders.send(session.pk)
    assert Reminder.objects.count() == 1
    actions.approve(session=session, now=NOW)
    reminders.send(session.pk)
    assert [(entry.kind, entry.unread) for entry in notifications_page(fan).items] == [("live", True)]
