"""What does a page of the live feed cost, against a packed pipeline of ZREVRANGE over the same lineups?

In process: the first page (`live_page`), with the snapshot written after it (`and keep`), a following page, and one of
replays. The limit: ZREVRANGE over the lineups of all followed hosts, packed once, alone and with one prepared SELECT of
twenty rows. A peer uses redis-py's pipeline.

Over HTTP: processor time per page, extrapolated to 15,000 first pages a second.
"""

import secrets
from pathlib import Path

import redis
from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts.models import User
from benchmarks.community import USERS, by_token, users
from benchmarks.http_page import PLAIN, constants
from benchmarks.measure import (
    BenchmarkReport,
    Case,
    MeasuredRequest,
    Size,
    interleaved,
    milliseconds,
    over,
    over_http,
    served,
)
from live import lineup
from live.feed import live_page
from live.hydrate import COLUMNS, SESSIONS
from live.replays import Replays, materialise
from live.walk import LivePage
from storage import keys
from storage.connections import feeds, feeds_for_tasks, fetch, id_array, pipelined

LIMIT = 20
LIMITS = ("packed ZREVRANGE", "packed ZREVRANGE and one query")
PEAK = 15_000
"""First pages a second in an article on timelines, for readers of fewer than ten hosts."""
FEED = f"/api/v1/live/feed?page_size={LIMIT}"
FIRST_HOST = 3_000_001
FIRST_READER = 3_500_001
BY_IDS = f"SELECT {COLUMNS} FROM {SESSIONS} WHERE l.id = ANY(%(ids)s::bigint[])"
FOLLOWED = """
    SELECT h.user_id FROM relations_follow f JOIN live_host h ON h.user_id = f.followee_id AND h.scheduled > 0
    WHERE f.follower_id = %s
"""
# Each tenth host is live, each second has something planned. All others are replays of the last weeks.
MADE = """
    WITH made AS (
        SELECT host, n, CASE WHEN n = 1 AND host %% 10 = 0 THEN 'live' WHEN n = 2 AND host %% 2 = 0 THEN 'upcoming'
            ELSE 'replay' END AS state, row_number() OVER (ORDER BY hashint8extended(host, n)) AS place
        FROM generate_series(%(first)s::bigint, %(first)s + %(hosts)s - 1) AS host, generate_series(1, %(each)s) AS n
    ), timed AS (
        SELECT *, date_trunc('milliseconds', now()) - (place + 60) * interval '20 seconds' AS moment FROM made
    )
    INSERT INTO live_livesession (id, host_id, title, url, cover_url, state, version, starts_at, started_at, ended_at,
        position, automatic, minutes, pulled, modified_at)
    SELECT pg_temp.bench_id(moment - interval '2 hours', place), host, 'Session ' || place,
        'https://example.com/watch/' || place, 'https://example.com/cover/' || place, state, 3,
        CASE WHEN state = 'upcoming' THEN now() + place * interval '1 minute' ELSE moment - interval '1 hour' END,
        CASE WHEN state <> 'upcoming' THEN moment - interval '1 hour' END, CASE WHEN state = 'replay' THEN moment END,
        CASE WHEN state = 'replay' THEN pg_temp.bench_id(moment, place) END, false, 60, false, now()
    FROM timed
"""
ID = """
    CREATE FUNCTION pg_temp.bench_id(moment timestamptz, place bigint) RETURNS bigint LANGUAGE sql AS $$
        SELECT (floor(extract(epoch FROM moment - '2000-01-01T00:00:00Z'::timestamptz) * 1000)::bigint << 12)
            | (place & 4095)
    $$
"""
HOSTS = """
    INSERT INTO live_host (user_id, applied, scheduled)
    SELECT host_id, 0, count(*) FILTER (WHERE state <> 'replay') FROM live_livesession GROUP BY host_id
"""
FOLLOW = """
    INSERT INTO relations_follow (follower_id, followee_id, created_at)
    SELECT reader, chosen.id, now() FROM unnest(%(readers)s::bigint[]) AS reader CROSS JOIN LATERAL (
        SELECT id FROM generate_series(%(first)s::bigint, %(first)s + %(hosts)s - 1) AS id
        ORDER BY hashint8extended(id, reader) LIMIT %(count)s
    ) chosen
"""


class Hosts:
    """Hosts with sessions, and their followers. `readers` by number of followed hosts."""

    def __init__(self, size: Size, folder: Path | None = None) -> None:
        self.size = size
        free = iter(range(FIRST_READER, FIRST_READER + 100_000))
        self.readers = {count: [next(free) for _ in range(size.readers)] for count in size.live_followed}

    def build(self) -> None:
        """Generate everything, with lineups and inboxes of replays."""
        size, people = self.size, [reader for group in self.readers.values() for reader in group]
        params = {"first": FIRST_HOST, "hosts": size.live_hosts, "each": size.live_sessions}
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
            for first, count in ((FIRST_HOST, size.live_hosts), (FIRST_READER, len(people))):
                cursor.execute(USERS, {"first": first, "count": count, "level": 3, "big_vs": 0})
            cursor.execute(ID)
            cursor.execute(MADE, params)
            cursor.execute(HOSTS)
            for count, readers in self.readers.items():
                cursor.execute(FOLLOW, params | {"readers": readers, "count": count})
            cursor.execute("RESET session_replication_role")
            for table in ("accounts_user", "relations_follow", "live_livesession", "live_host"):
                cursor.execute(f"VACUUM ANALYZE {table}")
        for host in range(FIRST_HOST, FIRST_HOST + size.live_hosts):
            assert lineup.apply(host)
        for reader in people:
            token = secrets.token_hex(8)
            pipelined(feeds_for_tasks(), [Replays(reader).drop(), Replays(reader).begin(token, 1)])
            assert materialise(reader, token), reader

    def described(self) -> str:
        """The data set in a line."""
        counts = dict(fetch("SELECT state, count(*) FROM live_livesession GROUP BY state"))
        return (
            f"{self.size.live_hosts:,} hosts, {counts['live']:,} sessions live, {counts['upcoming']:,} upcoming, "
            f"{counts['replay']:,} replays"
        )


