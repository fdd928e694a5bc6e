"""LMDB, and a server with the Redis protocol."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count, product
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings
from django.test import override_settings

from runtime.embedded import wait_for
from seen import lmdb_file
from seen.filter_store import FilterKey, FilterStore, StoreUnavailableError, clock, expires_at, expiry, month_of
from seen.lmdb_store import READERS, LmdbStore
from seen.redis_store import RedisStore
from tests.support.disks import on_small_disk

MONTH = month_of(datetime.now(UTC))
"""The server drops older months by itself."""
Make = Callable[[], FilterStore]


@pytest.fixture(params=["lmdb", "redis"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Another process's view of the store."""
    if request.param == "lmdb":
        return lambda: LmdbStore(tmp_path / "played")
    return lambda: RedisStore(settings.REDIS_URL)


@pytest.fixture
def store(make: Make) -> FilterStore:
    return make()


def keys(count: int, month: int = MONTH) -> list[FilterKey]:
    return [FilterKey(user_id, month) for user_id in range(1, count + 1)]


def appended(text: bytes) -> Any:
    return lambda key, old: (old or b"") + text


def test_written_filters_are_read(store: FilterStore) -> None:
    store.update(keys(3), lambda key, old: b"%d" % key.user_id)
    assert store.read([*keys(4), FilterKey(1, MONTH - 1)]) == [b"1", b"2", b"3", None, None]
    store.update(keys(1), appended(b"+"))
    assert store.read(keys(1)) == [b"1+"]


