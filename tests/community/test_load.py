import gzip
import io
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from django.contrib.auth import authenticate
from django.core.management import CommandError, call_command
from django.db import connection

from accounts.models import Level, User
from items.models import Item
from relations.models import Follow
from storage import ids, keys
from tests.support.at_once import at_once
from tests.support.datasets import as_json, packed
from tests.support.workers import Workers
from timeline.check import differences
from timeline.models import Delivery, Import, ImportedUser

pytestmark = pytest.mark.django_db
# VACUUM, the last step of a load, cannot run in a test's transaction.
committed = pytest.mark.django_db(transaction=True)

USERS = [(7, "author-7"), (3, "author-3"), (9, "author-9")]
FOLLOWS = [
    (3, 7, "2009-09-08T15:22:45Z"),
    (7, 3, "2003-01-01T00:00:00+02:00"),
    (9, 7, "2005-01-01T00:00:00Z"),
]
POSTS: list[dict[str, Any]] = [
    {"id": 1, "author_id": 3, "created_at": "2001-02-01T08:32:30Z", "text": "first"},
    {"id": 2, "author_id": 7, "created_at": "2001-02-01T08:32:30Z", "text": "same second"},
    {"id": 4, "author_id": 3, "created_at": "2001-02-01T08:32:30Z", "text": "same second again"},
    {"id": 3, "author_id": 3, "created_at": "2020-05-05T05:05:05.678Z", "text": 'ü 中文\n<b>"quoted"</b>\\N\t'},
]

Load = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    packed(tmp_path / "users.csv.gz", ["id,name", *(f"{number},{name}" for number, name in USERS)])
    rows = (f"{follower},{followee},{moment},touch" for follower, followee, moment in FOLLOWS)
    packed(tmp_path / "follows.csv.gz", ["follower_id,followee_id,created_at,kind", *rows])
    packed(tmp_path / "posts.jsonl.gz", as_json(POSTS))
    return tmp_path


@pytest.fixture
def load(folder: Path) -> Load:
    def run(**options: Any) -> str:
        out = io.StringIO()
        call_command("load", str(folder), stdout=out, stderr=out, **{"verbosity": 0, **options})
        return out.getvalue()

    return run


def counts() -> tuple[int, ...]:
    models = (User, Follow, Item, Import, ImportedUser)
    return tuple(model._default_manager.count() for model in models)


@pytest.mark.slow
@committed
def test_everything_is_there(load: Load) -> None:
    stranger = User.objects.create(username="stranger")
    out = load()

    assert "Loaded 3 users, 3 follows, 4 posts" in out
    assert counts() == (4, 3, 4, 1, 3)
    assert Delivery.objects.count() == 0
    by_name = {user.username: user for user in User.objects.exclude(pk=stranger.pk)}
    assert sorted(by_name) == ["author-3", "author-7", "author-9"]
    assert {
        (name, user.following_count, user.follower_count, user.level, user.last_seen_at)
        for name, user in by_name.items()
    } == {
        ("author-3", 1, 1, Level.DORMANT, None),
        ("author-7", 1, 2, Level.DORMANT, None),
        ("author-9", 1, 0, Level.DORMANT, None),
    }
    assert not any(user.has_usable_password() or user.is_staff for user in by_name.values())
    assert dict(ImportedUser.objects.values_list("original_id", "user__username")) == dict(USERS)


@pytest.mark.slow
@committed
def test_the_big_vs_have_outboxes(load: Load, workers: Workers, feeds: redis.Redis, settings: Any) -> None:
    settings.BIG_V_THRESHOLD = 2
    load()
    workers.work()
    (big_v,) = User.objects.filter(is_big_v=True)
    assert (big_v.username, feeds.zscore(keys.outbox(big_v.pk), "floor")) == ("author-7", 0)
    assert list(differences([big_v.pk])) == []


@committed
def test_posts_keep_their_time_their_order_and_their_text(load: Load) -> None:
    load()
    items = list(Item.objects.order_by("id"))
    assert [item.text for item in items] == [post["text"] for post in POSTS]
    assert [item.created_at for item in items] == [datetime.fromisoformat(post["created_at"]) for post in POSTS]
    assert [item.modified_at for item in items] == [item.created_at for item in items]
    first = ids.compose(datetime(2001, 2, 1, 8, 32, 30, tzinfo=UTC), 0)
    assert [item.id for item in items[:3]] == [first, first + 1, first + 2]
    assert {(item.status, item.visibility, item.type) for item in items} == {("published", "public", "text")}


@committed
def test_follows_keep_their_time_and_are_listed_by_it(load: Load) -> None:
    load()
    moments = list(Follow.objects.order_by("id").values_list("created_at", flat=True))
    assert moments == sorted(datetime.fromisoformat(moment) for _, _, moment in FOLLOWS)


