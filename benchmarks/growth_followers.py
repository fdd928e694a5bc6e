"""How do publishing, a whole fan-out and a reader's page grow from a thousand followers to a million?

Published by `items.actions.publish`, to its end: committed, in the sender's own windows, workers told. Then everything
that workers do for the item, one after the other in this process: `fan_out` and the ranges that it splits into. Every
follower has a window, which is the dearest case: to those of level 0, who have none, nothing is delivered. The limit of
the fan-out is ZREMRANGEBYRANK and ZADD for the same followers as `fan_out` measures it. A page is the first one of a
reader who follows the sender, full, and shows what they published.

Expected: a fan-out linear, exponent 1, or below where its fixed costs still count; publishing and the page flat.
"""

import time
from collections.abc import Callable
from statistics import median

from accounts.models import User
from benchmarks.community import users
from benchmarks.fan_out import raw, raw_key
from benchmarks.fits import Chart
from benchmarks.followers import Followers, deliver_all, nothing_left
from benchmarks.measure import Report, interleaved, milliseconds, over, percentile, servers_time
from items.actions import publish
from storage.connections import feeds_for_tasks, fetch
from timeline.home import home_page
from timeline.inbox import Inbox

LIMIT = 20
LINEAR = 1.05
FLAT = 0.03
"""An exponent up to this is called flat: a thousand times the followers for at most 1.23 times the cost."""


def run(followed: Followers) -> Report:
    """Run the benchmark, and return its report."""
    size = followed.size
    report = Report(
        "growth_followers",
        __doc__.splitlines()[0],
        [
            "followers",
            "publish, ms",
            "fan-out, s",
            "of it CPU of the worker",
            "CPU of all",
            "deliveries/s",
            "raw ZADD + trim, s",
            "reader's page p50, ms",
            "p99, ms",
        ],
        f"{size.growth_rounds} rounds, {size.growth_few_rounds} with the most followers; {size.page_rounds} pages over "
        f"{size.readers} readers each; medians",
    )
    followed.set_big_v([])
    works = [Work(followed, sender, count) for count, sender in followed.senders().items()]
    cases = {name: case for work in works for name, case in work.cases().items()}
    most = works[-1].cases()
    interleaved({name: case for name, case in cases.items() if name not in most}, rounds=size.growth_rounds, warm_up=2)
    for work in works[:-1]:
        work.forget(2)
    interleaved(cases, rounds=size.growth_few_rounds, warm_up=0)
    assert nothing_left(), "a fan-out was not completed"
    for work in works:
        assert work.has_arrived(), "the last follower's inbox lacks the item"
    pages = _pages(followed)
    for work in works:
        seconds = median(work.fan_outs)
        page = pages[work.count]
        report.rows.append(
            [
                work.count,
                round(milliseconds(work.publishes), 2),
                round(seconds, 4),
                round(median(work.worker), 4),
                round(sum(work.everybody) / len(work.everybody), 3),
                round(work.count / seconds),
                round(median(work.raws), 4),
                round(milliseconds(page), 3),
                round(percentile(page, 0.99), 3),
            ]
        )
    _fit(report, works, pages)
    return report


