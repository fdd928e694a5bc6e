from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from live.models import LiveSession, ReplayDelivery, State
from tests.support.admin import act, text
from tests.support.factories import UserFactory
from tests.support.sessions import session as made
from tests.support.workers import Workers

pytestmark = pytest.mark.django_db

SESSIONS = "/admin/live/livesession/"


@pytest.fixture
def sessions() -> list[LiveSession]:
    host = UserFactory(username="host")
    return [made(host), made(host, State.LIVE), made(host, State.REPLAY), made(UserFactory(username="42"))]


def shown(admin_client: Client, **query: str) -> list[LiveSession]:
    response = admin_client.get(SESSIONS, query)
    assert response.status_code == 200
    return list(response.context["cl"].result_list)


@pytest.mark.slow
def test_sessions_are_found(admin_client: Client, sessions: list[LiveSession], django_assert_num_queries: Any) -> None:
    upcoming, live, replay, other = sessions
    with django_assert_num_queries(3):
        assert shown(admin_client) == [other, replay, live, upcoming]
    assert shown(admin_client, q="@HOST") == [replay, live, upcoming]
    assert shown(admin_client, q="42") == [other]
    assert shown(admin_client, q=str(live.pk)) == [live]
    assert shown(admin_client, q="9" * 40) == []
    assert shown(admin_client, state__exact="live") == [live]


@pytest.mark.slow
def test_hidden_ones_are_shown_again_and_it_is_logged(admin_client: Client, sessions: list[LiveSession]) -> None:
    replay = sessions[2]
    LiveSession.objects.filter(pk=replay.pk).update(hidden_at=timezone.now())
    assert shown(admin_client, hidden_at__isempty="0") == [replay]
    assert replay not in shown(admin_client, hidden_at__isempty="1")
    assert "1 live session is shown again." in text(act(admin_client, SESSIONS, "show_again", replay))
    assert "1 live session wasn&#x27;t hidden." in text(act(admin_client, SESSIONS, "show_again", replay))
    logged = LogEntry.objects.filter(object_id=str(replay.pk)).values_list("change_message", flat=True)
    assert list(logged) == ["Shown again."]


@pytest.mark.slow
def test_sessions_are_neither_edited_nor_removed(admin_client: Client, sessions: list[LiveSession]) -> None:
    page = text(admin_client.get(f"{SESSIONS}{sessions[0].pk}/change/"))
    assert 'name="title"' not in page
    assert admin_client.post(f"{SESSIONS}{sessions[0].pk}/change/", {"title": "x"}).status_code == 403
    assert admin_client.get(f"{SESSIONS}add/").status_code == 403
    assert admin_client.post(f"{SESSIONS}{sessions[0].pk}/delete/", {"post": "yes"}).status_code == 403
    assert "delete_selected" not in text(admin_client.get(SESSIONS))


def test_staff_without_the_right_do_nothing(client: Client, sessions: list[LiveSession]) -> None:
    client.force_login(UserFactory(is_staff=True))
    assert client.get(SESSIONS).status_code == 403
    assert act(client, SESSIONS, "hide", sessions[0]).status_code == 403


@pytest.mark.slow
def test_a_parked_replay_is_found_and_retried(
    admin_client: Client, sessions: list[LiveSession], workers: Workers, django_capture_on_commit_callbacks: Any
) -> None:
    replay = sessions[2]
    url = "/admin/live/replaydelivery/"
    ReplayDelivery.objects.filter(pk=replay.pk).update(parked_at=timezone.now(), attempts=5, last_error="poison")
    assert "poison" in text(admin_client.get(url, {"state": "parked"}))
    assert "poison" not in text(admin_client.get(url, {"state": "pending"}))
    workers.queue.clear()
    with django_capture_on_commit_callbacks(execute=True):
        assert "Retrying 1 delivery." in text(act(admin_client, url, "retry", replay))
    assert LogEntry.objects.get(object_id=str(replay.pk)).change_message == "Retried delivery."
    workers.work()
    assert not ReplayDelivery.objects.exists()
    assert admin_client.get(f"{url}add/").status_code == 403


def test_staff_who_may_only_look_retry_nothing(client: Client, sessions: list[LiveSession]) -> None:
    url = "/admin/live/replaydelivery/"
    ReplayDelivery.objects.update(parked_at=timezone.now())
    looker = UserFactory(is_staff=True)
    looker.user_permissions.add(Permission.objects.get(codename="view_replaydelivery"))
    client.force_login(looker)
    assert str(sessions[2].pk) in text(client.get(url))
    act(client, url, "retry", sessions[2])
    assert ReplayDelivery.objects.parked().exists()
