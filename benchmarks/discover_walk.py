"""Does the recommended feed repeat itself, what does it lose, and how long does a recall take, on real data?

Readers who follow somebody read 50 pages of 20 each, spread over the last 8 days of the data set as it happens: each
day one refresh, then `load_more`; after each day the impressions are recorded, and the issued pages of the day before
are forgotten, so that only the Bloom filters know the week. These are made for as many impressions as a day brings:
they are full when the day ends, and do not expire, because the days are long past. Kept beside it: exactly what every
reader was shown and when.
"""

import random
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import date, datetime, timedelta
from statistics import median
from typing import Any
from unittest.mock import patch

from django.conf import settings

from accounts.models import User
from benchmarks.measure import Report
from benchmarks.real import RealData
from discover import candidates, feed, recallers, refreshing
from discover import impressions as seen
from discover import issued_pages as impressions
from discover.candidates import Clean
from storage import ids
from storage.connections import feeds_for_tasks, fetch

DAYS = 8
PAGES = 50
LIMIT = 20
RECALL_TARGET_MS = 50


class Watched:
    """A watch on the calls: each recall's time, each refresh's yield, each wrong answer of the filters."""

    def __init__(self) -> None:
        self.shown: defaultdict[int, dict[int, date]] = defaultdict(dict)
        self.recalls: list[float] = []
        self.left: list[int] = []
        self.fresh = self.lost = 0
        self._stack = ExitStack()
        self._recall, self._clean, self._ask = recallers.postgres.candidates, feed.clean, seen.shown

    def __enter__(self) -> "Watched":
        for where, name, by in (
            (recallers.postgres, "candidates", self._timed_recall),
            (feed, "clean", self._counted_clean),
            (candidates.impressions, "shown", self._compared_shown),
            (seen, "_end", lambda day: int(time.time()) + 86_400),
        ):
            self._stack.enter_context(patch.object(where, name, by))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _timed_recall(self, *args: Any, **options: Any) -> Any:
        begin = time.perf_counter()
        found = self._recall(*args, **options)
        self.recalls.append((time.perf_counter() - begin) * 1000)
        return found

    def _counted_clean(self, *args: Any, **options: Any) -> Clean:
        found = self._clean(*args, **options)
        self.left.append(len(found.candidates))
        return found

    def _compared_shown(self, user_id: int, item_ids: Sequence[int], *, today: date) -> set[int]:
        """Ask the filters; all that they claim and the last week's exact record does not have is lost."""
        claimed = self._ask(user_id, item_ids, today=today)
        known = self.shown[user_id]
        fresh = [one for one in item_ids if one not in known or (today - known[one]).days >= seen.DAYS]
        self.fresh += len(fresh)
        self.lost += len(claimed.intersection(fresh))
        return claimed


def run(data: RealData) -> Report:
    """Run the benchmark, and return its report."""
    size = data.size
    readers = _readers(size.walkers)
    pages = min(PAGES, size.walked_pages)
    end = ids.moment(fetch("SELECT max(id) FROM items_item")[0][0]) + timedelta(seconds=1)
    per_day = [pages // DAYS + (number < pages % DAYS) for number in range(DAYS)]
    capacity = len(readers) * max(per_day) * LIMIT
    report = Report(
        "discover_walk",
        __doc__.splitlines()[0],
        ["figure", "value"],
        f"{len(readers)} readers, {pages} pages of {LIMIT} each over {DAYS} days; one filter a "
        f"day, for {capacity:,} impressions, error rate {settings.IMPRESSION_ERROR_RATE:g}",
    )
    feeds_for_tasks().flushall()
    repeats = served = empty = 0
    with (
        patch.object(settings, "IMPRESSION_SHARDS", 1),
        patch.object(settings, "IMPRESSION_CAPACITY", capacity),
        Watched() as watched,
    ):
        for day in range(DAYS):
            now = end - timedelta(days=DAYS - 1 - day)
            refreshing.refresh_popular(now=now)
            for reader in readers:
                for number in range(per_day[day]):
                    call = feed.load_more if number else feed.refresh
                    page = call(reader, limit=LIMIT, now=now)
                    empty += not page.items
                    served += len(page.items)
                    repeats += _note(watched, reader, page.items, now)
            impressions.record_issued_pages()
            impressions.forget_issued_pages(now=now + timedelta(days=2))
        full = [one.impressions / one.capacity for one in seen.fill(now.date())]
    ordered = sorted(watched.recalls)
    p50, p99 = median(ordered), ordered[int(len(ordered) * 0.99)]
    figures: list[tuple[str, float | str]] = [
        ("items shown", served),
        ("empty pages", empty),
        ("repeats within 7 calendar days", repeats),
        ("fresh candidates asked about", watched.fresh),
        ("of them taken for seen", f"{watched.lost / max(watched.fresh, 1):.4%}"),
        ("filter of the last day filled to", f"{sum(full):.0%}"),
        ("items left of a refresh, median", median(watched.left)),
        ("items left of a refresh, fewest", min(watched.left)),
        ("recalls", len(ordered)),
        ("recall p50, ms", round(p50, 1)),
        ("recall p99, ms", round(p99, 1)),
    ]
    report.rows += figures
    report.ratio("repeats within 7 calendar days, of items shown", repeats / max(served, 1), at_most=0)
    allowed = 1 - (1 - settings.IMPRESSION_ERROR_RATE) ** seen.DAYS
    lost = watched.lost / max(watched.fresh, 1) / allowed
    report.ratio("fresh items lost / what seven full filters may lose", lost, at_most=1.1)
    report.ratio(f"recall p50 / {RECALL_TARGET_MS} ms", p50 / RECALL_TARGET_MS, at_most=1)
    report.ratio(f"recall p99 / {RECALL_TARGET_MS} ms", p99 / RECALL_TARGET_MS)
    return report


def _note(watched: Watched, reader: User, items: Sequence[Any], now: datetime) -> int:
    """Write down what was shown; how much of it was shown within the seven days that end today."""
    known, today = watched.shown[reader.pk], now.date()
    repeats = 0
    for item in items:
        item_id = int(item.id)
        repeats += item_id in known and (today - known[item_id]).days < seen.DAYS
        known[item_id] = today
    return repeats


def _readers(count: int) -> list[User]:
    """`count` readers who follow somebody, drawn by a seed."""
    followers = [row[0] for row in fetch("SELECT DISTINCT follower_id FROM relations_follow ORDER BY 1")]
    chosen = random.Random(7).sample(followers, min(count, len(followers)))  # noqa: S311 (a sample, no secret)
    return list(User.objects.filter(pk__in=chosen).order_by("pk"))
