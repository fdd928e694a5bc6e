"""Does publishing by a big-V cost the same with a thousand active fans among ten thousand or a million followers?

Published by `items.actions.publish`, to its end, and delivered as a worker does it: to the active fans, level 3. All
other followers are of level 1 and pull the big-V's outbox. The limit is ZREMRANGEBYRANK and ZADD for the thousand.
"Set gone" is the first fan-out after the set of active fans was lost, or has expired after a day: it builds the set
from PostgreSQL before.
"""

import time
from collections.abc import Callable
from itertools import islice
from statistics import median

from accounts.models import User
from benchmarks.fan_out import raw, raw_key
from benchmarks.fits import Chart
from benchmarks.followers import Followers, deliver_all, nothing_left
from benchmarks.measure import Report, interleaved, milliseconds
from items.actions import publish
from storage.connections import feeds_for_tasks, fetch
from storage.window import Entry
from timeline import active_fans
from timeline.inbox import Inbox

TARGET = 1.3
WARM_UP = 3
BOTH = "publish and fan-out"
GONE = "fan-out, set gone"
PARTS = ("publish", "fan-out", BOTH, GONE)


def run(followed: Followers) -> Report:
    """Run the benchmark, and return its report."""
    size = followed.size
    counts = list(followed.publishers)[1:]
    report = Report(
        "big_v",
        __doc__.splitlines()[0],
        ["followers", "active", *(f"{part}, ms" for part in PARTS)],
        f"{size.big_v_rounds} rounds in turn, {size.growth_few_rounds} with the set gone; medians",
    )
    followed.set_big_v(counts)
    senders = followed.senders()
    works = [Work(senders[count], count) for count in counts]
    keys = [raw_key(follower) for follower in followed.active]

    def least(number: int) -> None:
        ((item_id,),) = fetch("SELECT feedsite_next_id()")
        raw(feeds_for_tasks(), item_id, 1, keys, 1000)

    cases: dict[str, Callable[[int], object]] = {str(work.count): work.publish_and_deliver for work in works}
    limits = interleaved(cases | {"raw": least}, rounds=size.big_v_rounds, warm_up=WARM_UP)["raw"]
    for work in works:
        work.forget(WARM_UP)
        work.check(followed)
    for _ in range(size.growth_few_rounds):
        for work in works:
            work.lose_the_set()
    assert nothing_left(), "a fan-out was not completed"
    for work in works:
        spent = (round(milliseconds(work.times[part]), 2) for part in PARTS)
        report.rows.append([work.count, len(followed.active), *spent])
    _compare(report, works, limits)
    return report


class Work:
    """One big-V's items, and what they cost."""

    def __init__(self, sender: User, count: int) -> None:
        self.sender, self.count = sender, count
        self.times: dict[str, list[float]] = {part: [] for part in PARTS}
        self.last = 0

    def publish_and_deliver(self, number: int) -> None:
        """Publish an item and deliver it, and note the seconds of both."""
        begin = time.perf_counter()
        item = publish(sender=self.sender, content={"text": f"to my fans {number}"})
        published = time.perf_counter()
        deliver_all(item.pk)
        ended = time.perf_counter()
        for part, seconds in zip(PARTS, (published - begin, ended - published, ended - begin), strict=False):
            self.times[part].append(seconds)
        self.last = item.pk

    def forget(self, count: int) -> None:
        """Leave out the first rounds, which warmed everything up."""
        for series in self.times.values():
            del series[:count]

    def check(self, followed: Followers) -> None:
        """The last item is with the active fans, and with no other follower."""
        client = feeds_for_tasks()
        newest = Entry(self.last, self.sender.pk).member
        active = set(followed.active)
        others = (follower for follower in followed.followers[: self.count] if follower not in active)
        assert all(client.zscore(Inbox(follower).key, newest) is not None for follower in followed.active)
        assert all(client.zscore(Inbox(follower).key, newest) is None for follower in islice(others, len(active)))

    def lose_the_set(self) -> None:
        """The first fan-out without a set of active fans."""
        active_fans.drop(self.sender.pk)
        item = publish(sender=self.sender, content={"text": "to my fans"})
        begin = time.perf_counter()
        deliver_all(item.pk)
        self.times[GONE].append(time.perf_counter() - begin)


def _compare(report: Report, works: list[Work], limits: list[float]) -> None:
    fewest, most = works[0], works[-1]
    chart = Chart("fans", "A big-V publishes to as many active fans among more followers", "followers", "ms")
    laws = {
        part: chart.add(part, [(work.count, milliseconds(work.times[part])) for work in works]) for part in (BOTH, GONE)
    }
    chart.add("raw ZADD + trim", [(work.count, milliseconds(limits)) for work in works])
    report.charts.append(chart)
    for work in works[1:]:
        for part in PARTS[:3]:
            ratio = median(work.times[part]) / median(fewest.times[part])
            target = TARGET if part == BOTH else None
            report.ratio(f"{part}, {work.count:,} / {fewest.count:,} followers", ratio, at_most=target)
    report.ratio(f"fan-out / raw ZADD + trim, {most.count:,}", median(most.times["fan-out"]) / median(limits))
    said = "; ".join(f"{part} {law}" for part, law in laws.items())
    report.notes.append(f"Exponents over followers, with 95 % confidence: {said}.")
