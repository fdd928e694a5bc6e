from collections.abc import Callable
from importlib import import_module
from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection
from django.test import Client
from django.urls import reverse

from accounts import tasks
from accounts.levels import policy
from accounts.models import Policy, User
from operation.doctor import feeds
from operation.doctor.findings import OK, WARNING
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db


def run(*args: str) -> str:
    out = StringIO()
    call_command("policy", *args, stdout=out)
    return out.getvalue()


def test_two_admins_who_change_it_at_once_keep_each_others_field(admin_client: Client) -> None:
    address = reverse("admin:accounts_policy_change", args=[1])
    page = admin_client.get(address).text
    assert 'name="initial-inbox_from" value="0"' in page
    policy.change(inbox_from=50)
    fields = {"push_level": "2", "inbox_from": "0", "initial-push_level": "3", "initial-inbox_from": "0"}
    assert admin_client.post(address, fields).status_code == 302
    assert policy.current()[:2] == (2, 50)


def test_draws_are_whole_numbers_that_a_double_holds() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT feedsite_draw() FROM generate_series(1, 2000)")
        drawn = [row[0] for row in cursor.fetchall()]
    assert len(set(drawn)) == 2000
    assert all(0 < number < 2**52 for number in drawn)
    assert max(drawn) > 2**51 > min(drawn)


def test_the_command_shows_and_changes(push_level: Callable[[int], None]) -> None:
    before = policy.current()
    assert run() == f"push level 3, inbox from 0, generation {before.generation}\n"
    assert run("--push-level", "3", "--inbox-from", "0") == run(), "no change, no new generation"
    assert policy.current() == before
    run("--push-level", "2")
    after = policy.current()
    assert after[:2] == (2, 0)
    assert after.generation not in (None, before.generation)
    run("--inbox-from", "50")
    both = policy.current()
    assert both[:2] == (2, 50)
    assert both.generation not in (None, after.generation)
    run("--push-level", "3", "--inbox-from", "0")
    assert policy.current()[:2] == (3, 0)
    renewed = policy.current().generation
    run("--new-generation")
    assert policy.current()[:2] == (3, 0)
    assert policy.current().generation != renewed


REFUSED = ["-1", "100001", "9" * 30, "abc", "1.5", "", "0x10", "1_0", "٣", "nan", " 1"]


@pytest.mark.parametrize("value", REFUSED)
@pytest.mark.parametrize("name", ["push-level", "inbox-from"])
def test_other_values_are_refused(name: str, value: str) -> None:
    before = policy.current()
    with pytest.raises(CommandError) as refused:
        run(f"--{name}={value}")
    assert str(refused.value).startswith(f"--{name}: {value!r} is not a whole number from ")
    assert "\n" not in str(refused.value)
    assert policy.current() == before


@pytest.mark.parametrize("wanted", [{"push_level": 0}, {"push_level": 5}, {"inbox_from": -1}, {"inbox_from": 100_001}])
def test_nothing_writes_another_value(wanted: dict[str, int]) -> None:
    (name,) = wanted
    with pytest.raises(ValueError, match=f"{name} is .* it must be a whole number"):
        policy.change(**wanted)
    with pytest.raises(IntegrityError):
        Policy.objects.update(**wanted)


@pytest.mark.slow
def test_the_admin_shows_and_changes_the_one_row(client: Client, push_level: Callable[[int], None]) -> None:
    boss = User.objects.create_superuser("boss", "pw")
    client.force_login(boss)
    page = reverse("admin:accounts_policy_change", args=[1])
    before = policy.current()
    assert "push level 3, inbox from 0 follows" in client.get(reverse("admin:accounts_policy_changelist")).text
    answer = client.post(page, {"push_level": 2, "inbox_from": 50})
    assert answer.status_code == 302
    assert policy.current()[:2] == (2, 50)
    assert policy.current().generation not in (None, before.generation)
    history = client.get(reverse("admin:accounts_policy_history", args=[1])).text
    assert "push_level: 3 → 2" in history
    assert "inbox_from: 0 → 50" in history
    for wrong in ({"push_level": 5, "inbox_from": -1}, {"push_level": "x", "inbox_from": 10**20}):
        answer = client.post(page, wrong)
        assert answer.status_code == 200
        assert set(answer.context["adminform"].form.errors) == {"push_level", "inbox_from"}
    assert policy.current()[:2] == (2, 50)
    assert client.get(reverse("admin:accounts_policy_add")).status_code == 403
    assert client.post(reverse("admin:accounts_policy_delete", args=[1]), {"post": "yes"}).status_code == 403


def test_staff_neither_see_nor_change_it(client: Client) -> None:
    staff = UserFactory(is_staff=True)
    staff.user_permissions.set(Permission.objects.filter(content_type__model="policy"))
    client.force_login(staff)
    assert client.get(reverse("admin:accounts_policy_changelist")).status_code == 403
    assert client.post(reverse("admin:accounts_policy_change", args=[1]), {"push_level": 2}).status_code == 403
    assert policy.current().push_level == 3


def test_there_is_one_row() -> None:
    with pytest.raises(IntegrityError):
        Policy.objects.create(pk=2, push_level=3)


def test_a_failover_is_noticed() -> None:
    before = policy.current()
    tasks.follow_timeline()
    assert policy.current() == before
    Policy.objects.update(drawn_on=before.generation)  # on a server that is lost
    assert policy.current() == (before.push_level, before.inbox_from, None)
    assert run() == "push level 3, inbox from 0, generation not yet chosen\n"
    tasks.follow_timeline()
    assert policy.current().generation not in (None, before.generation)


def test_the_doctor_tells_the_policy_and_windows_of_another_timeline() -> None:
    found = {each.name: each for each in feeds.pushes()}
    assert {each.state for each in found.values()} == {OK}
    assert "from level 3" in found["policy"].text
    policy.change(inbox_from=50)
    found = {each.name: each for each in feeds.pushes()}
    assert "fewer than 50 have no inbox" in found["policy"].text
    Policy.objects.update(drawn_on=77)
    found = {each.name: each for each in feeds.pushes()}
    assert found["windows"].state == WARNING


def test_a_row_that_is_gone_is_made_anew(settings: Any) -> None:
    settings.BIG_V_PUSH_LEVEL = 2
    Policy.objects.all().delete()
    assert policy.current().generation is None
    tasks.follow_timeline()
    assert (policy.current().push_level, policy.current().generation is None) == (2, False)


def test_a_row_that_is_gone_is_made_anew_with_both(settings: Any) -> None:
    settings.INBOX_FROM = 50
    Policy.objects.all().delete()
    tasks.follow_timeline()
    assert policy.current()[:2] == (3, 50)
    assert Policy.objects.get().timeline is None


@pytest.mark.parametrize(("push_level", "inbox_from"), [(1, 0), (2, 50), (4, 0)])
def test_a_new_site_begins_with_what_the_settings_say(settings: Any, push_level: int, inbox_from: int) -> None:
    settings.BIG_V_PUSH_LEVEL, settings.INBOX_FROM = push_level, inbox_from
    Policy.objects.all().delete()
    import_module("accounts.migrations.0002_squashed").seed(apps, None)
    assert policy.current()[:2] == (push_level, inbox_from)
    assert policy.current().generation is not None
    assert (Policy.objects.get().timeline is None) == (inbox_from > 0)
