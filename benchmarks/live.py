"""How much does a page of the live feed cost, against a packed pipeline of ZREVRANGE over the same lineups?

In process: the first page as the reader waits for it (`live_page`), with the snapshot that is written after it (`and
keep`), a following page from the snapshot, and one among the replays. The limit: ZREVRANGE over the lineups of all whom
the reader follows and who have something scheduled, packed once and sent over the connection that the page uses, alone,
and with one prepared SELECT of twenty such rows. A peer asks the same by redis-py's pipeline.

Over HTTP: processor time of the worker (granian, one), of PostgreSQL and of Redis for a page, by their own clocks, and
what that makes of the seed's 15,000 first pages a second for readers of fewer than ten hosts.
"""

from collections.abc import Callable
from statistics import median

import redis
from django.conf import settings
from django.utils import timezone

from accounts.actions import issue_token
from accounts.models import User
from benchmarks.community import users
from benchmarks.hosts import Hosts
from benchmarks.http_page import COUNTED, PLAIN, Client, served
from benchmarks.measure import Report, interleaved, milliseconds, over, servers_time
from live.feed import live_page
from live.hydrate import COLUMNS, SESSIONS
from live.walk import Page
from storage import keys
from storage.connections import feeds, fetch, id_array, pipelined

LIMIT = 20
LIMITS = ("packed ZREVRANGE", "packed ZREVRANGE and one query")
PEAK = 15_000
"""First pages a second that the seed reports in production, for readers of fewer than ten hosts."""
FEED = f"/api/v1/live/feed?page_size={LIMIT}"
BY_IDS = f"SELECT {COLUMNS} FROM {SESSIONS} WHERE l.id = ANY(%(ids)s::bigint[])"  # noqa: S608 (constants)
FOLLOWED = """
    SELECT h.user_id FROM relations_follow f JOIN live_host h ON h.user_id = f.followee_id AND h.scheduled > 0
    WHERE f.follower_id = %s
"""


def run(hosts: Hosts) -> Report:
    """Run the benchmark, and return its report."""
    size = hosts.size
    report = Report(
        "live",
        __doc__.splitlines()[0],
        ["reader of", "call", "ms", "pages/s"],
        f"{size.live_rounds} rounds over {size.live_readers} readers of each kind, {size.http_rounds} blocks of "
        f"{size.http_requests} requests over HTTP; medians",
    )
    for count, reader_ids in hosts.readers.items():
        _process(report, count, users(reader_ids), size.live_rounds)
    _http(report, hosts)
    return report


def _process(report: Report, count: int, readers: list[User], rounds: int) -> None:
    raw = redis.Redis.from_url(settings.REDIS_URL)
    lineups = [[keys.lineup(row[0]) for row in fetch(FOLLOWED, [reader.pk])] for reader in readers]
    first = [live_page(reader, page_size=LIMIT, now=timezone.now()) for reader in readers]
    for page in first:
        page.keep()
    ids = [id_array(int(item.id) for item in page.items) for page in first]
    tops = [_seam(reader) for reader in readers]

    packed = [[_zrevrange(key) for key in keys] for keys in lineups]

    def limit(number: int) -> list[object]:
        return pipelined(feeds(), packed[number % len(packed)])

    def zrevrange(number: int) -> list[object]:
        pipeline = raw.pipeline(transaction=False)
        for key in lineups[number % len(lineups)]:
            pipeline.zrevrange(key, 0, -1, withscores=True)
        return list(pipeline.execute())

    def with_rows(number: int) -> object:
        limit(number)
        return fetch(BY_IDS, {"ids": ids[number % len(ids)], "reader": readers[number % len(readers)].pk})

    def page(number: int, **at: object) -> Page:
        found = live_page(readers[number % len(readers)], page_size=LIMIT, now=timezone.now(), **at)  # type: ignore[arg-type]
        assert len(found.items) == LIMIT
        assert "sql" not in found.sources
        return found

    def following(number: int) -> Page:
        begun = first[number % len(first)]
        return page(number, session_id=begun.session_id, last_id=begun.last_id)

    cases: dict[str, Callable[[int], object]] = {
        LIMITS[0]: limit,
        LIMITS[1]: with_rows,
        "redis-py ZREVRANGE": zrevrange,
        "first page": page,
        "first page and keep": lambda number: page(number).keep(),
        "following page": following,
        "page of replays": lambda number: page(number, last_id=tops[number % len(tops)]),
    }
    times = interleaved(cases, rounds=rounds, warm_up=2 * len(readers))
    for name in cases:
        spent = milliseconds(times[name])
        report.rows.append([f"{count} hosts", name, round(spent, 3), round(1000 / spent)])
    for name in (*LIMITS, "redis-py ZREVRANGE"):
        report.ratio(f"first page / {name}, {count} hosts", over(times, "first page", name))
    report.ratio(f"following / first page, {count} hosts", over(times, "following page", "first page"))
    raw.close()


