"""What does it cost to remember all users' plays, and to ask for them?

Ingest: `record` against the same packed commands, and plays over HTTP. Merge: ten plays of each of many users, against
writing the same bytes into LMDB. Ask: `unseen` of up to 10,000 ids with four months of filters, against reading the
same keys, and 5 ms. Bytes: filters against the ZSET of all ids.
"""

import random
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from unittest.mock import patch

import lmdb
import numpy as np
from django.conf import settings
from django.contrib.auth.models import Permission

from accounts.models import User
from benchmarks.community import Community, by_token
from benchmarks.measure import (
    BenchmarkReport,
    Case,
    MeasuredRequest,
    Times,
    interleaved,
    milliseconds,
    over,
    over_http,
    served,
)
from seen import merging, played, store
from seen.checker import unseen
from seen.filter_store import MONTHS, FilterKey, month_of
from seen.filters import MonthFilter, id_numbers
from seen.lmdb_store import LmdbStore
from seen.merging import CHUNK, merge_shards
from seen.played import Play, record
from seen.ring import node_of, shard_of
from storage import keys
from storage.replies import borrowed_connection

NOW = datetime(2026, 4, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ID = 2**52
"""Ids have 16 digits, like the site's."""
A_MONTH = 3_333
MERGED_PLAYS = 10
RECENT, ISSUED = 50, 100
A_REQUEST, IN_A_BATCH = 8, 100
"""Plays of one request, and users of a batch."""
TARGET_MS = 5.0
"""Milliseconds for 10,000 ids."""
KEPT = (100, 1_000, 10_000)
"""Plays over three months."""
COPIES = 200
"""Users with filters in a separate file, to measure LMDB's pages."""
NEVER = 2**53
SEED_BYTES = 25
"""Bytes of an id in a ZSET, from an article on deduplication."""


def run(community: Community) -> BenchmarkReport:
    size = community.size
    report = BenchmarkReport(
        "played",
        __doc__.splitlines()[0],
        ["what", "p50, ms", "CPU, ms", "a second"],
        f"{size.played_rounds} rounds; merges of {size.played_users:,} users, {max(size.played_rounds // 4, 1)} rounds",
    )
    folder = Path(settings.DATA_DIR) / "played-bench"
    ingest_over_http(report, size.http_rounds, size.http_requests)
    with patch.object(store, "_store", LmdbStore(folder / "filters")):
        played.client().flushdb()
        ingest(report, size.played_rounds)
        played.client().flushdb()
        merge(report, folder, size.played_users, max(size.played_rounds // 4, 1))
        ask(report, size.played_rounds * 5)
        keep(report, folder, KEPT[: 2 if size.played_users < 100 else None])
    played.client().flushdb()
    return report


def add_row(report: BenchmarkReport, what: str, times: Sequence[float], cpu: float, done: int) -> None:
    """Add a row to the table. `done`: the number of things done in each time."""
    figures = [round(milliseconds(times), 3), round(cpu * 1000, 3), round(done / median(times))]
    report.rows.append([what, *figures])


def cpu_of(case: Case, first: int, rounds: int = 5) -> float:
    """Mean CPU seconds of this process for a round."""
    begin = time.process_time()
    for number in range(first, first + rounds):
        case(number)
    return (time.process_time() - begin) / rounds


# --- Ingest ----------------------------------------------------------------------------------------------
def ingest(report: BenchmarkReport, rounds: int) -> None:
    """Time recording plays."""
    for users, each in ((100, 5), (1, 10)):
        what = f"{users * each} plays of {users} users" if users > 1 else f"{each} plays of one user"

        def plays(number: int, users: int = users, each: int = each) -> list[Play]:
            return [Play(user, ID + number * each + play, NOW) for user in range(1, users + 1) for play in range(each)]

        batches = [plays(number) for number in range(rounds + 20)]
        packed = [_packed(batch) for batch in batches]

        def raw(number: int, packed: list[tuple[list[bytes], int]] = packed) -> None:
            data, count = packed[number]
            with borrowed_connection(played.client()) as connection:
                connection.send_packed_command(data)
                for _ in range(count):
                    connection.read_response()

        def ours(number: int, batches: list[list[Play]] = batches) -> None:
            record(batches[number], now=NOW)

        cases: dict[str, Case] = {"record": ours, "raw": raw}
        times = interleaved(cases, rounds=rounds)
        cpu = {name: cpu_of(case, rounds + 5) for name, case in cases.items()}
        add_row(report, f"record, {what}", times["record"], cpu["record"], users * each)
        add_row(report, f"raw ZADD + SADD, {what}", times["raw"], cpu["raw"], users * each)
        report.ratio(f"plays/s: record / raw, {what}", over(times, "raw", "record"), at_least=0.4)


def ingest_over_http(report: BenchmarkReport, rounds: int, requests: int) -> None:
    """Time plays over HTTP: one user in a request, and many in a batch."""
    service = User.objects.order_by("pk")[0]
    service.user_permissions.add(Permission.objects.get(codename="act_for_others"))
    users = list(User.objects.active().order_by("pk").values_list("pk", flat=True)[:IN_A_BATCH])
    one = [str(ID + place) for place in range(A_REQUEST)]
    headers = by_token(service)
    batch = {"plays": [{"user_id": str(user), "ids": one} for user in users]}
    single = f"HTTP: {A_REQUEST} plays of one user"
    many = f"HTTP: {A_REQUEST * len(users)} plays of {len(users)} users"
    kinds = {
        single: (A_REQUEST, MeasuredRequest("/api/v1/seen/plays", headers, {"ids": one})),
        many: (A_REQUEST * len(users), MeasuredRequest("/api/v1/seen/plays/batch", headers, batch)),
    }
    with served() as port:
        asked = {name: [request] for name, (_, request) in kinds.items()}
        found = over_http(port, asked, rounds=rounds, each=requests)
    costs = {name: found[name].total / plays * 1e6 for name, (plays, _) in kinds.items()}
    for name, (plays, _) in kinds.items():
        add_row(report, f"{name}: CPU of the worker", found[name].waited, found[name].worker, plays)
        report.ratio(f"{name}: CPU of all, µs a play", costs[name])
    report.ratio("CPU of a play over HTTP: in a batch / in a request", costs[many] / costs[single], at_most=0.25)


def _packed(batch: Sequence[Play]) -> tuple[list[bytes], int]:
    by_user: dict[int, list[int]] = {}
    shards: dict[int, list[int]] = {}
    for play in batch:
        by_user.setdefault(play.user_id, []).extend((int(play.played_at.timestamp() * 1000), play.item_id))
    for user_id in by_user:
        shards.setdefault(shard_of(user_id), []).append(user_id)
    commands = [("ZADD", keys.played_recent(user_id), "GT", *pairs) for user_id, pairs in by_user.items()]
    commands += [("SADD", keys.played_users(node_of(NOW), shard), *users) for shard, users in shards.items()]
    with borrowed_connection(played.client()) as connection:
        return connection.pack_commands(commands), len(commands)


# --- Merge -----------------------------------------------------------------------------------------------
def merge(report: BenchmarkReport, folder: Path, users: int, rounds: int) -> None:
    """Time the merge of ten plays of every user, against writing the same bytes."""
    month, chance = month_of(NOW), random.Random(2)  # noqa: S311 (the same in every run)
    one = _filter(chance, A_MONTH // 2, error=merging._filter_error_rate())
    store.store().update([FilterKey(user, month) for user in range(1, users + 1)], lambda key, data: one)
    raw = lmdb.open(str(folder / "raw"), map_size=2**34, mode=0o600)
    values: list[bytes] = []
    times: Times = {"merge": [], "raw": []}
    cpu = {"merge": 0.0, "raw": 0.0}
    for number in range(1 + rounds):
        for first in range(1, users + 1, 500):
            some = range(first, min(first + 500, users + 1))
            record([Play(user, ID + chance.randrange(ID), NOW) for user in some for _ in range(MERGED_PLAYS)], now=NOW)

        def merge_all() -> None:
            merge_shards(node_of(NOW), range(settings.PLAYED_SHARDS), now=NOW + HOUR)

        def write_all() -> None:
            for first in range(0, len(values), CHUNK):
                with raw.begin(write=True) as transaction:
                    for user in range(first, min(first + CHUNK, len(values))):
                        transaction.put(user.to_bytes(8, "big"), values[user])

        for name, work in (("merge", merge_all), ("raw", write_all)):
            found = store.store().read([FilterKey(user, month) for user in range(1, users + 1)])
            values[:] = [data or b"" for data in found]
            begin, used = time.perf_counter(), time.process_time()
            work()
            if number:  # the first round warms up
                times[name].append(time.perf_counter() - begin)
                cpu[name] += (time.process_time() - used) / rounds
    raw.close()
    add_row(report, f"merge, {users:,} users, {MERGED_PLAYS} plays each", times["merge"], cpu["merge"], users)
    add_row(report, f"raw LMDB, {users:,} filters of {len(one):,} bytes", times["raw"], cpu["raw"], users)
    report.ratio("users/s: merge / raw LMDB writes", over(times, "raw", "merge"))
    report.ratio("CPU of a merge, µs a user", cpu["merge"] / users * 1e6)


def _filter(
    chance: random.Random, plays: int, *, error: float, expected: int = 0, at_once: int = MERGED_PLAYS
) -> bytes:
    """A filter with random plays, as bytes. If nothing is expected it grows from the first merge on."""
    found = MonthFilter.empty(7, expected=expected or 2 * at_once, error=error)
    for _ in range(plays // at_once):
        found.add(id_numbers([ID + chance.randrange(ID) for _ in range(at_once)]))
    return found.to_bytes()


# --- Filter ----------------------------------------------------------------------------------------------
def ask(report: BenchmarkReport, rounds: int) -> None:
    """Time asking which ids a user has not played."""
    chance, client = random.Random(3), played.client()  # noqa: S311 (the same in every run)
    month = month_of(NOW)
    for user, kind, expected in ((1, "", A_MONTH), (2, " (grown)", 0)):
        months = [FilterKey(user, month - ago) for ago in range(MONTHS)]
        store.store().update(
            months,
            lambda key, data, expected=expected: _filter(  # type: ignore[misc]
                chance, A_MONTH, error=merging._filter_error_rate(), expected=expected
            ),
        )
        client.delete(keys.played_recent(user))
        record([Play(user, ID + chance.randrange(ID), NOW) for _ in range(RECENT)], now=NOW)
        played.record_issued([(user, [ID + chance.randrange(ID) for _ in range(ISSUED)])])

        def floor(_: int, user: int = user, months: list[FilterKey] = months) -> None:
            played.recent_ids(user)
            store.store().read(months)

        cases: dict[str, Case] = {"floor": floor}
        for count in (2_000, 5_000, 10_000):
            ids = [ID + chance.randrange(ID) for _ in range(count)]
            cases[f"{count:,}"] = lambda _, ids=ids, user=user: unseen(user, ids, now=NOW)  # type: ignore[misc]
        times = interleaved(cases, rounds=rounds)
        cpu = {name: cpu_of(case, 0, 20) for name, case in cases.items()}
        for name, taken in times.items():
            what = f"unseen of {name} ids{kind}" if name != "floor" else f"bare reads of the same keys{kind}"
            add_row(report, what, taken, cpu[name], 1)
        most = None if kind else TARGET_MS
        report.ratio(f"ms for unseen of 10,000 ids{kind}, p50", milliseconds(times["10,000"]), at_most=most)
        report.ratio(f"ms for unseen of 10,000 ids{kind}, CPU", cpu["10,000"] * 1000, at_most=most)
        report.ratio(f"unseen of 10,000{kind} / bare reads", over(times, "10,000", "floor"))


# --- Bytes -----------------------------------------------------------------------------------------------
def keep(report: BenchmarkReport, folder: Path, kept: Sequence[int]) -> None:
    """Compare the bytes of three months of plays: as filters, in LMDB's file, and as a ZSET."""
    client, error = played.client(), merging._filter_error_rate()
    for plays in kept:
        chance = random.Random(plays)  # noqa: S311 (the same in every run)
        each = plays // 3
        key = keys.played_recent(plays)
        scores = {ID + chance.randrange(ID): int((NOW - place * HOUR / 5).timestamp() * 1000) for place in range(plays)}
        client.zadd(key, scores)
        exact = client.memory_usage(key, samples=0)
        client.delete(key)
        at_once = min(MERGED_PLAYS, each)
        filters = [_filter(chance, each, error=error, at_once=at_once)]
        filters += [_filter(chance, each, error=error, at_once=at_once, expected=each) for _ in range(2)]
        size = sum(map(len, filters))
        copies = LmdbStore(folder / f"copies-{plays}")
        for first in range(0, COPIES, CHUNK):
            some = [FilterKey(user, month) for user in range(first, first + CHUNK) for month in range(24_300, 24_303)]
            copies.update(some, lambda key, data, filters=filters: filters[key.month - 24_300])  # type: ignore[misc]
        on_disk = (folder / f"copies-{plays}" / "data.mdb").stat().st_size / COPIES
        asked = id_numbers([NEVER + number for number in range(100_000)])
        is_taken = np.zeros(len(asked), dtype=bool)
        for data in filters:
            is_taken |= MonthFilter.from_bytes(data).known(asked)
        wrong = float(is_taken.mean())
        report.notes.append(
            f"{plays:,} plays over three months: filters {size:,} bytes, {on_disk:,.0f} in LMDB's file, the ZSET "
            f"{exact:,}; never played and taken for played {wrong:.4%}."
        )
        target = 0.05 if plays >= 1_000 else None  # a listpack of few ids is small itself
        report.ratio(f"bytes: filters / ZSET, {plays:,} plays", size / exact, at_most=target)
        report.ratio(f"bytes: LMDB's file / ZSET, {plays:,} plays", on_disk / exact)
        report.ratio(f"bytes: filters / {SEED_BYTES} a play, {plays:,} plays", size / plays / SEED_BYTES)
        report.ratio(f"taken for played / configured, {plays:,} plays", wrong / settings.PLAYED_ERROR_RATE, at_most=1)
