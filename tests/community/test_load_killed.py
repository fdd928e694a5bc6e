"""`load`, killed at random places until it is done, must leave what one load leaves."""

import os
import random
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.test import TransactionTestCase

from accounts.models import User
from items.models import Item, ItemDocument, ItemTag
from items.search.query import parse
from items.search.search import search_items
from relations.models import Follow
from tests.support.datasets import as_json, database_url, packed
from tests.support.effort import tries
from tests.support.timelines import read
from tests.support.workers import Workers
from timeline.check import differences
from timeline.models import Import, ImportedUser

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.long]

PROGRAM = """
import os, signal, sys

import django
import psycopg
import redis.connection

django.setup()
from django.core.management import call_command

last, done = int(sys.argv[2]), 0


def counted(kind, name):
    plain = getattr(kind, name)

    def call(*args, **kwargs):
        global done
        done += 1
        if done == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(*args, **kwargs)

    setattr(kind, name, call)


for name in ("execute", "executemany", "copy"):
    counted(psycopg.Cursor, name)
counted(psycopg.Connection, "commit")
counted(redis.connection.AbstractConnection, "send_packed_command")
call_command("load", sys.argv[1], verbosity=0)
print(done)
"""
"""Loads a folder. Kills itself before a statement, commit or Redis command, by number. 0: never."""
USERS = 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A big-V, hashtags, and posts in several COPY chunks."""
    chance = random.Random(22)  # noqa: S311 (no secret)
    packed(tmp_path / "users.csv.gz", ["id,name", *(f"{number},nick_{number}" for number in range(1, USERS + 1))])
    pairs = {(chance.randint(1, USERS), 1 + chance.randint(0, 5) ** 2) for _ in range(400)}
    pairs |= {(number, 2) for number in range(1, USERS + 1)}
    follows = [f"{follower},{followee}" for follower, followee in sorted(pairs) if follower != followee]
    packed(tmp_path / "follows.csv.gz", ["follower_id,followee_id", *follows])
    posts = [
        {
            "id": number,
            "author_id": chance.randint(1, USERS),
            "created_at": datetime.fromtimestamp(1_000_000_000 + number // 3, UTC).isoformat(),
            "text": f"post {number} of the #tag{number % 5}",
        }
        for number in range(1, 2_001)
    ]
    packed(tmp_path / "posts.jsonl.gz", as_json(posts))
    return tmp_path


def run(folder: Path, last: int) -> str:
    """The process's last line. Empty if it was killed."""
    environ = os.environ | {
        "FEEDSITE_DATABASE_URL": database_url(),
        "DJANGO_SETTINGS_MODULE": "feedsite.settings",
        "FEEDSITE_BIG_V_THRESHOLD": "30",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), str(last)],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 or (last and done.returncode == -signal.SIGKILL), done.stderr
    return done.stdout.splitlines()[-1] if done.returncode == 0 else ""


def everything(workers: Workers) -> dict[str, Any]:
    """All that the site stores and shows, without ids."""
    workers.work()
    names = dict(User.objects.values_list("pk", "username"))
    reader = User.objects.get(username="nick_7")
    big_vs = list(User.objects.filter(is_big_v=True).values_list("pk", flat=True))
    assert big_vs
    assert list(differences(big_vs)) == []
    texts = dict(Item.objects.values_list("pk", "content__text"))
    columns = ("username", "display_name", "following_count", "follower_count", "level", "is_big_v")
    return {
        "users": sorted(User.objects.values_list(*columns)),
        "follows": sorted((names[row.follower_id], names[row.followee_id]) for row in Follow.objects.all()),
        "items": sorted(
            (names[item.sender_id], item.pk, item.text, item.created_at, item.modified_at)
            for item in Item.objects.all()
        ),
        "tags": sorted(ItemTag.objects.values_list("tag", "item_id")),
        "documents": ItemDocument.objects.count(),
        "loads": [Import.objects.count(), Import.objects.filter(settled_at=None).count()],
        "imported": sorted(
            (row.original_id, names[row.user_id]) for row in ImportedUser.objects.order_by("original_id")
        ),
        "home": [texts[item_id] for item_id in read(reader, limit=100)],
        "search": len(search_items(parse("#tag3"), reader, limit=100).items),
    }


def test_a_load_that_is_killed_brings_nothing_twice_and_misses_nothing(folder: Path, workers: Workers) -> None:
    statements = int(run(folder, 0))
    expected = everything(workers)
    assert expected["loads"] == [1, 0]
    assert len(expected["items"]) == 2_000
    forget()
    chance = random.Random()  # noqa: S311
    for _round in range(tries(1, 6)):
        places = sorted(chance.sample(range(1, statements + 1), 4))
        for place in places:
            print("killed before statement", place, "of", statements)
            run(folder, place)
        run(folder, 0)
        assert everything(workers) == expected
        forget()


def forget() -> None:
    """Empty the site as after a test. Redis keeps windows of deleted users."""
    TransactionTestCase._fixture_teardown(None)  # type: ignore[arg-type, attr-defined]  # tests/conftest.py