def test_nothing_is_lost_between_writers(store: FilterStore, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seen.redis_store.ATTEMPTS", 10_000)  # no writer gives up
    stores = [store, *(make() for _ in range(3))] if isinstance(store, RedisStore) else [store] * 4
    with ThreadPoolExecutor(4) as pool:
        writes = [
            pool.submit(one.update, keys(2), appended(b"%d" % number))
            for number, one in enumerate(stores)
            for _ in range(20)
        ]
    for write in writes:
        write.result()
    for data in store.read(keys(2)):
        assert data is not None
        assert Counter(data) == {ord(str(number)): 20 for number in range(4)}


def test_filters_are_counted_by_month(store: FilterStore) -> None:
    store.update([*keys(3), *keys(2, MONTH - 1)], appended(b"1234"))
    store.update(keys(1), appended(b"56"))
    assert store.stats() == {MONTH: (3, 14), MONTH - 1: (2, 8)}


def test_a_change_that_fails_changes_nothing(store: FilterStore) -> None:
    store.update(keys(2), appended(b"1"))

    def fail(key: FilterKey, old: bytes | None) -> bytes:
        if key.user_id == 2:
            raise RuntimeError
        return b"other"

    with pytest.raises(RuntimeError):
        store.update(keys(2), fail)
    assert store.read(keys(2)) == [b"1", b"1"]


def test_what_becomes_nothing_is_removed(store: FilterStore) -> None:
    store.update(keys(3), appended(b"1234"))
    store.update(keys(2), lambda key, old: None if key.user_id == 2 else old)
    store.update(keys(5)[4:], lambda key, old: None)
    assert store.read(keys(5)) == [b"1234", None, b"1234", None, None]
    assert store.stats() == {MONTH: (2, 8)}
    assert store.purge(now=datetime(2030, 1, 1, tzinfo=UTC), limit=10) in (0, 2)


def test_a_shelf_is_counted_and_cleared_and_never_expires(store: FilterStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("seen.lmdb_store", "seen.redis_store"):
        monkeypatch.setattr(f"{module}.BATCH", 4)
    for shelf in (0, 1, 2):
        store.update(keys(10, shelf), appended(b"1"))
    store.update(keys(3), appended(b"1"))
    assert store.purge(now=datetime(2100, 1, 1, tzinfo=UTC), limit=0) == 0
    assert [store.count(shelf) for shelf in (0, 1, 2, 3, MONTH)] == [10, 10, 10, 0, 3]
    assert store.stats() == {MONTH: (3, 3)}
    assert sum(store.clear(1)) == 10
    assert [store.count(shelf) for shelf in (0, 1, 2, 3, MONTH)] == [10, 0, 10, 0, 3]
    assert store.read([*keys(1, 0), *keys(1, 1), *keys(1, 2), *keys(1)]) == [b"1", None, b"1", b"1"]
    assert list(store.clear(1)) == []
    assert store.purge(now=datetime(2100, 1, 1, tzinfo=UTC), limit=100) in (0, 3)
    assert store.count(0) == 10


# --- Expiry ----------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_filters_expire_at_night_in_the_sixth_month_after() -> None:
    november = month_of(datetime(2026, 11, 21, tzinfo=UTC))
    moments = [datetime.fromtimestamp(expiry(FilterKey(user_id, november)), UTC) for user_id in range(1, 50_001)]
    assert {month_of(moment) for moment in moments} == {november + 6}
    assert {moment.hour for moment in moments} == {0, 1, 2, 3, 4}
    days = Counter(moment.day for moment in moments)
    assert set(days) == set(range(1, 32)), "May has 31 days"
    expected = len(moments) / 31
    assert max(abs(count - expected) for count in days.values()) < 5 * expected**0.5
    hours = Counter(moment.hour for moment in moments)
    assert max(abs(count - 10_000) for count in hours.values()) < 5 * 100


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["UTC", "Asia/Shanghai", "Asia/Kathmandu", "Europe/Berlin", "America/Santiago", "Pacific/Apia"]
)
def test_filters_expire_in_the_night_of_the_site(settings: Any, name: str) -> None:
    """Some nights change the clock."""
    settings.SITE_ZONE = zone = ZoneInfo(name)
    for month in range(month_of(datetime(2025, 1, 1, tzinfo=UTC)), month_of(datetime(2027, 1, 1, tzinfo=UTC))):
        there = [expires_at(FilterKey(user_id, month)).astimezone(zone) for user_id in range(500)]
        assert {moment.hour for moment in there} == {0, 1, 2, 3, 4}
        assert {month_of(moment) for moment in there} == {month + 6}


def test_a_night_that_a_zone_skipped() -> None:
    """Samoa skipped 2011-12-30: its night was the 31st's."""
    with override_settings(SITE_ZONE=ZoneInfo("Pacific/Apia")):
        month = month_of(datetime(2011, 6, 1, tzinfo=UTC))
        found = {expires_at(FilterKey(user_id, month)).astimezone(settings.SITE_ZONE) for user_id in range(2000)}
        assert {(moment.month, moment.hour) for moment in found} == {(12, hour) for hour in range(5)}
        assert {moment.day for moment in found} == set(range(1, 32)) - {30}
        before, after = datetime(2011, 12, 30, 9, 59, tzinfo=UTC), datetime(2011, 12, 30, 10, 0, tzinfo=UTC)
        assert (clock(before), clock(after)) == (
            int(datetime(2011, 12, 29, 23, 59, tzinfo=UTC).timestamp()),
            int(datetime(2011, 12, 31, tzinfo=UTC).timestamp()),
        )


@pytest.mark.parametrize("name", ["Asia/Shanghai", "America/Los_Angeles", "Pacific/Apia"])
def test_another_zone_leaves_nothing_behind(settings: Any, tmp_path: Path, name: str) -> None:
    """Removed, rewritten and purged in another zone."""
    store = LmdbStore(tmp_path)
    store.update(keys(30), appended(b"1"))
    settings.SITE_ZONE = ZoneInfo(name)
    store.update(keys(10), lambda key, old: None)
    store.update(keys(5), appended(b"2"))
    assert store.stats() == {MONTH: (25, 25)}
    ends = sorted(expires_at(key) for key in [*keys(5), *keys(30)[10:]])
    assert store.purge(now=ends[0] - timedelta(seconds=1), limit=100) == 0
    assert store.purge(now=ends[0], limit=100) == 1
    assert store.purge(now=ends[-1], limit=100) == 24
    assert store.stats() == {}
    with store._transaction(write=False) as (transaction, (_, expiries, _)):
        assert transaction.stat(expiries)["entries"] == 0


def test_lmdb_is_purged_in_small_batches(tmp_path: Path) -> None:
    store = LmdbStore(tmp_path)
    store.update([*keys(30), *keys(5, MONTH + 1)], appended(b"1"))
    ends = sorted(map(expiry, keys(30)))
    assert store.purge(now=datetime.fromtimestamp(ends[0] - 1, UTC), limit=100) == 0
    half = datetime.fromtimestamp(ends[14], UTC)
    assert [store.purge(now=half, limit=10) for _ in range(3)] == [10, 5, 0]
    left = [key for key, data in zip(keys(30), store.read(keys(30)), strict=True) if data]
    assert sorted(map(expiry, left)) == ends[15:]
    assert store.stats() == {MONTH: (15, 15), MONTH + 1: (5, 5)}


def test_a_server_forgets_by_itself() -> None:
    store = RedisStore(settings.REDIS_URL)
    store.update(keys(2), appended(b"1"))
    store.update(keys(1), appended(b"2"))
    for key in keys(2):
        assert store.client.expiretime(f"played:filter:{key.month}:{key.user_id}") == expiry(key)


def test_a_server_forgets_in_the_night_of_the_site(settings: Any) -> None:
    settings.SITE_ZONE = ZoneInfo("Asia/Shanghai")
    store = RedisStore(settings.REDIS_URL)
    store.update(keys(2), appended(b"1"))
    for key in keys(2):
        found = store.client.expiretime(f"played:filter:{key.month}:{key.user_id}")
        assert found == expiry(key) - 8 * 3600


# --- Processes -------------------------------------------------------------------------------------------
def _append(folder: Path, rounds: int) -> None:
    store = LmdbStore(folder)
    for _ in range(rounds):
        store.update(keys(1), appended(b"x"))


@pytest.mark.long
def test_lmdb_is_written_by_several_processes(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_append, args=(tmp_path, 50)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(240)
    assert LmdbStore(tmp_path).read(keys(1)) == [b"x" * 150]


@pytest.mark.long
def test_a_killed_writer_blocks_nobody(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_append, args=(tmp_path, 10**6))
    process.start()
    store = LmdbStore(tmp_path)
    assert wait_for(lambda: store.read(keys(1)) != [None], 60)
    assert process.pid
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    (before,) = store.read(keys(1))
    assert before
    store.update(keys(1), appended(b"y"))
    # Killed after its commit.
    assert store.read(keys(1)) in ([before + b"y"], [before + b"xy"])


def _fork(folder: Path) -> None:
    """Only a process without threads may fork."""
    store = LmdbStore(folder)
    store.update(keys(1), appended(b"1"))
    child = os.fork()
    if not child:
        try:
            store.update(keys(1), appended(b"2"))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert store.read(keys(1)) == [b"12"]


@pytest.mark.slow
def test_a_forked_process_opens_it_anew(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_fork, args=(tmp_path,))
    process.start()
    process.join(120)
    assert process.exitcode == 0
    assert LmdbStore(tmp_path).read(keys(1)) == [b"12"]


# --- Faults ----------------------------------------------------------------------------------------------
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "played").write_text("a file")
    with pytest.raises(StoreUnavailableError):
        LmdbStore(tmp_path / "played").read(keys(1))


def test_a_store_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "PLAYED_STORE_BYTES", 200_000)
    store = LmdbStore(tmp_path)
    store.update(keys(1), appended(b"1"))
    with pytest.raises(StoreUnavailableError):
        store.update(keys(1), appended(b"x" * 400_000))
    assert store.read(keys(1)) == [b"1"]


