"""docs/scaling.md's tables: the units that benchmarks measured, and what follows from them for sites of several sizes.

`bench --page docs/benchmarks.md` renews them with the figures, from what lies beside that page. Everything here is
arithmetic over `Units`; what it takes for granted is in `Assumed`, and the page says it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import Report
from benchmarks.report import put, table

DAY = 86_400


@dataclass(frozen=True)
class Assumed:
    """Assumptions about users, a day and machines."""

    pages: float = 5
    """Pages of home that a user opens a day."""
    peak: float = 3
    """The busiest hour over the average."""
    pages_an_item: float = 100
    likes_an_item: float = 5
    discover: float = 2
    """Refreshes of the recommended feed; each is followed by as many further pages."""
    searches: float = 0.2
    plays: float = 30
    connected: float = 0.05
    """The share of the users with a stream open in the busiest hour."""
    events: float = 1 / 60
    """Events that an open stream is told of, a second."""
    active: float = 0.3
    """The share of the users who have an inbox in use."""
    busy: float = 0.5
    """The share of a core that may be busy."""
    years: float = 1
    cap: int = 450
    """Entries of an inbox, few enough that the server packs them (FEEDSITE_LEVEL_3_CAP)."""


@dataclass(frozen=True)
class Site:
    """A site in numbers, to calculate its size from."""

    name: str
    users: float
    followers: float
    """Followers of an item's sender, on average over items."""
    items: float | None = None
    """A second in the busiest hour, where it is known."""
    largest: float = 0
    """Followers of the user whom most follow."""

    def pages(self, of: Assumed) -> float:
        """A second, in the busiest hour."""
        return self.users * of.pages / DAY * of.peak

    def published(self, of: Assumed) -> float:
        """Items a second, in the busiest hour."""
        return self.items if self.items is not None else self.pages(of) / of.pages_an_item


SITES = (
    Site("1 M", 1e6, 499),
    Site("50 M", 50e6, 499),
    Site("500 M", 500e6, 499),
    Site("100 M, 3,500 items/s", 100e6, 403, 3_500, 22e6),
)


