"""Lists are exact, the rest is counted."""

import io
import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from accounts.export import write_archive
from accounts.models import User
from seen import played, store
from seen.filter_store import FilterKey, expiry, month_of
from seen.lmdb_store import LmdbStore
from seen.merging import merge_users
from seen.played import Play
from tests.support.factories import UserFactory
from tests.support.servers import Valkey, dead

pytestmark = pytest.mark.django_db

NAMES = ("plays.jsonl", "issued.jsonl", "played_months.jsonl")


@pytest.fixture(autouse=True)
def _empty_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_store", LmdbStore(tmp_path / "played"))


@pytest.fixture
def ann() -> User:
    return UserFactory()


def archive(user: User) -> tuple[list[list[Any]], str]:
    """Our files' rows, and its description."""
    target = io.BytesIO()
    write_archive(user, target)
    with zipfile.ZipFile(target) as written:
        rows = [[json.loads(line) for line in written.read(name).splitlines()] for name in NAMES]
        return rows, written.read("README.txt").decode()


def shown(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def test_waiting_plays_are_listed_and_the_rest_is_counted(ann: User) -> None:
    now = timezone.now().replace(microsecond=0)
    month = month_of(now)
    moments = [datetime(now.year, now.month, 1, tzinfo=UTC), now]
    played.record([Play(ann.pk, item_id, moments[0]) for item_id in range(1, 301)], now=now)
    merge_users([ann.pk], now=now)
    played.record([Play(ann.pk, 12, moments[1]), Play(ann.pk, 11, moments[0])], now=now)
    played.record([Play(UserFactory().pk, 13, now)], now=now)
    played.record_issued([(ann.pk, [21, 22])])

    (plays, issued, months), read_me = archive(ann)
    assert plays == [
        {"item_id": "11", "played_at": shown(moments[0])},
        {"item_id": "12", "played_at": shown(moments[1])},
    ]
    assert issued == [{"item_id": "22"}, {"item_id": "21"}]
    until = datetime.fromtimestamp(expiry(FilterKey(ann.pk, month)), UTC)
    (only,) = months
    assert only["month"] == f"{now:%Y-%m}"
    assert only["kept_until"] == shown(until)
    assert 298 <= only["items"] <= 300
    assert "a Bloom filter only tells" in read_me


def test_users_without_plays_have_empty_files(ann: User) -> None:
    rows, read_me = archive(ann)
    assert rows == [[], [], []]
    assert "could not be read" not in read_me.partition("plays.jsonl")[2]


def test_the_archive_says_where_a_server_did_not_answer(ann: User, plays_server: Valkey) -> None:
    played.record([Play(ann.pk, 1, timezone.now())], now=timezone.now())
    with dead(plays_server):
        rows, read_me = archive(ann)
    assert rows == [[], [], []]
    assert read_me.count("We couldn't read it just now. Try again later.") == len(NAMES)
