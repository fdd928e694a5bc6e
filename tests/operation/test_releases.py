"""A backup of each release becomes a site of this version. `tests/releases` has one, made as CONTRIBUTING.md says."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from runtime.management.commands.check_all import clean_environ

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

RELEASES = sorted(Path(settings.BASE_DIR, "tests/releases").glob("*.backup"))
LOOK = """
from django.test import Client
from accounts.models import User
from items.models import Item
from operation.upgrade import unapplied
assert unapplied() == []
assert Item.objects.count() > 50
browser = Client(headers={"host": "localhost"})
for user in User.objects.all():
    browser.force_login(user)
    for path in ("/", f"/@{user.username}", "/notifications", "/discover", "/live", "/settings"):
        assert browser.get(path).status_code == 200, path
print(User.objects.count(), "see their pages")
"""


def manage(folder: Path, *arguments: str) -> str:
    environ = clean_environ(folder) | {"FEEDSITE_DEBUG": "1"}
    command = [sys.executable, "manage.py", *arguments]
    done = subprocess.run(command, cwd=settings.BASE_DIR, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("backup", RELEASES, ids=lambda path: path.stem)
def test_a_release_is_upgraded(backup: Path, tmp_path: Path) -> None:
    folder = tmp_path / "var"
    manage(folder, "restore", str(backup))
    assert manage(folder, "shell", "-v", "0", "-c", LOOK).splitlines()[-1] == "12 see their pages"
