import io
import os
import subprocess
import sys
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client

from operation.doctor import postgresql
from operation.doctor.findings import ERROR, OK
from storage import site_key
from storage.models import SiteKey
from tests.support.streams import database_url
from web import health

pytestmark = pytest.mark.django_db

OTHER = "another machine made this key for itself, and has never heard of ours"


def ask(client: Client, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str | None]:
    """Ask as a freshly started program."""
    monkeypatch.setattr(health, "DEADLINE_SECONDS", 60)
    monkeypatch.setattr(health, "latest", health.LatestStates())
    answer = client.get("/readyz")
    return answer.status_code, answer.json()["servers"].get("secret key")


def doctors_state() -> str:
    finding, *_ = postgresql.key_and_read_only_mode()
    return finding.state


@pytest.mark.django_db(transaction=True)
def test_another_key_is_refused(settings: Any, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    call_command("check_key")  # the first machine
    call_command("check_key")
    assert ask(client, monkeypatch) == (200, None)
    assert doctors_state() == OK
    settings.SECRET_KEY = OTHER
    for _ in range(2):
        with pytest.raises(CommandError, match="differs from the site's") as refused:
            call_command("check_key")
        assert refused.value.returncode == 2
    assert ask(client, monkeypatch) == (503, "differs from the site's")
    assert doctors_state() == ERROR


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "name", ["web", *(pytest.param(name, marks=pytest.mark.long) for name in ("stream", "worker"))]
)
def test_no_program_starts_with_another_key(name: str) -> None:
    call_command("check_key")
    environ = os.environ | {"FEEDSITE_SECRET_KEY": OTHER, "FEEDSITE_DATABASE_URL": database_url(), "PORT": "1"}
    code = f"import manage; manage.run_command(['manage.py', 'program', '{name}'])"  # without its installation
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, cwd=settings.BASE_DIR, env=environ, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert "Copy FEEDSITE_SECRET_KEY from another machine" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_changed_key_takes_the_place_of_the_old_one(settings: Any) -> None:
    call_command("check_key")
    before = settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = OTHER, [before]
    assert doctors_state() == OK
    call_command("check_key")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = before, []
    with pytest.raises(CommandError, match="differs from the site's"):
        call_command("check_key")  # a machine that was forgotten


def test_a_lost_key_is_given_up(settings: Any) -> None:
    call_command("check_key")
    settings.SECRET_KEY = OTHER
    call_command("seal_factors", "--new-key", stdout=io.StringIO())
    call_command("check_key")


def test_the_note_does_not_hold_the_key(settings: Any) -> None:
    call_command("check_key")
    noted = SiteKey.objects.get().fingerprint
    assert settings.SECRET_KEY not in noted
    assert noted == site_key.fingerprint(settings.SECRET_KEY)
