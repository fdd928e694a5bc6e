"""Is an acknowledged play ever lost while processes are killed?

Time is compressed: six hours of plays, a lap of the time ring, then two days without. Separate processes merge the hour
before. In every other lap mergers and the server are killed (-9) at random. The server restarts from its AOF. Tasks run
twice, at once and late. Plays reach the node being merged, or belong to the day before. `record` acknowledges by
returning.

After each lap `unseen` must know all plays of sampled readers within three months. Of ids nobody played it may claim
only the configured share. After a lap without kills only the last hour may wait in Redis.
"""

import multiprocessing
import random
import signal
import subprocess
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from unittest.mock import patch

import numpy as np
from django.conf import settings
from django.db import connections
from django.test import override_settings

from runtime.embedded import Home, Valkey, die_with_parent, make_server, wait_for
from seen import played, store
from seen.checker import unseen_ids
from seen.filter_store import StoreUnavailableError, month_of
from seen.filters import id_numbers
from seen.lmdb_store import LmdbStore
from seen.merging import mark_strays, merge_task_shard
from seen.played import Play, PlayedUnavailableError
from seen.ring import NODES
from storage import keys

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
REST = timedelta(days=2)
"""A multiple of a lap, so that nodes continue."""
BATCH = 500
WORKERS = 2
SHARDS, TASK_SHARDS = 500, 10
"""A shard has as many users as with 4 million on 5,000 shards."""
KILL_EVERY_SECONDS = 0.25
"""Average seconds between kills of mergers."""
SERVER_KILLS = 2
"""Kills per stormy lap."""
NEVER = 2**40
"""Nobody played ids from here on."""
READERS = 100
"""Readers checked after each lap."""
ASKED = 1000
"""Unplayed ids checked per reader."""
Pair = tuple[int, int]


class Merger:
    """It may be killed at any moment."""

    def __init__(self) -> None:
        self.is_busy = False
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("fork")
        bind = die_with_parent(signal.SIGKILL)
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_merge, args=(theirs, bind), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, task_shard: int, now: datetime) -> None:
        self.pipe.send((task_shard, now))
        self.is_busy = True

    def is_free(self) -> bool:
        """A dead process is replaced and its task repeated."""
        if not self.process.is_alive():
            self.pipe.close()
            self.process.join()
            self.is_busy = False
            self._start()
        elif self.is_busy and self.pipe.poll():
            self.pipe.recv()
            self.is_busy = False
        return not self.is_busy

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


def _merge(pipe: Connection, bind: Callable[[], None]) -> None:
    bind()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while True:
        task_shard, now = pipe.recv()
        with suppress(PlayedUnavailableError, StoreUnavailableError):  # the next pass repeats it
            merge_task_shard(task_shard, now=now)
        pipe.send(None)


