"""The cost of a day of a graph of follows, by the follows that are pushed and pulled, from measured unit costs.

Every follow is served in one of two ways. Pushed: each item of the followee costs a delivery into the reader's inbox.
Pulled: each page of the reader costs reading the followee's outbox. A policy says which, for every follow:

- push: all; pull: all.
- hybrid, as the site does: followees of at least `threshold` followers are big-Vs and pushed to readers of at least
  `push_level` only, all others to followers who are not dormant.
- per pair: pushed where the followee's items a day times the cost of a delivery are less than the reader's pages a day
  times the cost of a pull (Silberstein et al., "Feeding Frenzy: Selectively Materializing Users' Event Feeds", SIGMOD
  2010). It is their rule of per-producer coherency: a page reads every outbox that is pulled, whatever it gives, so
  costs add up by follows and the cheaper way for each makes the least sum. Their global coherency would share a pull
  among the outboxes that fill a page; their knob for latency, pushing more than that, is left at nothing.

It is a model of averages: rates are constant, a reader keeps the level that the mean rate gives, blocks, mutes and
what visibility hides are left out, and building inboxes anew costs nothing.

See docs/decisions.md: Push or pull is decided by sender and not by follow.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LEVELS = 4
NO_LEVEL = LEVELS
"""The push level at which a big-V's items are pushed to no follower."""
NEVER = np.iinfo(np.int64).max
"""The threshold at which no sender is big-V, which FEEDSITE_BIG_V_THRESHOLD spells 0."""
KEPT_DAYS = 365
"""A window holds what came within so many days, and at most its cap: builders fill it from PostgreSQL."""
LISTPACK = 512
"""Entries up to which the server packs a window (zset-max-listpack-entries)."""
SENDERS = 5
CLOSE = 1.01
"""Costs so near to the least are as good: the highest threshold of them makes the fewest big-Vs."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Unit costs: seconds of one core, servers' work included, and bytes of Redis; from docs/benchmarks.md
    (2026-11-21, 2 cores of an AMD EPYC, load 0.36).
    """

    item: float = 8.5e-3
    """Publishing, whatever the followers: publish() 6.5 ms (publish_to_inbox), claim and completion 2 ms."""
    push: float = 14.2e-6
    """One delivery: fan_out makes 70,468 a second to 10,000 followers of level 3 (fan_out)."""
    page: float = 1.9e-3
    """A first page over HTTP that pulls nothing: home, 200 followees (http_page, waited)."""
    pull: float = 46e-6
    """One outbox more in it: home with 5, 20 and 100 outboxes, least squares through the page without (http_page)."""
    inbox: float = 0.79e-3
    """The part of a page that reads from an inbox: windows, and one statement (home_page's prototype of it, waited)."""
    sql: float = 0.59e-3
    """The time of one pull instead, without any followee: LATERAL of home_page at 10 to 1000 followees, least squares,
    and 15 % for what our pull asks beyond it."""
    followee: float = 5.5e-6
    """The time of the pull for each further followee, beyond the 0.17 µs that an inbox takes."""
    packed_entry: float = 34.2
    """Bytes of an entry of a window up to `LISTPACK` (memory)."""
    entry: float = 84.2
    """Bytes of an entry of a longer window (memory)."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Users are places in arrays; `readers[i]` follows `senders[i]`. Rates are items and pages a day."""

    ids: Integers
    levels: Integers
    items: Floats
    pages: Floats
    readers: Integers
    senders: Integers

    @property
    def size(self) -> int:
        """The number of users."""
        return len(self.ids)

    def followers(self) -> Integers:
        """The number of followers of each user, by place."""
        return np.bincount(self.senders, minlength=self.size)

    def fixed(self, costs: Costs) -> float:
        """The cost of a day that every policy has, in seconds of a core."""
        return float(self.items.sum() * costs.item + self.pages.sum() * costs.page)


def levels_of(pages: Floats) -> Integers:
    """The levels of users who open so many pages a day, evenly spread."""
    ages = sorted((age.total_seconds() / 86_400 for age in settings.LEVEL_AGES.values()), reverse=True)
    return np.searchsorted(1 / np.array(ages), pages, side="right")


# --- Policies: which follows are pushed ------------------------------------------------------------------
def push_all(graph: Graph) -> Mask:
    """The policy that pushes every follow; an array with True for each pushed follow."""
    return np.ones(len(graph.senders), dtype=bool)


def pull_all(graph: Graph) -> Mask:
    """The policy that pulls every follow."""
    return np.zeros(len(graph.senders), dtype=bool)


def hybrid(graph: Graph, threshold: int, push_level: int) -> Mask:
    """The site's policy: senders with `threshold` followers push to followers of `push_level` and above only."""
    minimum = np.where(graph.followers() >= threshold, max(1, push_level), 1)
    pushed: Mask = graph.levels[graph.readers] >= minimum[graph.senders]
    return pushed


def per_pair(graph: Graph, costs: Costs) -> Mask:
    """The policy that takes the cheaper way for each follow."""
    pushed: Mask = (graph.items * costs.push)[graph.senders] < (graph.pages * costs.pull)[graph.readers]
    return pushed


# --- The cost of a policy --------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Sender:
    """A sender with much work: rates a day, and the lag of an item."""

    id: int
    followers: int
    items: float
    pushes: int
    work: float
    """Seconds of one worker from publishing to the last inbox."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A day under a policy. CPU in seconds of one core; `p50` and `p99`: of a page, over all pages."""

    policy: str
    pushed: int
    pulled: int
    deliveries: float
    writing: float
    reading: float
    inbox_bytes: float
    outbox_bytes: float
    p50: float
    p99: float
    lag: float
    """Seconds of one worker for an item of the sender who is pushed to most."""
    senders: list[Sender]

    @property
    def total(self) -> float:
        """Seconds of a core a day, for writing and reading."""
        return self.writing + self.reading


