"""docs/growth.md names every table of the database and every key of Redis, and periodic tasks that there are."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from storage import keys

PAGE = (Path(settings.BASE_DIR) / "docs" / "growth.md").read_text()
ROW = re.compile(r"^\| `([^`]+)` \|(.*)\|$", re.MULTILINE)
TASK = re.compile(r"`([a-z]+\.[a-z_]+)`")


def part(title: str) -> str:
    """The part of the page under a heading of the second level."""
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def named(text: str) -> list[str]:
    """The first cells of its rows."""
    return [match[1] for match in ROW.finditer(text)]


@pytest.mark.django_db
def test_the_page_has_every_table_once() -> None:
    with connection.cursor() as cursor:
        there = set(connection.introspection.table_names(cursor))
    listed = named(part("Tables"))
    assert sorted(listed) == sorted(there)


def test_the_page_has_every_key_once() -> None:
    assert sorted(named(part("Keys of Redis"))) == sorted(named(keys.__doc__ or ""))


def test_every_row_says_what_takes_it_away() -> None:
    for match in ROW.finditer(part("Tables")):
        who, *_, end = (cell.strip() for cell in match[2].split("|"))
        assert end or who.startswith(("nothing", "site: one row")), match[0]


def test_the_tasks_that_take_things_away_are_periodic() -> None:
    tasks = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()} | {"discover.index"}
    for match in ROW.finditer(part("Tables") + part("Files")):
        assert set(TASK.findall(match[2].split("|")[-1])) <= tasks, match[0]
