"""The cost of a page of home and its growth with the number of followees, against the shortest way to the same rows.

Measured: `home_page` (ids, verified and hydrated: what the API shows), and its ids alone. Peers: redis-py's reading
of 20 ids and one prepared SELECT of the same columns; the best plain-SQL pull (LATERAL top-k per followee, ids first,
then the same columns). Hybrid readers (level 2, 200 followees besides) pull the outboxes of so many big-Vs; their peer
reads the same outboxes by a redis-py pipeline and merges. More outboxes than a pull would cost are pulled, so the pull
is what that page is held to; so is the page of a reader to whom the policy gives no inbox. A returning reader, whose
level is still low, is held to one of level 3. Every round takes the next reader of a kind, the same for all.
"""

from collections.abc import Callable, Mapping, Sequence
from heapq import nlargest

import psycopg
import redis
from django.conf import settings
from django.db import connection

from accounts import policy
from accounts.models import User
from benchmarks.community import FOLLOWEES_OF_HYBRIDS, Community, materialise_inbox, users
from benchmarks.measure import Report, Times, interleaved, milliseconds, over
from items.hydrate import COLUMNS, ITEMS, ORIGINALS
from storage.connections import feeds, pipelined
from storage.window import INFINITY, Window
from timeline.home import SLACK, home_page
from timeline.inbox import Inbox
from timeline.outbox import Outbox

LIMIT = 20
TARGET = 1.3
PULLED = 1.15
"""How much a page that is pulled may cost more than the pull alone."""
MANY_OUTBOXES = 100
"""Outboxes from which on a reader's page is pulled."""
INBOX_FROM = 50
"""Followees below which a reader's page is pulled, where inboxes begin at so many."""
RETURNED = 1.3
FLAT = 1.2
"""How much a page may cost more for 1000 followees than for 10 to be called flat."""

BY_IDS = f"""
    SELECT {COLUMNS} FROM {ITEMS} WHERE i.id = ANY(%(ids)s)
    ORDER BY i.id DESC
"""  # noqa: S608 (constants)
LATERAL = f"""
    WITH ids AS MATERIALIZED (
        SELECT top.id FROM relations_follow f CROSS JOIN LATERAL (
            SELECT i.id FROM items_item i
            WHERE i.sender_id = f.followee_id AND i.status = 'published' AND i.reply_to_id IS NULL
            ORDER BY i.id DESC LIMIT {LIMIT}
        ) top
        WHERE f.follower_id = %(reader)s ORDER BY top.id DESC LIMIT {LIMIT}
    )
    SELECT {COLUMNS} FROM ids JOIN items_item i ON i.id = ids.id JOIN accounts_user s ON s.id = i.sender_id {ORIGINALS}
    ORDER BY i.id DESC
"""  # noqa: S608


def run(community: Community) -> Report:
    """Run the benchmark, and return its report."""
    size = community.size
    report = Report(
        "home_page",
        __doc__.splitlines()[0],
        ["reader", "ids only", "home_page", "redis-py ids + 1 query", "LATERAL pull"],
        f"{size.page_rounds} rounds over {size.readers} readers of each kind; ms, medians",
    )
    with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}) as truth:
        truth.autocommit = True
        peers = Peers(truth)
        for count, reader_ids in community.readers.items():
            no_big_vs: list[list[int]] = [[] for _ in reader_ids]
            _measure(report, peers, f"{count} followees", users(reader_ids), no_big_vs, size.page_rounds)
        for count, reader_ids in community.hybrids.items():
            big_vs = [peers.big_vs(reader_id) for reader_id in reader_ids]
            _measure(report, peers, f"200 followees, {count} outboxes", users(reader_ids), big_vs, size.page_rounds)
        _compare(report, community)
        _compare_returned(report, community)
        few = min(community.readers)
        policy.change(inbox_from=INBOX_FROM)
        no_big_vs = [[] for _ in community.readers[few]]
        kind = f"{few} followees, no inbox"
        _measure(report, peers, kind, users(community.readers[few]), no_big_vs, size.page_rounds)
        policy.change(inbox_from=0)
    community.materialise()
    return report


