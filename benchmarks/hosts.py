"""The community of the benchmark of live sessions: hosts with many sessions, readers who follow few, many or all."""

import secrets
import time

from django.db import connection

from benchmarks.community import USERS
from benchmarks.ground import Size
from live import lineup
from live.replays import Replays, materialise
from storage.connections import feeds_for_tasks, fetch, pipelined

FIRST_HOST = 3_000_001
FIRST_READER = 3_500_001

# Of every host: each tenth is live, each second has something planned; all the rest are replays of the last weeks.
SESSIONS = """
    WITH made AS (
        SELECT host, n, CASE WHEN n = 1 AND host %% 10 = 0 THEN 'live' WHEN n = 2 AND host %% 2 = 0 THEN 'upcoming'
            ELSE 'replay' END AS state, row_number() OVER (ORDER BY hashint8extended(host, n)) AS place
        FROM generate_series(%(first)s::bigint, %(first)s + %(hosts)s - 1) AS host, generate_series(1, %(each)s) AS n
    ), timed AS (
        SELECT *, date_trunc('milliseconds', now()) - (place + 60) * interval '20 seconds' AS moment FROM made
    )
    INSERT INTO live_livesession (id, host_id, title, url, cover_url, state, version, starts_at, started_at, ended_at,
        position, automatic, minutes, pulled, modified_at)
    SELECT feedsite_bench_id(moment - interval '2 hours', place), host, 'Session ' || place,
        'https://example.com/watch/' || place, 'https://example.com/cover/' || place, state, 3,
        CASE WHEN state = 'upcoming' THEN now() + place * interval '1 minute' ELSE moment - interval '1 hour' END,
        CASE WHEN state <> 'upcoming' THEN moment - interval '1 hour' END, CASE WHEN state = 'replay' THEN moment END,
        CASE WHEN state = 'replay' THEN feedsite_bench_id(moment, place) END, false, 60, false, now()
    FROM timed
"""
ID = """
    CREATE FUNCTION pg_temp.feedsite_bench_id(moment timestamptz, place bigint) RETURNS bigint LANGUAGE sql AS $$
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
    """The data set; `readers` by the number of hosts whom they follow."""

    def __init__(self, size: Size) -> None:
        self.size = size
        free = iter(range(FIRST_READER, FIRST_READER + 100_000))
        self.readers = {count: [next(free) for _ in range(size.live_readers)] for count in size.live_followed}
        self.seconds = 0.0

    def build(self) -> None:
        """Generate everything; write the lineups and the inboxes of replays."""
        begin = time.perf_counter()
        size, people = self.size, [reader for group in self.readers.values() for reader in group]
        params = {"first": FIRST_HOST, "hosts": size.live_hosts, "each": size.live_sessions}
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
            for first, count in ((FIRST_HOST, size.live_hosts), (FIRST_READER, len(people))):
                cursor.execute(USERS, {"first": first, "count": count, "level": 3, "big_vs": 0})
            cursor.execute(ID)
            cursor.execute(SESSIONS.replace("feedsite_bench_id", "pg_temp.feedsite_bench_id"), params)
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
        self.seconds = time.perf_counter() - begin

    def described(self) -> str:
        """The data set in a line."""
        counts = dict(fetch("SELECT state, count(*) FROM live_livesession GROUP BY state"))
        return (
            f"{self.size.live_hosts:,} hosts, {counts['live']:,} sessions live, {counts['upcoming']:,} upcoming, "
            f"{counts['replay']:,} replays; generated in {self.seconds:.0f} s"
        )
