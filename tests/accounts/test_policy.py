"""The policy's row: seeded once, changed by command, of one generation at a time."""

from collections.abc import Callable
from importlib import import_module
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection
from django.db.migrations.executor import MigrationExecutor

from accounts import policy, tasks
from accounts.models import Policy
from operation import doctor

pytestmark = pytest.mark.django_db


def run(*args: str) -> str:
    out = StringIO()
    call_command("policy", *args, stdout=out)
    return out.getvalue()


def test_draws_are_whole_numbers_that_a_double_holds() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT feedsite_draw() FROM generate_series(1, 2000)")
        drawn = [row[0] for row in cursor.fetchall()]
    assert len(set(drawn)) == 2000
    assert all(0 < number < 2**52 for number in drawn)
    assert max(drawn) > 2**51 > min(drawn)


def test_the_command_shows_and_changes(push_level: Callable[[int], None]) -> None:
    before = policy.current()
    assert run() == f"push level 3, generation {before.generation}\n"
    assert run("--push-level", "3") == run(), "no change, no new generation"
    assert policy.current() == before
    run("--push-level", "2")
    after = policy.current()
    assert after.push_level == 2
    assert after.generation not in (None, before.generation)
    run("--new-generation")
    assert policy.current().push_level == 2
    assert policy.current().generation != after.generation


@pytest.mark.parametrize("level", [0, 5, -1])
def test_other_levels_are_refused(level: int) -> None:
    with pytest.raises(CommandError):
        run(f"--push-level={level}")
    with pytest.raises(ValueError, match="1 to 4"):
        policy.change(push_level=level)


def test_there_is_one_row() -> None:
    with pytest.raises(IntegrityError):
        Policy.objects.create(pk=2, push_level=3)


def test_a_failover_is_noticed() -> None:
    before = policy.current()
    tasks.follow_timeline()
    assert policy.current() == before
    Policy.objects.update(drawn_on=before.generation)  # of a server that is gone
    assert policy.current() == (before.push_level, before.inbox_from, None)
    assert run() == "push level 3, generation to be drawn\n"
    tasks.follow_timeline()
    assert policy.current().generation not in (None, before.generation)


def test_the_doctor_compares_with_the_environment(settings: Any) -> None:
    assert {each.state for each in doctor.pushes()} == {doctor.OK}
    settings.BIG_V_PUSH_LEVEL = 2
    found = {each.name: each for each in doctor.pushes()}
    assert found["policy"].state == doctor.WARNING
    assert "--push-level 2" in found["policy"].todo
    Policy.objects.update(drawn_on=77)
    found = {each.name: each for each in doctor.pushes()}
    assert found["windows"].state == doctor.WARNING


def test_a_row_that_is_gone_is_made_anew(settings: Any) -> None:
    settings.BIG_V_PUSH_LEVEL = 2
    Policy.objects.all().delete()
    assert policy.current().generation is None
    tasks.follow_timeline()
    assert (policy.current().push_level, policy.current().generation is None) == (2, False)


@pytest.mark.parametrize("configured", [1, 2, 4])
def test_a_new_site_begins_with_what_the_environment_says(settings: Any, configured: int) -> None:
    settings.BIG_V_PUSH_LEVEL = configured
    Policy.objects.all().delete()
    state = MigrationExecutor(connection).loader.project_state(("accounts", "0006_policy"))
    import_module("accounts.migrations.0006_policy").seed(state.apps, None)
    assert policy.current().push_level == configured