class Units:
    """The measured units, in seconds and bytes, found by the name of a benchmark and its row."""

    def __init__(self, reports: Mapping[str, Report]) -> None:
        self._reports = reports
        home = "home, 200 followees"
        self.page_worker = self._of("http_page", home, "CPU ms") / 1e3
        self.page_servers = self._of("http_page", home, "CPU of all, ms") / 1e3 - self.page_worker
        self.publish = self._act("publish")
        self.delivery = self._act("a delivery, of")
        self.like = self._act("like")
        self.build = self._act("build an inbox")
        self.page_below = self._act("a page of home below")
        self.notifications = self._act("a page of notifications") + self.pages_of_badge * self._act("the unread badge")
        self.search = self._act("a page of search")
        self.discover_page = self._of("discover", "load_more over HTTP (CPU)", "ms") / 1e3
        self.refresh = self._of("discover", "refresh (recall)", "ms") / 1e3
        self.stream_bytes = self._of("streams", "stream process", "KB a stream") * 1e3
        self.stream_event = self._of("streams", "stream process", "CPU us a stream and event") / 1e6
        self.play, self.play_in_batch = (
            ratio.value / 1e6 for ratio in reports["played"].ratios if ratio.name.endswith("CPU of all, µs a play")
        )
        memory = reports["memory"]
        inboxes = [dict(zip(memory.columns, row, strict=True)) for row in memory.rows]
        self.entry = [float(inbox["bytes an entry"]) for inbox in inboxes if inbox["encoding"] == "listpack"][-1]
        self.task = self._bytes("a task that waits")
        self.impression = self._bytes("an impression of a day")
        self.rows = {name: self._bytes(name) for name in ("user", "follow", "item (", "item's words", "like", "act")}

    pages_of_badge = 5
    """Times that the badge is asked for, to one look at the list."""

    def _of(self, name: str, row: str, column: str) -> float:
        report = self._reports[name]
        place = list(report.columns).index(column)
        found = (cells[place] for cells in report.rows if str(cells[0]).startswith(row))
        return float(next(cell for cell in found if cell != ""))

    def _act(self, row: str) -> float:
        return self._of("costs", row, "CPU of all, ms") / 1e3

    def _bytes(self, row: str) -> float:
        return self._of("costs", row, "bytes")

    @property
    def item_bytes(self) -> float:
        """An item with its words, likes and what tells of these."""
        each = self.rows["like"] + self.rows["act"]
        return self.rows["item ("] + self.rows["item's words"] + Assumed.likes_an_item * each

    def told(self) -> list[list[Any]]:
        """Unit, value, and the benchmark that it is from."""
        return [
            ["a page of home over HTTP: the worker", _ms(self.page_worker), "`http_page`, 200 followees"],
            ["the same: PostgreSQL, Redis and workers", _ms(self.page_servers), "`http_page`"],
            ["a page of home from PostgreSQL, below the inbox", _ms(self.page_below), "`costs`"],
            ["publishing an item, without its deliveries", _ms(self.publish), "`costs`"],
            ["a delivery", f"{self.delivery * 1e6:.1f} µs", "`costs`, whole fan-outs"],
            ["a like, with what tells of it", _ms(self.like), "`costs`"],
            ["building an inbox of level 3", _ms(self.build), "`costs`"],
            ["a look at the notifications, with the badge five times", _ms(self.notifications), "`costs`"],
            ["a page of search", _ms(self.search), "`costs`"],
            ["a refresh of Discover, as waited for", _ms(self.refresh), "`discover`"],
            ["a further page of Discover over HTTP: the worker", _ms(self.discover_page), "`discover`"],
            [
                "an open stream; an event to one",
                f"{self.stream_bytes / 1e3:.1f} kB; {self.stream_event * 1e6:.0f} µs",
                "`streams`",
            ],
            ["a play reported over HTTP, 8 of one user in a request", f"{self.play * 1e6:.0f} µs", "`played`"],
            ["the same, 8 of each of 100 users in a batch", f"{self.play_in_batch * 1e6:.1f} µs", "`played`"],
            ["an entry of an inbox, packed", f"{self.entry:g} bytes", "`memory`"],
            ["an impression, for each day that it is kept", f"{self.impression:g} bytes", "`costs`"],
            ["a task that waits in the broker", f"{self.task:,.0f} bytes", "`costs`"],
            *(
                [f"a row: {name.strip(' (')}", f"{size:,.0f} bytes", "`costs`, indexes included"]
                for name, size in self.rows.items()
            ),
        ]


def renew(page: Path, reports: Mapping[str, Report]) -> None:
    """Put the tables between their marks in the page, if there is one, which stays as it is without figures to make
    them of.
    """
    if not page.exists():
        return
    text = page.read_text()
    for name, part in parts(reports).items():
        text = put(text, name, part)
    page.write_text(text)


def parts(reports: Mapping[str, Report]) -> dict[str, str]:
    """The page's parts by name; none where what they are made of was not measured."""
    try:
        units = Units(reports)
    except (KeyError, StopIteration, ValueError):
        return {}
    of = Assumed()
    rows = [[name, *(shown(work(site)) for site in SITES), how] for name, how, work, shown in lines(units, of)]
    return {
        "units": table(["unit", "measured", "by"], units.told()),
        "sites": table(["in the busiest hour", *(site.name for site in SITES), "how"], rows),
    }


Line = tuple[str, str, Callable[[Site], float], Callable[[float], str]]