def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    store = RedisStore(f"unix://{tmp_path}/nobody.sock")
    for call in (lambda: store.read(keys(1)), lambda: store.update(keys(1), appended(b"1")), store.stats):
        with pytest.raises(StoreUnavailableError):
            call()


CUT = """
import os, sys
import django
django.setup()
from pathlib import Path
from seen import lmdb_file
from seen.filter_store import FilterKey, StoreUnavailableError
from seen.lmdb_store import LmdbStore

def tried(store):
    keys = [FilterKey(user_id, 24316) for user_id in range(1, 301)]
    calls = (
        lambda: store.read(keys), store.stats, store.holds_any, lambda: list(store.clear(24316)),
        lambda: store.update(keys, lambda key, old: (old or b"") + b"x"), lambda: store.copy(nowhere),
    )
    said = []
    for call in calls:
        try:
            call()
            said.append("done")
        except StoreUnavailableError as error:
            said.append("refused")
    return " ".join(sorted(set(said)))

nowhere = os.open(os.devnull, os.O_WRONLY)
data, lock = (Path(sys.argv[1]) / name for name in ("data.mdb", "lock.mdb"))
whole = data.read_bytes()
"""
CUTS = """
for length in [1, 100, 4096, 4200, 8191, 8192, 12288, len(whole) // 2, len(whole) - 5000, len(whole) - 1]:
    os.truncate(data, length)
    print(length, tried(LmdbStore(data.parent)))
    data.write_bytes(whole)
    store = LmdbStore(data.parent)
    store.stats()
    os.truncate(data, length)
    print(length, tried(store))
    data.write_bytes(whole)
    assert tried(store) == "done", "put back as it was"
    store._opened[1].close()
    data.write_bytes(whole)
"""
SWAPS = """
other = data.with_name("other")
other.write_bytes(whole)
for path, swap in (
    (data, lambda: other.replace(data)),
    (data, data.unlink),
    (data, lambda: os.truncate(data, 0)),
    (data, lambda: (data.unlink(), data.mkdir())),
    (data, lambda: (data.unlink(), data.symlink_to(other))),
    (data, lambda: (data.unlink(), os.mkfifo(data))),
    (lock, lambda: os.truncate(lock, 100)),
    (lock, lambda: (lock.unlink(), lock.write_bytes(bytes(2**20)))),
):
    other.write_bytes(whole)
    store = LmdbStore(data.parent)
    store.stats()
    swap()
    print(path.name, tried(store))
    data.rmdir() if data.is_dir() else data.unlink(missing_ok=True)
    data.write_bytes(whole)
    store._opened = None
"""
FLIPS = """
from seen import lmdb_file
for at in range(0, 4096 + 152):
    if at % 4096 >= 152:
        continue
    for bits in (255, 4):
        data.write_bytes(whole[:at] + bytes([whole[at] ^ bits]) + whole[at + 1 :])
        store = LmdbStore(data.parent)
        tried(store)
        if store._opened:
            store._opened[1].close()
print("alive")
"""