class Peers:
    """The shortest ways to the same rows, on connections of their own."""

    def __init__(self, truth: "psycopg.Connection[tuple[object, ...]]") -> None:
        self.truth = truth
        self.redis = redis.Redis.from_url(settings.REDIS_URL)

    def query(self, query: str, **params: object) -> list[tuple[object, ...]]:
        """The rows of a prepared statement."""
        return self.truth.execute(query, params, prepare=True).fetchall()

    def big_vs(self, reader_id: int) -> list[int]:
        """The ids of the big-Vs whom the reader follows."""
        rows = self.query(
            """
            SELECT v.id FROM accounts_user v JOIN relations_follow f ON f.followee_id = v.id
            WHERE v.is_big_v AND f.follower_id = %(reader)s
            """,
            reader=reader_id,
        )
        return [int(str(row[0])) for row in rows]

    def by_redis(self, reader_id: int, big_vs: list[int]) -> list[tuple[object, ...]]:
        """The page by redis-py and one query."""
        if big_vs:
            pipeline = self.redis.pipeline(transaction=False)
            for key in (Inbox(reader_id).key, *(Outbox(big_v).key for big_v in big_vs)):
                pipeline.zrevrangebyscore(key, INFINITY, 1, 0, LIMIT)
            found = {int(member.split(b":")[1]) for members in pipeline.execute() for member in members}
            ids = nlargest(LIMIT, found)
        else:
            members = self.redis.zrevrangebyscore(Inbox(reader_id).key, INFINITY, 1, 0, LIMIT)
            ids = [int(member.split(b":")[1]) for member in members]
        return self.query(BY_IDS, ids=ids, reader=reader_id)

    def by_lateral(self, reader_id: int) -> list[tuple[object, ...]]:
        """The page by one LATERAL query, without Redis."""
        return self.query(LATERAL, reader=reader_id)


def _measure(
    report: Report, peers: Peers, kind: str, readers: list[User], big_vs: list[list[int]], rounds: int
) -> None:
    count = len(readers)
    for reader, pulled in zip(readers, big_vs, strict=True):
        page = [int(item.id) for item in home_page(reader, limit=LIMIT).items]
        for other in (peers.by_redis(reader.pk, pulled), peers.by_lateral(reader.pk)):
            assert page == [row[0] for row in other], f"{kind}: the ways do not lead to the same page"
    cases: dict[str, Callable[[int], object]] = {
        "ids": lambda number: window_ids(readers[number % count].pk, big_vs[number % count]),
        "home_page": lambda number: home_page(readers[number % count], limit=LIMIT),
        "redis-py": lambda number: peers.by_redis(readers[number % count].pk, big_vs[number % count]),
        "lateral": lambda number: peers.by_lateral(readers[number % count].pk),
    }
    times = interleaved(cases, rounds=rounds, warm_up=2 * count)
    report.rows.append([kind, *(round(milliseconds(times[name]), 3) for name in cases)])
    sources = home_page(readers[0], limit=LIMIT).sources
    is_pulled = len(big_vs[0]) >= MANY_OUTBOXES or "no inbox" in kind
    report.notes.append(f"{kind}: served by {', '.join(sources)}.")
    for peer, case, target, is_held in (
        ("redis-py + 1 query", "redis-py", TARGET, not is_pulled),
        ("LATERAL pull", "lateral", PULLED, is_pulled),
    ):
        report.ratio(f"home_page / {peer}, {kind}", over(times, "home_page", case), at_most=target if is_held else None)


def _compare(report: Report, community: Community) -> None:
    """Compare a page for few followees with one for many, in turn."""
    counts = [count for count in community.readers if count <= 1000]
    few, many = min(counts), max(counts)
    times = _in_turn(community, {"few": community.readers[few], "many": community.readers[many]})
    report.ratio(f"home_page, {many} followees / {few} followees", over(times, "many", "few"), at_most=FLAT)


def _compare_returned(report: Report, community: Community) -> None:
    """Readers of level 2, and then of level 1, beside such of level 3 who follow as many; in turn."""
    count = min(community.hybrids)
    returned, daily = community.hybrids[count], community.readers[FOLLOWEES_OF_HYBRIDS]
    for level in (2, 1):
        User.objects.filter(pk__in=returned).update(level=level)
        for reader_id in returned:
            materialise_inbox(reader_id)
        times = _in_turn(community, {"returned": returned, "daily": daily})
        name = f"home_page, level {level}, 200 followees, {count} outboxes / level 3, 200 followees"
        report.ratio(name, over(times, "returned", "daily"), at_most=RETURNED)
    User.objects.filter(pk__in=returned).update(level=2)


def _in_turn(community: Community, reader_ids: Mapping[str, Sequence[int]]) -> Times:
    cases: dict[str, Callable[[int], object]] = {}
    for name, some in reader_ids.items():
        people = users(some)
        cases[name] = lambda number, people=people: home_page(people[number % len(people)], limit=LIMIT)
    return interleaved(cases, rounds=community.size.page_rounds, warm_up=2 * community.size.readers)


def window_ids(reader_id: int, big_vs: list[int]) -> list[int]:
    """The candidates of a first page from inbox and outboxes, unverified, in one round trip."""
    wanted = LIMIT + 1 + SLACK
    windows = [Inbox(reader_id), *(Outbox(big_v) for big_v in big_vs)]
    counts = [wanted] * len(windows)
    replies = pipelined(feeds(), Window.readings(feeds(), windows, INFINITY, counts))
    found = {item_id for one in Window.slices(replies, counts) for item_id in one.entries}
    return nlargest(wanted, found)
