"""How long after publishing does the last follower's inbox hold the item, with two worker processes?

Two real Celery workers on the broker; `items.actions.publish` in this process. Waited for: the item in the inbox of the
follower with the highest id, who is served last, and the end of the delivery row. The limit: `deliver` to the same
windows in this process, nothing else. Followers are of all levels: one in ten of level 3, three of level 2, six of
level 1.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from celery import current_app as app
from django.conf import settings
from django.db import connection

from accounts.models import User
from benchmarks.community import Community, materialise_inbox
from benchmarks.fan_out import fill
from benchmarks.ground import stop
from benchmarks.measure import Report
from items.actions import publish
from runtime.embedded import die_with_parent, wait_for
from storage.connections import feeds_for_tasks, fetch
from storage.window import Entry, deliver
from timeline.inbox import Inbox, cap_of
from timeline.models import Delivery

TARGET = 3
WARM_UP = 6
LEVELS = (3, 2, 2, 2, 1, 1, 1, 1, 1, 1)


def run(community: Community) -> Report:
    """Run the benchmark, and return its report."""
    rounds = community.size.publish_rounds
    followers = max(community.publishers)
    publisher_id = community.publishers[followers]
    people = community.followers[:followers]
    mix(community)
    materialise_inbox(publisher_id)
    caps = [cap_of(LEVELS[follower % 10]) for follower in people]
    keys = [Inbox(follower).key for follower in people]
    client = feeds_for_tasks()
    last = keys[-1]
    times: dict[str, list[float]] = {name: [] for name in ("publish", "start", "returned", "row", "alone")}
    publisher = User.objects.get(pk=publisher_id)
    app.control.purge()
    with workers():
        for number in range(WARM_UP + rounds):
            begin = time.perf_counter()
            item = publish(sender=publisher, content={"text": f"bench {number}"})
            returned = time.perf_counter()
            member = Entry(item.pk, publisher_id).member
            assert wait_for_item(last, member), "the item did not reach the last inbox"
            arrived = time.perf_counter()
            assert wait_for(lambda pk=item.pk: not Delivery.objects.filter(pk=pk).exists(), 30)
            ended = time.perf_counter()
            ((fresh,),) = fetch("SELECT feedsite_next_id()")
            before = time.perf_counter()
            deliver(client, Entry(fresh, publisher_id), keys, caps)
            alone = time.perf_counter() - before
            if number >= WARM_UP:
                figures = (returned - begin, arrived - begin, arrived - returned, ended - begin, alone)
                for series, seconds in zip(times.values(), figures, strict=True):
                    series.append(seconds)
    assert all(client.zscore(key, member) is not None for key in keys[:: max(1, followers // 100)])
    report = Report(
        "publish_to_inbox",
        __doc__.splitlines()[0],
        ["what", "ms", "over the deliveries alone"],
        f"{rounds} items to {followers:,} followers; medians",
    )
    alone = median(times["alone"])
    for name, words in (
        ("publish", "publish() takes"),
        ("returned", "from its return to the last inbox"),
        ("start", "from its start to the last inbox"),
        ("row", "from its start to the end of the delivery row"),
        ("alone", "deliver() alone"),
    ):
        report.rows.append([words, round(median(times[name]) * 1000, 1), round(median(times[name]) / alone, 2)])
    report.ratio(
        f"publish to last inbox, {followers:,} followers / deliver alone",
        median(times["start"]) / alone,
        at_most=TARGET,
    )
    return report


def wait_for_item(key: str, member: str) -> bool:
    """Ask every half millisecond: often enough to tell, seldom enough to leave the server to the workers."""
    client = feeds_for_tasks()
    deadline = time.monotonic() + 30
    while client.zscore(key, member) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.0005)
    return True


def mix(community: Community) -> None:
    """Followers of all levels with full windows."""
    for level in sorted(settings.LEVEL_CAPS):
        fill(community, level, [follower for follower in community.followers if LEVELS[follower % 10] == level])
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE accounts_user")


@contextmanager
def workers() -> Iterator[int]:
    """Two Celery workers; the id of the process whose children they are."""
    command = [sys.executable, "-m", "celery", "-A", "feedsite", "--quiet", "worker", "--concurrency", "2"]
    command += ["--without-gossip", "--without-mingle", "--loglevel", "error"]
    worker = subprocess.Popen(
        command,
        cwd=settings.BASE_DIR,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=die_with_parent(signal.SIGTERM),
    )
    try:
        assert wait_for(lambda: app.control.ping(timeout=0.3), 60), "no Celery worker answers"
        yield worker.pid
    finally:
        stop(worker, 30)
