"""What grows with the number of followers?

`growth_followers`: one user publishes, and this process does the workers' part. A fan-out should be linear (exponent
1), publishing and the page flat.

`big_v`: a big-V publishes to the active fans of level 3. All others have level 1 and pull. "Set gone" is the first
fan-out after the loss of the active fans.
"""

import time
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from statistics import mean, median

from celery import current_app as app

from accounts.models import User
from benchmarks.community import (
    FIRST_FOLLOWER,
    FIRST_PUBLISHER,
    FIRST_READER,
    FOLLOW_PUBLISHER,
    FOLLOW_SENDERS,
    ITEMS,
    USERS,
    build_window,
    emptied,
    loading,
    materialise_inbox,
    users,
)
from benchmarks.fan_out import raw, raw_key
from benchmarks.measure import (
    BenchmarkReport,
    Case,
    Size,
    exponent,
    interleaved,
    milliseconds,
    percentile,
    servers_time,
)
from items.actions import publish
from storage.connections import feeds_for_tasks, fetch, pipelined
from storage.window import WindowEntry
from timeline import active_fans, fanout
from timeline.home import home_page
from timeline.inbox import Inbox
from timeline.models import Delivery, DeliveryRange

LIMIT = 20
CHUNK = 10_000
OWN_ITEMS = 5
"""Newest items of each sender, on the page of their readers together with others."""
LINEAR, FLAT = 1.05, 0.03
"""Limits of exponents. A flat call costs 1.23 times as much for a thousand times the followers."""
BIG_V = 1.3
FOLLOWERS = "How does publishing grow from a thousand followers to a million?"
BIG_V_FANS = "Does a big-V cost the same with a thousand active fans among a million?"
PARTS = ("publish", "fan-out", "publish and fan-out", "fan-out, set gone")
MINE = """
    INSERT INTO items_item (id, sender_id, type, title, content, extra_info, status, visibility, modified_at)
    SELECT feedsite_next_id(), sender, 'text', '', '{"text": "mine"}', '{}', 'published', 'public', now()
    FROM unnest(%s::bigint[]) AS sender, generate_series(1, %s)
"""