def lines(u: Units, of: Assumed) -> list[Line]:
    """The needs of a site of a given size: name, how it is reckoned, the figure, and how it is written."""

    def a_second(a_day: float) -> Callable[[Site], float]:
        return lambda site: site.users * a_day / DAY * of.peak

    def deliveries(site: Site) -> float:
        return site.published(of) * site.followers

    def cores(site: Site) -> float:
        return (
            site.pages(of) * (u.page_worker + u.page_servers)
            + site.published(of) * (u.publish + of.likes_an_item * u.like)
            + deliveries(site) * u.delivery
            + a_second(of.discover)(site) * (u.refresh + u.discover_page)
            + a_second(of.searches)(site) * u.search
            + a_second(1)(site) * u.notifications
            + a_second(of.plays)(site) * u.play_in_batch
            + site.users * of.connected * of.events * u.stream_event
        )

    def inboxes(site: Site) -> float:
        return site.users * of.active * of.cap * u.entry

    def items_a_year(site: Site) -> float:
        return site.published(of) / of.peak * DAY * 365 * of.years

    return [
        ("pages of home/s", "users x 5 ÷ 86,400 x 3", lambda s: s.pages(of), _count),
        ("cores: workers for them", "x the worker's time", lambda s: s.pages(of) * u.page_worker, _count),
        ("cores: PostgreSQL and Redis for them", "x the servers' time", lambda s: s.pages(of) * u.page_servers, _count),
        ("items/s", "pages ÷ 100, or as given", lambda s: s.published(of), _count),
        (
            "cores: items and their likes",
            "x (publishing + 5 likes)",
            lambda s: s.published(of) * (u.publish + of.likes_an_item * u.like),
            _count,
        ),
        ("deliveries/s", "x 499, or 403", deliveries, _count),
        ("cores: deliveries", "x a delivery", lambda s: deliveries(s) * u.delivery, _count),
        (
            "an item of the largest, on one core",
            "its followers x a delivery; ranges share it among workers",
            lambda s: s.largest * u.delivery,
            lambda seconds: f"{seconds:,.0f} s" if seconds else "-",
        ),
        (
            "cores: Discover",
            "2 refreshes and 2 pages a user and day",
            lambda s: a_second(of.discover)(s) * (u.refresh + u.discover_page),
            _count,
        ),
        ("cores: search", "0.2 a user and day", lambda s: a_second(of.searches)(s) * u.search, _count),
        ("cores: notifications", "a look a user and day", lambda s: a_second(1)(s) * u.notifications, _count),
        ("streams open; memory", "5 % of the users", lambda s: s.users * of.connected * u.stream_bytes, _bytes),
        (
            "cores: streams",
            "an event a minute each",
            lambda s: s.users * of.connected * of.events * u.stream_event,
            _count,
        ),
        ("plays/s", "30 a user and day, x 3", a_second(of.plays), _count),
        (
            "cores: plays, each user's in requests of their own",
            "x a play",
            lambda s: a_second(of.plays)(s) * u.play,
            _count,
        ),
        (
            "cores: plays, in batches of 100 users",
            "x a play",
            lambda s: a_second(of.plays)(s) * u.play_in_batch,
            _count,
        ),
        ("**cores in all, half busy**", "the sum ÷ 0.5", lambda s: cores(s) / of.busy, _count),
        ("inboxes in Redis, with a replica", "30 % of the users x 450 entries x 2", lambda s: 2 * inboxes(s), _bytes),
        (
            "impressions in Redis, with a replica",
            "40 a visit of Discover x 7 days x 2",
            lambda s: s.users * of.discover * 40 * 7 * 2 * u.impression,
            _bytes,
        ),
        (
            "PostgreSQL: users and follows",
            "a user, and 11 follows each",
            lambda s: s.users * (u.rows["user"] + 11 * u.rows["follow"]),
            _bytes,
        ),
        (
            "PostgreSQL: items of a year",
            "with words, 5 likes and their acts",
            lambda s: items_a_year(s) * u.item_bytes,
            _bytes,
        ),
        (
            "PostgreSQL: connections",
            "a thread of a worker each; PgBouncer before it",
            lambda s: math.ceil(s.pages(of) * u.page_worker / of.busy) * 2,
            _count,
        ),
        (
            "broker: messages/s",
            "one an item, and one a 20,000 followers",
            lambda s: s.published(of) * (1 + s.followers / 20_000),
            _count,
        ),
        ("broker: ten minutes' backlog", "x 600 x a task", lambda s: s.published(of) * 600 * u.task, _bytes),
        (
            "all inboxes lost: core-hours to build them",
            "30 % of the users x building one",
            lambda s: s.users * of.active * u.build / 3600,
            _count,
        ),
        (
            "all inboxes lost: cores, pages from PostgreSQL meanwhile",
            "pages x a page below the inbox",
            lambda s: s.pages(of) * u.page_below,
            _count,
        ),
    ]


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def _count(number: float) -> str:
    if number >= 1e6:
        return f"{number / 1e6:,.3g} M"
    return f"{number:,.0f}" if number >= 100 else f"{number:.2g}"


def _bytes(number: float) -> str:
    for unit, size in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:,.0f} bytes"