@committed
def test_follows_without_times_happen_now(load: Load, folder: Path) -> None:
    packed(folder / "follows.csv.gz", ["follower_id,followee_id", "3,7"])
    before = datetime.now(UTC)
    load()
    assert before <= Follow.objects.get().created_at <= datetime.now(UTC)


@committed
def test_a_second_run_loads_nothing(load: Load) -> None:
    load()
    before = counts()
    assert "Already loaded on " in load()
    assert counts() == before


@committed
def test_two_at_once_load_once(load: Load) -> None:
    outs = at_once(load, load)
    assert sum("Already loaded on" in out for out in outs) == 1
    assert sum("Loaded 3 users" in out for out in outs) == 1
    assert counts() == (3, 3, 4, 1, 3)


@committed
def test_ids_of_items_that_are_there_are_left_alone(load: Load) -> None:
    """Two existing items share the first posts' millisecond, at the first place and between them."""
    first = ids.compose(datetime(2001, 2, 1, 8, 32, 30, tzinfo=UTC), 0)
    sender = User.objects.create(username="sender")
    for place in (0, 2):
        Item.objects.create(id=first + place, sender=sender, content={"text": "here before"})
    load()
    mine = Item.objects.exclude(sender=sender).order_by("id")
    assert [item.id - first for item in mine[:3]] == [1, 3, 4]
    assert [item.text for item in mine[:3]] == [post["text"] for post in POSTS[:3]]