def run(hosts: Hosts) -> BenchmarkReport:
    size = hosts.size
    report = BenchmarkReport(
        "live",
        __doc__.splitlines()[0],
        ["ms", *(f"{count:,} hosts" for count in hosts.readers)],
        f"{size.live_rounds} rounds over {size.readers} readers of each kind, {size.http_rounds} blocks of "
        f"{size.http_requests} requests over HTTP; medians",
    )
    found = [_process(report, count, users(ids), size.live_rounds) for count, ids in hosts.readers.items()]
    report.rows = [[name, *(round(spent[name], 3) for spent in found)] for name in found[0]]
    _http(report, hosts)
    return report


def _process(report: BenchmarkReport, count: int, readers: list[User], rounds: int) -> dict[str, float]:
    """Measure in this process, and add the ratios. Returns each call's ms."""
    raw = redis.Redis.from_url(settings.REDIS_URL)
    lineups = [[keys.lineup(row[0]) for row in fetch(FOLLOWED, [reader.pk])] for reader in readers]
    first = [live_page(reader, page_size=LIMIT, now=timezone.now()) for reader in readers]
    for page in first:
        page.store()
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

    def page(number: int, **at: object) -> LivePage:
        found = live_page(readers[number % len(readers)], page_size=LIMIT, now=timezone.now(), **at)  # type: ignore[arg-type]
        assert len(found.items) == LIMIT
        assert "sql" not in found.sources
        return found

    def following(number: int) -> LivePage:
        begun = first[number % len(first)]
        return page(number, session_id=begun.session_id, last_id=begun.last_id)

    cases: dict[str, Case] = {
        LIMITS[0]: limit,
        LIMITS[1]: with_rows,
        "redis-py ZREVRANGE": zrevrange,
        "first page": page,
        "first page and keep": lambda number: page(number).store(),
        "following page": following,
        "page of replays": lambda number: page(number, last_id=tops[number % len(tops)]),
    }
    times = interleaved(cases, rounds=rounds, warm_up=2 * len(readers))
    for name in (*LIMITS, "redis-py ZREVRANGE"):
        report.ratio(f"first page / {name}, {count} hosts", over(times, "first page", name))
    report.ratio(f"following / first page, {count} hosts", over(times, "following page", "first page"))
    raw.close()
    return {name: milliseconds(times[name]) for name in cases}


def _zrevrange(key: str) -> bytes:
    """A ZREVRANGE of a whole key with scores, as RESP."""
    name = key.encode()
    head = b"*5\r\n$9\r\nZREVRANGE\r\n$%d\r\n%b\r\n" % (len(name), name)
    return head + b"$1\r\n0\r\n$2\r\n-1\r\n$10\r\nWITHSCORES\r\n"


def _seam(reader: User) -> int:
    """The id where the reader's second page of replays begins."""
    page = live_page(reader, last_id=2**53 - 1, page_size=LIMIT, now=timezone.now())
    assert page.last_id
    return page.last_id


def _http(report: BenchmarkReport, hosts: Hosts) -> None:
    size = hosts.size
    readers = {count: users(ids)[0] for count, ids in hosts.readers.items()}
    requests = constants(next(iter(readers.values())))
    for count, reader in readers.items():
        begun = live_page(reader, page_size=LIMIT, now=timezone.now())
        begun.store()
        headers = by_token(reader)
        requests[f"first page, {count} hosts"] = [MeasuredRequest(FEED, headers)]
        following = f"{FEED}&session_id={begun.session_id}&last_id={begun.last_id}"
        requests[f"following page, {count} hosts"] = [MeasuredRequest(following, headers)]
    with served() as port:
        found = over_http(port, requests, rounds=size.http_rounds, each=size.http_requests)
    for name in ("first page", "following page"):
        blocks = [found[f"{name}, {count} hosts"] for count in readers]
        report.rows.append([f"{name} over HTTP, CPU of the worker", *(round(one.worker * 1000, 3) for one in blocks)])
        report.rows.append([f"{name} over HTTP, CPU of all", *(round(one.total * 1000, 3) for one in blocks)])
    plain = found[PLAIN]
    report.notes.append(
        f"A plain constant over HTTP: CPU of the worker {plain.worker * 1000:.3f} ms, of all {plain.total * 1000:.3f}."
    )
    for name in list(requests)[2:]:
        report.ratio(f"{name} / plain constant (CPU of the worker)", found[name].worker / found[PLAIN].worker)
    fewest = min(readers)
    first = found[f"first page, {fewest} hosts"]
    _, truth, feeds_time, _ = first.parts
    report.notes.append(
        f"{PEAK:,} first pages a second for readers of {fewest} hosts: {PEAK * first.worker:.0f} cores of workers, "
        f"{PEAK * truth:.0f} of PostgreSQL, {PEAK * feeds_time:.1f} of Redis, by the processor time of this run."
    )