def outcome(policy: str, graph: Graph, pushed: Mask, costs: Costs) -> Outcome:
    """The costs of a day where `pushed` has True for each follow that is pushed."""
    followers = graph.followers()
    pushes = np.bincount(graph.senders[pushed], minlength=graph.size)
    pulled = ~pushed
    outboxes = np.bincount(graph.readers[pulled], minlength=graph.size)
    arriving = np.bincount(graph.readers[pushed], weights=graph.items[graph.senders[pushed]], minlength=graph.size)
    deliveries = float(graph.items @ pushes)
    page: Floats = costs.page + costs.pull * outboxes.astype(np.float64)
    read = np.bincount(graph.senders[pulled], minlength=graph.size) > 0
    # A dormant reader who takes pushes has the shortest inbox.
    caps = np.array([settings.LEVEL_CAPS[max(1, level)] for level in range(LEVELS)])
    p50, p99 = quantiles(page, graph.pages, (0.5, 0.99))
    largest = np.argsort(-followers, kind="stable")[:SENDERS]
    return Outcome(
        policy,
        pushed=int(pushes.sum()),
        pulled=int(outboxes.sum()),
        deliveries=deliveries,
        writing=float(graph.items.sum() * costs.item + deliveries * costs.push),
        reading=float(graph.pages @ page),
        inbox_bytes=float(window_bytes(np.minimum(arriving * KEPT_DAYS, caps[graph.levels]), costs).sum()),
        outbox_bytes=float(
            window_bytes(np.where(read, np.minimum(graph.items * KEPT_DAYS, settings.OUTBOX_CAP), 0), costs).sum()
        ),
        p50=p50,
        p99=p99,
        lag=float(_work(pushes[graph.items > 0].max(initial=0), costs)),
        senders=[
            Sender(
                int(graph.ids[place]),
                int(followers[place]),
                float(graph.items[place]),
                int(pushes[place]),
                float(_work(pushes[place], costs)),
            )
            for place in largest
        ],
    )


def _work(pushes: np.int64, costs: Costs) -> np.float64:
    return np.float64(costs.item + costs.push * pushes)


def window_bytes(entries: Floats, costs: Costs) -> Floats:
    """Bytes of each window, by its number of entries."""
    held: Floats = entries * np.where(entries <= LISTPACK, costs.packed_entry, costs.entry)
    return held


def quantiles(values: Floats, weights: Floats, shares: Sequence[float]) -> list[float]:
    """The least values that so large shares of the weight do not pass; zeros where nothing has weight."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    if not len(reached) or reached[-1] <= 0:
        return [0.0] * len(shares)
    places = np.searchsorted(reached, np.array(shares) * reached[-1])
    return [float(value) for value in values[order][np.minimum(places, len(values) - 1)]]


# --- The curve over thresholds ---------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Point:
    """A threshold and push level, and their costs of a day."""

    threshold: int
    push_level: int
    big_vs: int
    total: float
    lag: float


def curve(graph: Graph, costs: Costs) -> list[Point]:
    """The costs of a day at every threshold that is 1, 2 or 5 times a power of ten, and at every push level; the last
    threshold is `NEVER`.

    The follows are looked at once: what a threshold costs is the sum of its big-Vs' and of the others' followers.
    """
    followers = graph.followers()
    cells = graph.senders * LEVELS + graph.levels[graph.readers]
    shape = (graph.size, LEVELS)
    audience = np.bincount(cells, minlength=graph.size * LEVELS).reshape(shape)
    pages = np.bincount(cells, weights=graph.pages[graph.readers], minlength=graph.size * LEVELS).reshape(shape)
    fixed = graph.fixed(costs)

    def served(minimum: int) -> tuple[Floats, Integers]:
        """Every sender's cost a day, and pushes an item, if followers of at least a level are pushed to."""
        pushes = audience[:, minimum:].sum(axis=1)
        return graph.items * costs.push * pushes + pages[:, :minimum].sum(axis=1) * costs.pull, pushes

    common, common_pushes = served(1)
    points = []
    for push_level in range(1, NO_LEVEL + 1):
        selective, selective_pushes = served(push_level)
        for threshold in thresholds(int(followers.max(initial=0))):
            big = followers >= threshold
            pushes = np.where(big, selective_pushes, common_pushes)[graph.items > 0].max(initial=0)
            total = fixed + float(np.where(big, selective, common).sum())
            points.append(Point(threshold, push_level, int(big.sum()), total, float(_work(pushes, costs))))
    return points


def thresholds(most: int) -> Iterator[int]:
    """From 1 up to the first that is above `most`, which no sender reaches: that one is `NEVER`."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power > most:
                yield NEVER
                return
            yield factor * power
        power *= 10


def recommend(points: Sequence[Point], *, lag: float, push_level: int) -> Point:
    """The cheapest point of those that serve every item with at most `lag` seconds of a worker's time; where none does,
    of those with the least. Among equally cheap ones (`CLOSE`) the one with the fewest big-Vs, then the cheapest, then
    the one nearest to `push_level`.
    """
    allowed = [point for point in points if point.lag <= lag]
    if not allowed:
        least = min(point.lag for point in points)
        allowed = [point for point in points if point.lag == least]
    cheapest = min(point.total for point in allowed)
    close = [point for point in allowed if point.total <= cheapest * CLOSE]
    return min(close, key=lambda point: (point.big_vs, point.total, abs(point.push_level - push_level)))