class Followers:
    """Senders with a thousand to a million followers.

    Followers' windows have one entry: a million full ones would need 80 GB. Every sender has their own readers, with
    full inboxes.
    """

    def __init__(self, size: Size, folder: Path | None = None) -> None:
        self.size = size
        self.publishers = {count: FIRST_PUBLISHER + place for place, count in enumerate(size.growth_followers)}
        """By number of followers. Theirs are the first of `followers`."""
        self.followers = range(FIRST_FOLLOWER, FIRST_FOLLOWER + max(size.growth_followers))
        fewest = size.growth_followers[1]
        self.active = self.followers[:fewest][:: fewest // size.active][: size.active]
        """Followers at level 3, spread over all senders but the smallest. All others are at level 1."""
        free = iter(range(FIRST_READER, FIRST_PUBLISHER))
        self.readers = {count: [next(free) for _ in range(size.readers)] for count in size.growth_followers}
        """By number of followers of their sender."""

    def build(self) -> None:
        """Replace all data."""
        size = self.size
        senders = size.senders // 40
        emptied(find_people=False)
        readers = [reader for some in self.readers.values() for reader in some]
        with loading() as cursor:
            for first, count, level in (
                (1, senders, 3),
                (FIRST_READER, len(readers), 3),
                (FIRST_PUBLISHER, len(self.publishers), 3),
                (FIRST_FOLLOWER, len(self.followers), 1),
            ):
                cursor.execute(USERS, {"first": first, "count": count, "level": level, "big_vs": 0})
            cursor.execute("UPDATE accounts_user SET level = 3 WHERE id = ANY(%s)", [list(self.active)])
            cursor.execute(ITEMS, {"items": size.items // 10, "senders": senders})
            some = {"first": 1, "last": senders, "count": min(50, senders)}
            cursor.execute(FOLLOW_SENDERS, some | {"readers": readers})
            for count, publisher in self.publishers.items():
                for first, followers in ((self.followers.start, count), (self.readers[count][0], size.readers)):
                    cursor.execute(FOLLOW_PUBLISHER, {"publisher": publisher, "first": first, "count": followers})
            cursor.execute(MINE, [list(self.publishers.values()), OWN_ITEMS])
        for reader in readers:
            materialise_inbox(reader)
        give_windows(self.followers)

    def described(self) -> str:
        """The data set in a line."""
        ((follows,),) = fetch("SELECT count(*) FROM relations_follow")
        return f"{follows:,} follows, windows of a few entries"

    def senders(self) -> dict[int, User]:
        """The publishers, by number of followers."""
        found = User.objects.in_bulk(self.publishers.values())
        return {count: found[publisher] for count, publisher in self.publishers.items()}

    def set_big_v(self, counts: Iterable[int]) -> None:
        """Make only these senders big-Vs, and build their sets of active fans."""
        chosen = [self.publishers[count] for count in counts]
        User.objects.filter(is_big_v=True).update(is_big_v=False)
        User.objects.filter(pk__in=chosen).update(is_big_v=True)
        for publisher in chosen:
            assert active_fans.build(publisher)


def give_windows(followers: Sequence[int]) -> None:
    """Give each follower a window of one old entry, and the same for the peer."""
    client = feeds_for_tasks()
    old = WindowEntry(2**20, 1)
    build_window("model:window", [old])
    client.zadd("model:raw", {old.member: old.item_id})
    for first in range(0, len(followers), CHUNK):
        part = followers[first : first + CHUNK]
        copies = [_copy(b"model:window", Inbox(follower).key) for follower in part]
        pipelined(client, copies + [_copy(b"model:raw", raw_key(follower)) for follower in part])


def _copy(model: bytes, key: str) -> bytes:
    """A command that copies a key, as RESP by hand: packing millions of commands takes long."""
    return b"*4\r\n$4\r\nCOPY\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n$7\r\nREPLACE\r\n" % (
        *(len(model), model),
        *(len(key), key.encode()),
    )


def deliver_all(item_id: int) -> None:
    """Deliver an item by its fan-out and all its ranges."""
    if not fanout.fan_out(item_id):
        for range_id in DeliveryRange.objects.filter(delivery_id=item_id).order_by("pk").values_list("pk", flat=True):
            fanout.fan_out_range(range_id)


def nothing_left() -> bool:
    """Whether every delivery is complete. Purges the queue, because no workers run."""
    app.control.purge()
    return not Delivery.objects.exists()


class SenderCosts:
    """One sender's items, and their costs in seconds."""

    def __init__(self, followed: Followers, sender: User, count: int) -> None:
        self.sender, self.count = sender, count
        self.people = followed.followers[:count]
        self.raw_keys = [raw_key(follower) for follower in self.people]
        self.times: dict[str, list[float]] = {name: [] for name in (*PARTS, "worker", "all", "raw")}
        self.last = 0

    def publish_and_deliver(self, number: int) -> None:
        """Publish and deliver an item, and store how long it took."""
        begin = time.perf_counter()
        item = publish(sender=self.sender, content={"text": f"growth {number}"})
        published = time.perf_counter()
        servers, own, delivering = sum(servers_time()), time.process_time(), time.perf_counter()
        deliver_all(item.pk)
        ended = time.perf_counter()
        worker = time.process_time() - own
        spent = (published - begin, ended - delivering, published - begin + ended - delivering)
        for part, seconds in zip(PARTS, spent, strict=False):
            self.times[part].append(seconds)
        self.times["worker"].append(worker)
        self.times["all"].append(worker + sum(servers_time()) - servers)
        self.last = item.pk

    def raw(self, number: int) -> None:
        """Write the same entries in the shortest way."""
        ((item_id,),) = fetch("SELECT feedsite_next_id()")
        begin = time.perf_counter()
        raw(feeds_for_tasks(), item_id, self.sender.pk, self.raw_keys, 1000)
        self.times["raw"].append(time.perf_counter() - begin)

    def lose_the_set(self) -> None:
        """Time the first fan-out without active fans."""
        active_fans.drop(self.sender.pk)
        item = publish(sender=self.sender, content={"text": "to my fans"})
        begin = time.perf_counter()
        deliver_all(item.pk)
        self.times["fan-out, set gone"].append(time.perf_counter() - begin)

    def forget(self, count: int) -> None:
        """Drop the warm-up rounds."""
        for series in self.times.values():
            del series[:count]

    def has_arrived(self, follower: int) -> bool:
        """Whether an inbox has the last item."""
        return feeds_for_tasks().zscore(Inbox(follower).key, WindowEntry(self.last, self.sender.pk).member) is not None


# --- Followers -----------------------------------------------------------------------------------------------
def followers(followed: Followers) -> BenchmarkReport:
    """Run the benchmark `growth_followers`."""
    size = followed.size
    report = BenchmarkReport(
        "growth_followers",
        FOLLOWERS,
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
    works = [SenderCosts(followed, sender, count) for count, sender in followed.senders().items()]
    cases: dict[str, Case] = {}
    for work in works:
        cases |= {f"fan-out {work.count}": work.publish_and_deliver, f"raw {work.count}": work.raw}
    fewer = {name: case for name, case in cases.items() if not name.endswith(f" {works[-1].count}")}
    interleaved(fewer, rounds=size.growth_rounds, warm_up=2)
    for work in works[:-1]:
        work.forget(2)
    interleaved(cases, rounds=size.growth_few_rounds, warm_up=0)
    assert nothing_left(), "a fan-out was not completed"
    assert all(work.has_arrived(work.people[-1]) for work in works), "the last follower's inbox lacks the item"
    pages = _pages(followed)
    for work in works:
        middle = {part: median(times) for part, times in work.times.items() if times}
        page = pages[work.count]
        report.rows.append(
            [
                work.count,
                round(middle["publish"] * 1000, 2),
                round(middle["fan-out"], 4),
                round(middle["worker"], 4),
                round(mean(work.times["all"]), 3),
                round(work.count / middle["fan-out"]),
                round(middle["raw"], 4),
                round(milliseconds(page), 3),
                round(percentile(page, 0.99), 3),
            ]
        )
    for name, part, most in (
        ("fan-out", "fan-out", LINEAR),
        ("raw ZADD + trim", "raw", None),
        ("publish", "publish", FLAT),
    ):
        law = exponent([(work.count, median(work.times[part])) for work in works])
        report.ratio(f"exponent: {name} over followers", law, at_most=most)
    law = exponent([(count, median(times)) for count, times in pages.items()])
    report.ratio("exponent: reader's page over followers", law, at_most=FLAT)
    last = works[-1]
    report.figure(f"seconds to deliver to {last.count:,} followers", f"{median(last.times['fan-out']):.1f}")
    spent = median(last.times["fan-out"]) / median(last.times["raw"])
    report.ratio(f"fan-out / raw, {last.count:,} followers", spent)
    return report


def _pages(followed: Followers) -> dict[int, list[float]]:
    readers = {count: users(ids) for count, ids in followed.readers.items()}

    def case(some: list[User], sender: int) -> Case:
        def page(number: int) -> None:
            found = home_page(some[number % len(some)], limit=LIMIT)
            assert len(found.items) == LIMIT
            assert int(found.items[0].sender.id) == sender
            assert found.sources == ["inbox"]

        return page

    cases = {str(count): case(some, followed.publishers[count]) for count, some in readers.items()}
    times = interleaved(cases, rounds=followed.size.page_rounds, warm_up=2 * followed.size.readers)
    return {count: times[str(count)] for count in readers}


# --- A big-V -------------------------------------------------------------------------------------------------
def big_v(followed: Followers) -> BenchmarkReport:
    """Run the benchmark `big_v`."""
    size = followed.size
    counts = list(followed.publishers)[1:]
    report = BenchmarkReport(
        "big_v",
        BIG_V_FANS,
        ["followers", *(f"{part}, ms" for part in PARTS)],
        f"{size.big_v_rounds} rounds in turn, {size.growth_few_rounds} with the set gone; medians",
    )
    followed.set_big_v(counts)
    senders = followed.senders()
    works = [SenderCosts(followed, senders[count], count) for count in counts]
    active = [raw_key(follower) for follower in followed.active]

    def least(number: int) -> None:
        ((item_id,),) = fetch("SELECT feedsite_next_id()")
        raw(feeds_for_tasks(), item_id, 1, active, 1000)

    cases: dict[str, Case] = {str(work.count): work.publish_and_deliver for work in works}
    limit = interleaved(cases | {"raw": least}, rounds=size.big_v_rounds, warm_up=3)["raw"]
    for work in works:
        work.forget(3)
        _check(work, followed)
    for _ in range(size.growth_few_rounds):
        for work in works:
            work.lose_the_set()
    assert nothing_left(), "a fan-out was not completed"
    for work in works:
        spent = (round(milliseconds(work.times[part]), 2) for part in PARTS)
        report.rows.append([work.count, *spent])
    fewest, most = works[0], works[-1]
    whole = milliseconds(most.times["publish and fan-out"])
    report.figure(f"ms to publish and deliver with {most.count:,} followers", f"{whole:.0f}")
    for work in works[1:]:
        for part in PARTS[:3]:
            ratio = median(work.times[part]) / median(fewest.times[part])
            target = BIG_V if part == "publish and fan-out" else None
            report.ratio(f"{part} / that of {fewest.count:,} followers, {work.count:,}", ratio, at_most=target)
    report.ratio(f"fan-out / raw ZADD + trim, {most.count:,}", median(most.times["fan-out"]) / median(limit))
    return report


def _check(work: SenderCosts, followed: Followers) -> None:
    active = set(followed.active)
    others = (follower for follower in work.people if follower not in active)
    assert all(work.has_arrived(follower) for follower in active)
    assert not any(work.has_arrived(follower) for follower in islice(others, len(active)))