class Work:
    """One sender's items, and what they cost."""

    def __init__(self, followed: Followers, sender: User, count: int) -> None:
        self.sender, self.count = sender, count
        self.people = followed.followers[:count]
        self.raw_keys = [raw_key(follower) for follower in self.people]
        self.publishes: list[float] = []
        self.fan_outs: list[float] = []
        self.worker: list[float] = []
        """Processor seconds of this process."""
        self.everybody: list[float] = []
        """Processor seconds of this process, PostgreSQL and Redis, which tell theirs in hundredths."""
        self.raws: list[float] = []
        self.last = 0

    def cases(self) -> dict[str, Callable[[int], object]]:
        """The two cases to be timed, by name: the fan-out, and the bare writes."""
        return {f"fan-out {self.count}": self.publish_and_deliver, f"raw {self.count}": self.raw}

    def publish_and_deliver(self, number: int) -> None:
        """Publish an item and deliver it, and note its times."""
        begin = time.perf_counter()
        item = publish(sender=self.sender, content={"text": f"growth {number}"})
        self.publishes.append(time.perf_counter() - begin)
        servers, own, begin = sum(servers_time()), time.process_time(), time.perf_counter()
        deliver_all(item.pk)
        self.fan_outs.append(time.perf_counter() - begin)
        self.worker.append(time.process_time() - own)
        self.everybody.append(self.worker[-1] + sum(servers_time()) - servers)
        self.last = item.pk

    def raw(self, number: int) -> None:
        """Write the same entries to Redis by the shortest way, and note the time."""
        ((item_id,),) = fetch("SELECT feedsite_next_id()")
        begin = time.perf_counter()
        raw(feeds_for_tasks(), item_id, self.sender.pk, self.raw_keys, 1000)
        self.raws.append(time.perf_counter() - begin)

    def forget(self, count: int) -> None:
        """Leave out the first rounds, which warmed everything up."""
        for series in (self.publishes, self.fan_outs, self.worker, self.everybody, self.raws):
            del series[:count]

    def has_arrived(self) -> bool:
        """Whether the last follower's inbox holds the last item."""
        newest = f"{self.sender.pk}:{self.last}"
        return feeds_for_tasks().zscore(Inbox(self.people[-1]).key, newest) is not None


def _pages(followed: Followers) -> dict[int, list[float]]:
    readers = {count: users(ids) for count, ids in followed.readers.items()}

    def case(some: list[User], sender: int) -> Callable[[int], object]:
        def page(number: int) -> None:
            found = home_page(some[number % len(some)], limit=LIMIT)
            assert len(found.items) == LIMIT
            assert int(found.items[0].sender.id) == sender
            assert found.sources == ["inbox"]

        return page

    cases = {str(count): case(some, followed.publishers[count]) for count, some in readers.items()}
    times = interleaved(cases, rounds=followed.size.page_rounds, warm_up=2 * followed.size.readers)
    return {count: times[str(count)] for count in readers}


def _fit(report: Report, works: list[Work], pages: dict[int, list[float]]) -> None:
    counts = [work.count for work in works]
    deliveries = Chart("fan_out", "A fan-out, by followers", "followers", "seconds")
    flat = Chart("page", "Publishing, and a reader's page, by followers", "followers", "ms")
    fan_out = deliveries.add("fan-out", [(work.count, median(work.fan_outs)) for work in works])
    deliveries.add("CPU of the worker", [(work.count, median(work.worker)) for work in works])
    least = deliveries.add("raw ZADD + trim", [(work.count, median(work.raws)) for work in works])
    page = flat.add("page, p50", [(count, milliseconds(pages[count])) for count in counts])
    flat.add("page, p99", [(count, percentile(pages[count], 0.99)) for count in counts])
    published = flat.add("publish", [(work.count, milliseconds(work.publishes)) for work in works])
    report.charts += [deliveries, flat]
    few, many = counts[0], counts[-1]
    report.ratio("exponent: fan-out over followers", fan_out.exponent, at_most=LINEAR)
    report.ratio("exponent: raw ZADD + trim over followers", least.exponent)
    report.ratio("exponent: publish over followers", published.exponent, at_most=FLAT)
    report.ratio("exponent: reader's page over followers", page.exponent, at_most=FLAT)
    report.ratio(f"fan-out / raw, {many:,} followers", median(works[-1].fan_outs) / median(works[-1].raws))
    times = {"publish": works[-1].publishes, "least": works[0].publishes}
    report.ratio(f"publish, {many:,} / {few:,} followers", over(times, "publish", "least"))
    report.ratio(f"reader's page, {many:,} / {few:,} followers", median(pages[many]) / median(pages[few]))
    report.notes.append(
        f"Exponents, with 95 % confidence: fan-out {fan_out} (R² {fan_out.r2:.3f}), raw {least}, publish {published}, "
        f"page {page}."
    )