class Simulation:
    """Plays, merges and kills, with an exact record of acknowledged plays."""

    def __init__(self, server: Valkey, *, seed: int, kill_every: float) -> None:
        self.server = server
        self.kill_every = kill_every
        self.chance = random.Random(seed)  # noqa: S311 (chance)
        self.now = BEGIN
        self.counts: Counter[str] = Counter()
        self.acknowledged: dict[int, dict[int, datetime]] = {}
        self.last_hour: set[Pair] = set()
        """Plays that may wait in Redis after an hour without kills."""
        self._tasks: deque[tuple[int, datetime]] = deque()
        self._killer: subprocess.Popen[bytes] | None = None
        self._next_kill = 0.0
        connections.close_all()  # a child must not share a session
        self.mergers = [Merger() for _ in range(WORKERS)]

    def close(self) -> None:
        for merger in self.mergers:
            merger.kill()

    # --- A lap -------------------------------------------------------------------------------------------
    def lap(self, hours: Sequence[Sequence[Pair]], *, is_stormy: bool) -> None:
        if not is_stormy:
            self.counts["lost marks"] += len(self._strays())
            mark_strays(now=self.now)  # the daily check
        killed = self.chance.sample(range(NODES), SERVER_KILLS) if is_stormy else []
        for number, plays in enumerate(hours):
            self.hour(plays, is_stormy=is_stormy, kills_server=number in killed)
        if not is_stormy:
            self.counts["left over"] += len(self.waiting() - self.last_hour)
        self.counts["laps"] += 1
        users = list(self.acknowledged)
        self.check(self.chance.sample(users, min(READERS, len(users))))
        self.now += REST

    def hour(self, plays: Sequence[Pair], *, is_stormy: bool = False, kills_server: bool = False) -> None:
        """Two merge passes. Plays arrive during the first."""
        self.last_hour = set(plays)
        killed_at = self.chance.randrange(0, len(plays), BATCH) if kills_server else None
        self._plan(is_stormy=is_stormy)
        for first in range(0, len(plays), BATCH):
            self._serve(is_stormy=is_stormy)
            if first == killed_at:
                self._kill_server()
            self._record(plays[first : first + BATCH], first / len(plays), is_stormy=is_stormy)
        self._drain(is_stormy=is_stormy)
        self._plan(is_stormy=is_stormy)
        self._drain(is_stormy=is_stormy)
        self.counts["hours"] += 1
        self.now += HOUR

    def check(self, user_ids: Sequence[int], asked: int = ASKED) -> None:
        since = three_months_before(self.now)
        for user_id in user_ids:
            recent = [item_id for item_id, at in self.acknowledged[user_id].items() if at >= since]
            new = [self.chance.randrange(NEVER, 2**53) for _ in range(asked)]
            left = unseen_ids(user_id, id_numbers([*recent, *new]), now=self.now)
            forgotten = int(np.count_nonzero(left < NEVER))
            self.counts["checked"] += len(recent)
            self.counts["forgotten"] += forgotten
            self.counts["asked"] += asked
            self.counts["wrong"] += asked - (len(left) - forgotten)

    # --- Plays -------------------------------------------------------------------------------------------
    def _record(self, pairs: Sequence[Pair], through: float, *, is_stormy: bool) -> None:
        """Record until acknowledged or given up."""
        at = self.now + through * HOUR
        if is_stormy and self.chance.random() < 0.05:
            at -= timedelta(days=1)  # a user was without a network
        # The hour ended between clock reading and write.
        now = self.now - HOUR if is_stormy and self.chance.random() < 0.05 else self.now
        plays = [Play(user_id, item_id, at) for user_id, item_id in pairs]
        while True:
            try:
                played.record(plays, now=now)
            except PlayedUnavailableError:
                self.counts["refused batches"] += 1
                self._revive()
                if self.chance.random() < 0.5:
                    return
                continue
            break
        self.counts["acknowledged"] += len(pairs)
        for user_id, item_id in pairs:
            known = self.acknowledged.setdefault(user_id, {})
            known[item_id] = max(at, known.get(item_id, at))
        try:
            self.check([self.chance.choice(pairs)[0]], asked=0)
        except PlayedUnavailableError:
            self._revive()

    # --- Tasks -------------------------------------------------------------------------------------------
    def _plan(self, *, is_stormy: bool) -> None:
        tasks = [(task_shard, self.now) for task_shard in range(settings.PLAYED_TASK_SHARDS)]
        if is_stormy:
            doubled = self.chance.sample(tasks, 3)
            late = [
                (task, self.now - self.chance.randrange(1, NODES) * HOUR) for task, _ in self.chance.sample(tasks, 2)
            ]
            self.counts["doubled tasks"] += len(doubled)
            self.counts["late tasks"] += len(late)
            tasks = [*(twice for one in doubled for twice in (one, one)), *late, *tasks]
        self.counts["tasks"] += len(tasks)
        self._tasks.extend(tasks)

    def _serve(self, *, is_stormy: bool) -> None:
        """Give tasks to free processes. Sometimes kill a busy one."""
        for merger in self.mergers:
            if merger.is_free() and self._tasks:
                merger.give(*self._tasks.popleft())
        if is_stormy and time.monotonic() > self._next_kill:
            self._next_kill = time.monotonic() + self.chance.expovariate(1 / self.kill_every)
            merger = self.chance.choice(self.mergers)
            self.counts["killed tasks"] += merger.is_busy
            merger.kill()

    def _drain(self, *, is_stormy: bool) -> None:
        while self._tasks or any(merger.is_busy for merger in self.mergers):
            self._serve(is_stormy=is_stormy)
            self._revive()
            time.sleep(0.002)
        if self._killer is not None:
            self._killer.wait()
            self._killer = None
        self._revive()

    # --- The server --------------------------------------------------------------------------------------
    def _kill_server(self) -> None:
        self._revive()
        assert self.server.process is not None
        moment, pid = self.chance.random() / 20, self.server.process.pid
        self._killer = subprocess.Popen(["sh", "-c", f"sleep {moment:.4f}; kill -9 {pid}"])
        self.counts["killed servers"] += 1

    def _revive(self) -> None:
        played.breaker.reset()
        if self.server.has_ended():
            self.server.kill()  # collects its exit, which the next start would lose
            self.server.start()
            assert wait_for(self.server.answers, 60), self.server.last_words()

    def waiting(self) -> set[Pair]:
        client = played.client()
        found = list(client.scan_iter(keys.played_recent(0)[:-1] + "*", count=1000))
        return {(int(key.rpartition(b":")[2]), int(member)) for key in found for member in client.zrange(key, 0, -1)}

    def _strays(self) -> set[int]:
        """A merge died before its second check."""
        client = played.client()
        marks = list(client.scan_iter(keys.played_users(0, 0)[:-3] + "*", count=1000))
        marked = {int(user_id) for key in marks for user_id in client.smembers(key)}
        return {user_id for user_id, _ in self.waiting()} - marked


@contextmanager
def simulation(
    folder: Path,
    *,
    seed: int,
    kill_every: float = KILL_EVERY_SECONDS,
    shards: int = SHARDS,
    task_shards: int = TASK_SHARDS,
) -> Iterator[Simulation]:
    """Server and store are in this folder."""
    home = Home(folder)
    home.make()
    server = make_server(home, "plays")
    assert isinstance(server, Valkey)
    server.start()
    assert wait_for(server.answers, 30), server.last_words()
    url = f"unix://{server.socket}"
    try:
        with (
            override_settings(
                PLAYED_URL=url, PLAYED_TIMEOUT_SECONDS=30.0, PLAYED_SHARDS=shards, PLAYED_TASK_SHARDS=task_shards
            ),
            patch.object(played, "TIMEOUT_SECONDS", 30.0),  # a busy machine must not look like an outage
            patch.object(store, "_store", LmdbStore(folder / "played")),
        ):
            simulated = Simulation(server, seed=seed, kill_every=kill_every)
            try:
                yield simulated
            finally:
                simulated.close()
    finally:
        server.stop()


def three_months_before(moment: datetime) -> datetime:
    """Days after the 28th count as the 28th."""
    year, month = divmod(month_of(moment) - 3, 12)
    return moment.replace(year=year, month=month + 1, day=min(moment.day, 28))


def hours_of(pairs: Sequence[Pair], laps: int) -> Iterator[list[Sequence[Pair]]]:
    count = laps * NODES
    ends = [len(pairs) * number // count for number in range(count + 1)]
    for lap in range(laps):
        yield [pairs[ends[hour] : ends[hour + 1]] for hour in range(lap * NODES, (lap + 1) * NODES)]
