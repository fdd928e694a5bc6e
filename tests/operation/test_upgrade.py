"""A site of version 0.1.0 is taken over whole by the version of now.

`data/v0.1.0.backup` was made by that version's `migrate`, `demo --users 12` and `backup`, and `data/v0.1.0.json` holds
the ids of its home pages, by reader.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from runtime.management.commands.check_all import clean_environ

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

DATA = Path(__file__).parent / "data"
UPGRADE = """
import io, json, sys
import django
django.setup()
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from accounts.models import User
from items.models import Item
from timeline.home import home_page

def columns():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns"
            " WHERE table_schema = current_schema ORDER BY 1, 2")
        names = cursor.fetchall()
        cursor.execute("SELECT tablename, indexname FROM pg_indexes WHERE schemaname = current_schema ORDER BY 1, 2")
        return [list(map(list, names)), list(map(list, cursor.fetchall()))]

with settings.SERVERS.ensure():
    call_command("migrate", interactive=False, verbosity=0)
    new = columns()
    call_command("restore", sys.argv[1], stdout=io.StringIO())
    call_command("migrate", interactive=False, verbosity=0)
    call_command("migrate", check_unapplied=True, verbosity=0)
    upgraded = columns()
    pages = {}
    for reader in User.objects.order_by("pk"):
        pages[reader.username] = [item.id for item in home_page(reader).items]
    reposts = [str(pk) for pk in Item.objects.exclude(repost_of=None).values_list("pk", flat=True)]
print(json.dumps({"pages": pages, "reposts": reposts, "new": new, "upgraded": upgraded}))
"""


def test_a_site_of_the_version_before_goes_on(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", UPGRADE, str(DATA / "v0.1.0.backup")],
        cwd=settings.BASE_DIR,
        env=clean_environ(tmp_path / "var") | {"DJANGO_SETTINGS_MODULE": "feedsite.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    # Which reposts are folded is another rule since; all else stands as it stood.
    before = json.loads((DATA / "v0.1.0.json").read_text())
    assert told["pages"].keys() == before.keys()
    for reader, ids in before.items():
        said = [item for item in ids if item not in told["reposts"]]
        assert [item for item in told["pages"][reader] if item not in told["reposts"]][: len(said)] == said
    assert told["upgraded"] == told["new"]
