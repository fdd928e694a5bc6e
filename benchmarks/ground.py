"""The benchmarks' own site: a temporary data folder, with servers set up as in production, gone when they end."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

FEEDS_MEMORY = "6gb"
"""More than the windows of 20,000 readers of level 3 take: nothing may be evicted while it is measured."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is generated, and how often it is measured."""

    items: int = 1_000_000
    senders: int = 20_000
    big_vs: int = 100
    followees: tuple[int, ...] = (10, 50, 200, 1000, 2000)
    """Followees of the readers of each kind."""
    readers: int = 10
    """Readers of each kind."""
    outboxes: tuple[int, ...] = (5, 20, 100)
    """Readers below the level that takes pushes follow so many big-Vs."""
    followers: tuple[int, ...] = (1_000, 10_000)
    page_rounds: int = 200
    hidden: int = 12_000
    """Items that a reader may not see, the newest of a followee."""
    growth_followers: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    """For what is asked about growth: senders with so many followers, ..."""
    growth_senders: int = 500
    growth_items: int = 100_000
    growth_rounds: int = 15
    growth_few_rounds: int = 3
    active: int = 1_000
    """Followers of a big-V at level 3."""
    big_v_rounds: int = 60
    graph_users: tuple[int, ...] = (1_000, 2_500, 5_000, 10_000, 20_000, 40_000)
    """Users of the communities of growing size."""
    graph_readers: int = 200
    """Readers who are measured in each of these."""
    graph_items: int = 300
    """Items that are fanned out in each of these."""
    grown_items: tuple[int, ...] = (1_000_000, 50_000_000)
    """Items of the grown communities."""
    grown_followees: tuple[int, ...] = (50, 200)
    """Followees of the measured readers of a grown community."""
    grown_readers: int = 20
    """Measured readers of each number of followees."""
    grown_rounds: int = 25
    """Calls in each of two passes over a grown community."""
    grown_cold: int = 2
    """Starts of a grown community with nothing in memory."""
    grown_changes: int = 20_000
    """Items that are changed before VACUUM."""
    swept: int = 200_000
    """Rows that are due at once."""
    swept_rounds: int = 600
    """Rounds of rows that are taken every two seconds: for twenty minutes."""
    fan_out_rounds: int = 24
    publish_rounds: int = 21
    http_rounds: int = 9
    http_requests: int = 150
    searched: int = 400_000
    """The newest items, which get texts of words."""
    search_rounds: int = 60
    scan_rounds: int = 3
    likes: int = 1_000
    streams: int = 1_000
    app_streams: int = 5_000
    stream_rounds: int = 60
    walkers: int = 100
    """Readers who walk the recommended feed of a real data set."""
    walked_pages: int = 50
    """Pages that each of these walks."""
    quality_readers: int = 1_000
    """Readers whose recommendations at a past date are compared with whom they followed then."""
    recall_readers: int = 300
    """Readers for whom recall is timed."""
    cost_rounds: int = 300
    """Calls of each act whose cost is measured."""
    impressions: int = 100_000
    impression_rounds: int = 100
    interactions: int | None = None
    """Interactions of a data set that are played; None: all."""
    played_laps: int = 60
    """Laps of the time ring in which the interactions are played."""
    played_users: int = 2_000
    """Users whose plays are merged together."""
    played_rounds: int = 40
    """Rounds in which a merge is measured."""
    live_hosts: int = 2_000
    live_sessions: int = 50
    """Live sessions of each host."""
    live_followed: tuple[int, ...] = (10, 100, 2_000)
    live_readers: int = 10
    live_rounds: int = 200
    idle_pause: float = 120.0
    """Seconds until a site that has started or was visited is left alone by its own tasks."""
    idle_seconds: float = 240.0
    """Seconds for which a site at rest is looked at."""
    load_people: int = 300
    """People of a site under load."""
    load_items: int = 20_000
    load_fans: int = 1_000_000
    """Followers of the big-V of a site under load."""
    load_streams: int = 100
    """Streams that are open all the time under load."""
    load_seconds: float = 20.0
    """Seconds of each load."""
    soak_seconds: float = 3_600.0
    """Seconds for which a site is used without a pause."""