def filled(folder: Path) -> LmdbStore:
    """Three hundred filters, some on pages of their own."""
    store = LmdbStore(folder)
    for _ in range(3):
        store.update(keys(300, 24316), lambda key, old: (old or b"") + b"x" * (key.user_id * 10))
    return store


def run_on(folder: Path, code: str) -> list[str]:
    filled(folder)
    done = subprocess.run(
        [sys.executable, "-c", CUT + code, str(folder)],
        cwd=settings.BASE_DIR,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "feedsite.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (signal.Signals(-done.returncode).name if done.returncode < 0 else done.stderr, done)
    return done.stdout.splitlines()


@pytest.mark.long
@pytest.mark.slow
def test_a_cut_file_is_refused_and_kills_no_process(tmp_path: Path) -> None:
    """Before it is opened, and while it is open."""
    lines = run_on(tmp_path, CUTS)
    assert len(lines) == 20
    assert {line.split(maxsplit=1)[1] for line in lines} == {"refused"}, lines


@pytest.mark.long
@pytest.mark.slow
def test_a_file_that_is_replaced_while_it_is_open_is_refused(tmp_path: Path) -> None:
    lines = run_on(tmp_path, SWAPS)
    assert lines == [*["data.mdb refused"] * 6, *["lock.mdb refused"] * 2]


@pytest.mark.long
def test_no_byte_at_the_beginning_kills_a_process(tmp_path: Path) -> None:
    assert run_on(tmp_path, FLIPS) == ["alive"]


def churn(store: LmdbStore, number: int) -> bool:
    """Write and delete in one transaction. Whether LMDB left out free pages at the end of the file."""
    with store._transaction(write=True) as (transaction, (filters, _, _)):
        names = [b"%d %d" % (number, place) for place in range(200)]
        for name in names:
            transaction.put(name, b"x" * 2500, db=filters)
        for name in names[::-1][number % 3 :]:
            transaction.delete(name, db=filters)
    info = store._opened[1].info() if store._opened else {}
    return bool((store.folder / "data.mdb").stat().st_size < (info["last_pgno"] + 1) * 4096)


@pytest.mark.slow
def test_a_whole_file_may_lack_free_pages_at_its_end(tmp_path: Path) -> None:
    """LMDB does not write a page that one transaction took and freed again."""
    store = LmdbStore(tmp_path)
    short = 0
    for number in range(40):
        short += churn(store, number)
        assert store.stats() == {}
    assert short > 5, "otherwise this tries nothing"


@pytest.mark.slow
def test_a_file_that_others_write_while_it_is_checked_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They write before any one of the check's reads of the file."""
    store, numbers = LmdbStore(tmp_path), count()
    looks: list[int] = []
    real = {name: getattr(os, name) for name in ("fstat", "pread")}

    def write_before(look: int, times: int, name: str) -> Callable[..., Any]:
        def called(*args: Any) -> Any:
            looks[-1] += 1
            if looks[-1] == look:
                with monkeypatch.context() as within:
                    for each, function in real.items():
                        within.setattr(os, each, function)
                    for _ in range(times):
                        churn(store, next(numbers))
            return real[name](*args)

        return called

    for look, times in product(range(1, 7), range(1, 7)):
        while not churn(store, next(numbers)):
            assert next(numbers) < 1000
        looks.append(0)
        with (tmp_path / "data.mdb").open("rb") as file, monkeypatch.context() as patched:
            for name in real:
                patched.setattr(os, name, write_before(look, times, name))
            assert lmdb_file.check_file(file.fileno())
    assert max(looks) > 7, "otherwise nothing changed while the list of free pages was read"


@pytest.mark.long
def test_a_full_disk_is_an_error_and_kills_no_process(tmp_path: Path) -> None:
    """LMDB maps its lock file."""
    code = """
import django
django.setup()
from pathlib import Path
from seen.filter_store import StoreUnavailableError
from seen.lmdb_store import LmdbStore
store = LmdbStore(Path(FOLDER) / "played")
fill(FOLDER)
for _ in range(2):
    try:
        store.stats()
    except StoreUnavailableError as error:
        print("refused", error)
make_room(FOLDER)
print(store.stats(), store._opened[1].info()["max_readers"])
"""
    done = on_small_disk(tmp_path, code, dict(os.environ))
    assert done.returncode == 0, done
    assert done.stdout.count("No space left on device") == 2
    counts, readers = done.stdout.splitlines()[-1].split()
    assert counts == "{}"
    assert int(readers) >= READERS
