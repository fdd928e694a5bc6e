import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command, get_commands
from django.db.migrations.loader import MigrationLoader

from accounts.models import User
from runtime.commands import BY_PURPOSE, INNER
from tests.support.factories import UserFactory

ROOT = Path(settings.BASE_DIR)


def printed(*words: str) -> str:
    code = "import sys, manage; manage.run_command(['manage.py', *sys.argv[1:]])"  # without its installation
    run = subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout


def test_every_command_of_the_site_has_its_purpose() -> None:
    ours = {name for name, app in get_commands().items() if (ROOT / str(app).partition(".")[0]).is_dir()}
    shown = [name for names in BY_PURPOSE.values() for name in names]
    assert len(set(shown)) == len(shown)
    assert {*shown, *INNER} == {*ours, "collectstatic"}
    assert not INNER.intersection(shown)


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("help",), ("--help",)])
def test_help_shows_them_and_no_others(words: tuple[str, ...]) -> None:
    page = printed(*words)
    assert "\nMembers\n  account         create, promote" in page
    assert all(len(line) <= 80 for line in page.splitlines())
    assert not any(f"  {name} " in page for name in ("check_all", "flush", "dbshell", "runserver"))


@pytest.mark.long
@pytest.mark.slow
def test_help_all_shows_all_and_help_of_one_is_its_own() -> None:
    assert {"check_all", "dbshell", "account"} <= set(printed("help", "--all").split())
    assert "--push-level" in printed("help", "policy")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "words", [("flush", "--noinput"), ("migrate", "items", "zero"), ("migrate", "accounts", "0001")]
)
def test_what_destroys_a_site_is_refused_where_it_has_members(words: tuple[str, ...]) -> None:
    UserFactory()
    with pytest.raises(CommandError, match="This site has members"):
        call_command(*words)
    assert User.objects.count() == 1


@pytest.mark.django_db
def test_a_migration_forwards_is_not_refused() -> None:
    UserFactory()
    (newest,) = MigrationLoader(None).graph.leaf_nodes("accounts")
    call_command("migrate", *newest, verbosity=0)