def _zrevrange(key: str) -> bytes:
    """The whole lineup with its scores, as RESP."""
    name = key.encode()
    head = b"*5\r\n$9\r\nZREVRANGE\r\n$%d\r\n%b\r\n" % (len(name), name)
    return head + b"$1\r\n0\r\n$2\r\n-1\r\n$10\r\nWITHSCORES\r\n"


def _seam(reader: User) -> int:
    """The position at which the reader's second page of replays begins."""
    page = live_page(reader, last_id=2**53 - 1, page_size=LIMIT, now=timezone.now())
    assert page.last_id
    return page.last_id


def _http(report: Report, hosts: Hosts) -> None:
    size = hosts.size
    readers = {count: users(ids)[0] for count, ids in hosts.readers.items()}
    tokens = {count: issue_token(user=reader) for count, reader in readers.items()}
    some = next(iter(tokens.values()))
    requests = {PLAIN: ("/bench/constant", some), COUNTED: ("/bench/counted", some)}
    for count, reader in readers.items():
        begun = live_page(reader, page_size=LIMIT, now=timezone.now())
        begun.keep()
        requests[f"first page, {count} hosts"] = (FEED, tokens[count])
        following = f"{FEED}&session_id={begun.session_id}&last_id={begun.last_id}"
        requests[f"following page, {count} hosts"] = (following, tokens[count])
    spent: dict[str, list[tuple[float, float, float]]] = {name: [] for name in requests}
    with served() as port:
        client = Client(port)
        for number in range(1 + size.http_rounds):
            names = list(requests)
            first = number % len(names)
            for name in names[first:] + names[:first]:
                before = (client.processor_time(), *servers_time())
                for _ in range(size.http_requests):
                    client.ask(*requests[name])
                after = (client.processor_time(), *servers_time())
                if number:
                    worker, truth, feeds = (
                        (late - early) / size.http_requests for late, early in zip(after, before, strict=True)
                    )
                    spent[name].append((worker, truth, feeds))
    middle = {name: [median(times) for times in zip(*spent[name], strict=True)] for name in requests}
    for name, (worker, truth, feeds) in middle.items():
        total = worker + truth + feeds
        report.rows.append(["over HTTP", f"{name}: CPU of the worker", round(worker * 1000, 3), round(1 / worker)])
        report.rows.append(["over HTTP", f"{name}: CPU of all", round(total * 1000, 3), round(1 / total)])
    for name in list(requests)[2:]:
        report.ratio(f"{name} / plain constant (CPU of the worker)", middle[name][0] / middle[PLAIN][0])
    fewest = min(readers)
    worker, truth, feeds = middle[f"first page, {fewest} hosts"]
    report.notes.append(
        f"{PEAK:,} first pages a second for readers of {fewest} hosts: {PEAK * worker:.0f} cores of workers, "
        f"{PEAK * truth:.0f} of PostgreSQL, {PEAK * feeds:.1f} of Redis, by the processor time of this run."
    )