@committed
def test_the_order_within_a_second_holds_across_chunks(
    load: Load, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("community.importing.CHUNK", 2)
    posts = [{**POSTS[0], "id": number, "text": str(number)} for number in range(1, 8)]
    packed(folder / "posts.jsonl.gz", as_json(posts))
    load()
    assert [item.text for item in Item.objects.order_by("id")] == [post["text"] for post in posts]


@committed
def test_more_posts_of_a_millisecond_than_it_has_ids_stand_in_the_next(
    load: Load, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Posts of one millisecond overflow into the next, which has a post of its own."""
    monkeypatch.setattr("community.importing.CHUNK", 3_000)
    posts = [{**POSTS[0], "id": number, "text": str(number)} for number in range(1, 8_300)]
    moment = datetime.fromisoformat(POSTS[0]["created_at"])
    posts.append({**posts[0], "id": 9_000, "created_at": (moment + timedelta(milliseconds=1)).isoformat()})
    packed(folder / "posts.jsonl.gz", as_json(posts))
    load()
    loaded = list(Item.objects.order_by("id"))
    assert sorted(int(item.text) for item in loaded) == [1, *range(1, 8_300)]
    assert [int(item.text) for item in loaded if item.text != "1"] == list(range(2, 8_300))
    assert max(item.created_at for item in loaded) - moment < timedelta(milliseconds=4)


@committed
def test_a_password_for_all_is_set_at_once_or_later(load: Load) -> None:
    load()
    assert authenticate(username="author-3", password="let me in") is None
    out = load(password="let me in")
    assert authenticate(username="author-3", password="let me in") is not None
    assert re.search(r": log in as author-[379] \(1\)\.", out)
    with pytest.raises(CommandError, match="empty"):
        load(password="")


@committed
def test_the_busiest_reader_is_named(load: Load, folder: Path) -> None:
    packed(folder / "follows.csv.gz", ["follower_id,followee_id", "9,7", "9,3", "3,7"])
    assert "log in as author-9 (2)" in load()


@pytest.mark.parametrize("other", ["author-3", "AUTHOR-3"])
def test_a_taken_name(load: Load, other: str) -> None:
    User.objects.create(username=other)
    with pytest.raises(CommandError, match=r"users\.csv\.gz line 3: another user has the name author-3"):
        load()
    assert counts() == (1, 0, 0, 0, 0)


@committed
def test_imports_may_exceed_the_follow_cap(load: Load, folder: Path, settings: Any) -> None:
    settings.FOLLOW_CAP = 1
    packed(folder / "follows.csv.gz", ["follower_id,followee_id", "9,7", "9,3"])
    load()
    assert User.objects.get(username="author-9").following_count == 2


@committed
def test_the_threshold_makes_big_vs(load: Load, settings: Any) -> None:
    settings.BIG_V_THRESHOLD = 2
    load()
    assert list(User.objects.filter(is_big_v=True).values_list("username", flat=True)) == ["author-7"]


@committed
def test_windows_of_an_older_database_are_dropped(load: Load, feeds: redis.Redis) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(pg_get_serial_sequence('accounts_user', 'id'))")
        (last,) = cursor.fetchone()
    stale = [key(last + 1) for key in (keys.inbox, keys.outbox, keys.tail)]
    for key in stale:
        feeds.zadd(key, {"floor": 0, "epoch": -1})
    load()
    assert ImportedUser.objects.filter(user_id=last + 1).exists()
    assert feeds.exists(*stale) == 0


GOOD = as_json(POSTS)
WRONG_USERS = {
    "no id": (["id,name", "x,author-1"], "line 2: id 'x' is not an id"),
    "id 0": (["id,name", "0,author-1"], "line 2: id '0' is not an id"),
    "huge id": (["id,name", f"{2**63},author-1"], "line 2: id '9223372036854775808' is not an id"),
    "same id": (["id,name", "1,a", "1,b"], "line 3: the id 1 is also in an earlier line"),
    "same name": (["id,name", "1,a", "2,A"], "line 3: the name A is also in an earlier line"),
    "bad name": (["id,name", "1,a b"], "line 2: the name 'a b' is not permitted"),
    "reserved name": (["id,name", "1,admin"], "line 2: the name 'admin' is not permitted"),
    "too few columns": (["id,name", "1"], "line 2: 1 columns instead of 2"),
    "no such column": (["id,username", "1,a"], "line 1: the column name is missing"),
    "nothing": ([], "line 1: the column id is missing"),
    "bad quotes": (["id,name", '1,"a"b'], "line 2: "),
    "not UTF-8": (["id,name", "1,\udcff"], "line 2: not UTF-8"),
}
WRONG_FOLLOWS = {
    "unknown follower": (["3,7,2001-01-01T00:00:00Z", "5,7,2001-01-01T00:00:00Z"], "line 3: the user 5 is not"),
    "unknown followee": (["3,5,2001-01-01T00:00:00Z"], "line 2: the user 5 is not in users.csv.gz"),
    "self": (["3,3,2001-01-01T00:00:00Z"], "line 2: user 3 follows themself"),
    "twice": (["3,7,2001-01-01T00:00:00Z"] * 2, "line 3: 3 follows 7 in an earlier line"),
    "no time": (["3,7,yesterday"], "line 2: created_at 'yesterday' is not an ISO-8601 time"),
    "too early": (["3,7,0001-01-01T00:00:00+14:00"], r"line 2: 0001-01-01 00:00:00\+14:00 is before 1970"),
    "no offset": (["3,7,2001-01-01T00:00:00"], "line 2: created_at '2001-01-01T00:00:00' has no UTC offset"),
    "future": (["3,7,2999-01-01T00:00:00Z"], "line 2: .* is in the future"),
}
WRONG_POSTS: dict[str, tuple[str, str]] = {
    "no JSON": ("{", "line 5: "),
    "empty line": ("", "line 5: "),
    "no object": ("[]", "line 5: Expected `object`, got `array`"),
    "no text": (json.dumps({**POSTS[0], "id": 9, "text": None}), r"line 5: Expected `str`, got `null` - at `\$.text`"),
    "missing key": (json.dumps({"id": 9, "author_id": 3, "text": "x"}), "line 5: .* missing .*`created_at`"),
    "unknown author": (json.dumps({**POSTS[0], "id": 9, "author_id": 99}), "line 5: the user 99 is not in"),
    "same id": (json.dumps(POSTS[0]), "line 5: the id 1 is also in an earlier line"),
    "no such time": (json.dumps({**POSTS[0], "id": 9, "created_at": "2001-02-30T00:00:00Z"}), "line 5: Invalid"),
    "no offset": (json.dumps({**POSTS[0], "id": 9, "created_at": "2001-02-03T00:00:00"}), "line 5: .*timezone"),
    "too old": (json.dumps({**POSTS[0], "id": 9, "created_at": "1999-12-31T23:59:59Z"}), "line 5: .* before 2000"),
    "future": (json.dumps({**POSTS[0], "id": 9, "created_at": "2060-01-01T00:00:00Z"}), "line 5: .* in the future"),
    "NUL": (json.dumps({**POSTS[0], "id": 9, "text": "a\0b"}), "line 5: the text holds a NUL character"),
    "too long": (json.dumps({**POSTS[0], "id": 9, "text": "x" * 5001}), "line 5: .* up to 5000 characters"),
    "blank": (json.dumps({**POSTS[0], "id": 9, "text": " \n"}), "line 5: .* is empty"),
    "half a pair": (json.dumps({**POSTS[0], "id": 9, "text": "\ud800"}), "line 5: "),
    "endless": ("x" * 1_100_000, "line 5: longer than 1000000 bytes"),
}


WRONG_LINES = {"users.csv.gz": [3, 5, 6], "follows.csv.gz": [3, 6, 7, 5], "posts.jsonl.gz": [5, 6, 8, 7]}


@pytest.mark.parametrize("wrong", WRONG_USERS)
def test_a_wrong_user(load: Load, folder: Path, wrong: str) -> None:
    lines, message = WRONG_USERS[wrong]
    text = "".join(f"{line}\n" for line in lines)
    (folder / "users.csv.gz").write_bytes(gzip.compress(text.encode(errors="surrogateescape")))
    refused(load, f"users.csv.gz {message}")


@pytest.mark.parametrize("wrong", WRONG_FOLLOWS)
def test_a_wrong_follow(load: Load, folder: Path, wrong: str) -> None:
    lines, message = WRONG_FOLLOWS[wrong]
    packed(folder / "follows.csv.gz", ["follower_id,followee_id,created_at", *lines])
    refused(load, f"follows.csv.gz {message}")


@pytest.mark.parametrize("wrong", WRONG_POSTS)
def test_a_wrong_post(load: Load, folder: Path, wrong: str) -> None:
    line, message = WRONG_POSTS[wrong]
    packed(folder / "posts.jsonl.gz", [*GOOD, line, *as_json([{**POSTS[0], "id": 77}])])
    refused(load, f"posts.jsonl.gz {message}")


def refused(load: Load, message: str) -> None:
    with pytest.raises(CommandError, match=message) as refusal:
        load()
    assert str(refusal.value).endswith(". Nothing was loaded.")
    assert counts() == (0, 0, 0, 0, 0)


def test_all_wrong_lines_are_told_at_once(load: Load, folder: Path) -> None:
    """In all three files. Reading goes on after a wrong line."""
    User.objects.create(username="author-9")
    packed(folder / "users.csv.gz", ["id,name", "7,author-7", "x,nobody", "3,author-3", '4,"a"b', "9,author-9"])
    packed(folder / "follows.csv.gz", ["follower_id,followee_id", "3,7", "3,5", "7,3", "3,7", "9,9", "1"])
    late = json.dumps({**POSTS[0], "id": 99, "created_at": "2999-01-01T00:00:00Z"})
    packed(folder / "posts.jsonl.gz", [*GOOD, "x" * 1_100_000, late, GOOD[0], "{}"])
    with pytest.raises(CommandError, match=r"11 lines cannot be loaded\. Nothing was loaded") as refusal:
        load()
    told = [line.partition(":")[0] for line in str(refusal.value).splitlines()[:-1]]
    users, follows, posts = ([f"{name} line {line}" for line in lines] for name, lines in WRONG_LINES.items())
    assert told == users + follows + posts
    assert counts() == (1, 0, 0, 0, 0)


@pytest.mark.slow
def test_thousands_of_wrong_lines_are_counted_by_their_kind(load: Load, folder: Path) -> None:
    packed(folder / "follows.csv.gz", ["follower_id,followee_id", *["3,5"] * 3_000, *["7,7"] * 2_000])
    with pytest.raises(CommandError) as refusal:
        load()
    said = str(refusal.value).splitlines()
    assert len(said) == 20 + 1 + 2 + 1
    assert said[20] == "... and 4,980 more. Of each kind:"
    assert [" ".join(line.split()) for line in said[21:23]] == [
        "2,000 follows.csv.gz, followee_id: self",
        "3,000 follows.csv.gz, followee_id: unknown user",
    ]


@committed
def test_what_follows_the_commit_is_done_by_the_next_run(
    load: Load, monkeypatch: pytest.MonkeyPatch, feeds: redis.Redis
) -> None:
    def killed(*_args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("community.importing.drop_windows", killed)
        with pytest.raises(CommandError):
            load()
    (user_id,) = ImportedUser.objects.filter(original_id=7).values_list("user_id", flat=True)
    feeds.zadd(keys.inbox(user_id), {"floor": 0, "epoch": -1})
    assert "Already loaded on" in load()
    assert not feeds.exists(keys.inbox(user_id))
    assert not Import.objects.filter(settled_at=None).exists()


@pytest.mark.parametrize("name", ["users.csv.gz", "follows.csv.gz", "posts.jsonl.gz"])
def test_files_that_are_not_whole(load: Load, folder: Path, name: str) -> None:
    path = folder / name
    whole = path.read_bytes()
    path.write_bytes(whole[:-12])
    refused(load, f"{name} line [0-9]+: the file ends in the middle")
    path.write_bytes(whole[:-8] + b"\0\0\0\0" + whole[-4:])
    refused(load, f"{name} line [0-9]+: not readable as gzip .*CRC")
    path.write_text("id,name\n")
    refused(load, f"{name} line 1: not readable as gzip")
    path.unlink()
    refused(load, f"{name}: No such file")


@committed
def test_after_a_refusal_the_mended_data_set_loads(load: Load, folder: Path) -> None:
    packed(folder / "posts.jsonl.gz", [*GOOD, "{"])
    refused(load, "line 5")
    packed(folder / "posts.jsonl.gz", GOOD)
    load()
    assert counts() == (3, 3, 4, 1, 3)
