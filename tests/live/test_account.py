import io
import json
import zipfile
from datetime import UTC, datetime, timedelta

import pytest
from rest_framework.test import APIClient

from accounts.actions import delete_account
from accounts.export import write_archive
from accounts.models import User
from live import actions, purge
from live.models import Host, LiveSession, Reminder, ReplayDelivery, State
from relations import actions as relations
from tests.support.factories import UserFactory
from tests.support.sessions import session as made

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.slow
def test_the_sessions_of_a_deleted_account_vanish_at_once_and_are_removed() -> None:
    host, other, fan = UserFactory(username="host"), UserFactory(), UserFactory()
    sessions = [made(host, state) for state in State if state != State.MISSED]
    kept = made(other)
    actions.remind(user=fan, session=sessions[0])
    actions.remind(user=host, session=kept)
    delete_account(user=host)
    api = APIClient()
    assert {api.get(f"/api/v1/live/sessions/{session.pk}").status_code for session in sessions} == {404}
    parts = 0
    while purge.purge(user_id=host.pk, limit=2):
        parts += 1
        assert parts < 20
    assert parts >= 3, "in parts"
    assert list(LiveSession.objects.all()) == [kept]
    assert not Reminder.objects.exists()
    assert not ReplayDelivery.objects.exists()
    assert list(Host.objects.values_list("pk", flat=True)) == [other.pk]
    assert purge.purge(user_id=host.pk, limit=2) == 0


def archive(user: User) -> dict[str, list[dict[str, object]]]:
    file = io.BytesIO()
    write_archive(user, file)
    with zipfile.ZipFile(file) as packed:
        return {
            name: [json.loads(line) for line in packed.read(name).splitlines()]
            for name in ("live_sessions.jsonl", "live_reminders.jsonl")
        }


@pytest.mark.slow
def test_own_data_hold_sessions_and_reminders() -> None:
    host, fan = UserFactory(username="host"), UserFactory()
    planned = actions.create(host=host, title="演出", url="https://watch.example/", starts_at=NOW, now=NOW)
    hidden, cancelled = made(host, State.REPLAY), made(host, State.CANCELLED)
    actions.hide(session=hidden, now=NOW)
    actions.remind(user=fan, session=planned)
    own = archive(host)
    assert own["live_reminders.jsonl"] == []
    assert [(row["id"], row["state"], row["hidden"]) for row in own["live_sessions.jsonl"]] == [
        (str(planned.pk), "upcoming", False),
        (str(hidden.pk), "replay", True),
        (str(cancelled.pk), "cancelled", False),
    ]
    assert own["live_sessions.jsonl"][0]["url"] == "https://watch.example/"
    (reminder,) = archive(fan)["live_reminders.jsonl"]
    assert (reminder["session_id"], reminder["title"], reminder["by"]) == (str(planned.pk), "演出", "host")
    relations.block(blocker=host, blocked=fan)
    assert archive(fan)["live_reminders.jsonl"] == [], "what they may not see any more is not theirs"
    assert NOW - timedelta(days=1) < NOW