QUICK = Size(
    items=12_000,
    senders=400,
    big_vs=20,
    followees=(10, 200),
    readers=2,
    outboxes=(5, 20),
    followers=(60, 120),
    growth_followers=(40, 120, 400),
    growth_senders=40,
    growth_items=3_000,
    growth_rounds=2,
    growth_few_rounds=1,
    active=20,
    big_v_rounds=2,
    graph_users=(20, 40),
    graph_readers=4,
    graph_items=6,
    grown_items=(10_000, 20_000),
    grown_followees=(10, 40),
    grown_readers=2,
    grown_rounds=4,
    grown_cold=1,
    grown_changes=300,
    swept=3_000,
    swept_rounds=5,
    page_rounds=4,
    hidden=1_000,
    fan_out_rounds=2,
    publish_rounds=2,
    http_rounds=2,
    http_requests=5,
    searched=8_500,
    search_rounds=3,
    scan_rounds=1,
    likes=60,
    streams=20,
    app_streams=80,
    stream_rounds=2,
    walkers=2,
    walked_pages=9,
    quality_readers=5,
    recall_readers=3,
    cost_rounds=12,
    impressions=5_000,
    impression_rounds=2,
    interactions=5_000,
    played_laps=2,
    played_users=50,
    played_rounds=2,
    live_hosts=60,
    live_sessions=30,
    live_followed=(10, 60),
    live_readers=2,
    live_rounds=2,
    idle_pause=1.0,
    idle_seconds=2.0,
    load_people=30,
    load_items=600,
    load_fans=500,
    load_streams=5,
    load_seconds=1.5,
    soak_seconds=12.0,
)


@contextmanager
def own_site(kept: Path | None = None) -> Iterator[Path]:
    """Servers and a migrated database in a temporary folder, or in `kept`, which stays; Django's settings must not have
    been read before.

    The environment takes no part: neither the site's settings nor its servers, nor the coverage of a run of the tests,
    which would be measured with the programs.
    """
    with _folder(kept) as folder:
        theirs = ("FEEDSITE_", "COVERAGE_")
        for name in [name for name in os.environ if name.startswith(theirs) and name != "FEEDSITE_VENV"]:
            del os.environ[name]
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "feedsite.settings",
            "FEEDSITE_DATA_DIR": folder,
            "FEEDSITE_ENV_FILE": os.devnull,
            "FEEDSITE_FEEDS_MEMORY": FEEDS_MEMORY,
            "FEEDSITE_LOG_LEVEL": "WARNING",
            "FEEDSITE_RATE_SCALE": "1e6",  # every call is counted, none is refused
            "FEEDSITE_REDIS_TIMEOUT_SECONDS": "1",  # a busy machine is no outage, which would be measured instead
        }
        import django
        from django.conf import settings

        with settings.SERVERS.ensure():
            (Path(folder) / "static").mkdir(exist_ok=True)
            django.setup()
            from django.core.management import call_command
            from django.db import connections

            call_command("migrate", interactive=False, verbosity=0)
            try:
                yield Path(folder)
            finally:
                connections.close_all()


@contextmanager
def _folder(kept: Path | None) -> Iterator[str]:
    if kept:
        kept.mkdir(parents=True, exist_ok=True)
        yield str(kept.resolve())
        return
    with tempfile.TemporaryDirectory(prefix="feedsite-bench-", ignore_cleanup_errors=True) as folder:
        yield folder


def stop(program: subprocess.Popen[bytes], seconds: float) -> None:
    """Have a program end; by force after so many seconds, when TimeoutExpired is raised besides."""
    program.terminate()
    try:
        program.wait(seconds)
    finally:
        program.kill()


def emptied(*, find_people: bool = True) -> None:
    """Empty the database and Redis. Without `find_people`, the index of people's names is dropped as well, which takes
    longer to make for a million of them than everything else; the next call brings it back.
    """
    from django.core.management import call_command
    from django.db import connection

    from accounts import policy
    from accounts.models import User
    from storage.connections import feeds_for_tasks

    call_command("flush", interactive=False, verbosity=0)
    policy.follow_timeline()
    feeds_for_tasks().flushall()
    (index,) = (index for index in User._meta.indexes if index.name == "user_names")
    with connection.cursor() as cursor, connection.schema_editor() as editor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [index.name])
        (is_there,) = cursor.fetchone()
        if find_people and not is_there:
            editor.add_index(User, index)
        if is_there and not find_people:
            editor.remove_index(User, index)
