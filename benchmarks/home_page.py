"""The cost of a page of home: by followees, far down, and over thousands of items that its reader may not see.

`home_page` is compared with the shortest way to the same rows: redis-py reads 20 ids and one prepared SELECT the
columns; and with the best plain-SQL pull (LATERAL top-k per followee). Hybrid readers (level 2, 200 ordinary followees)
also pull big-Vs' outboxes. A returning reader of low level is compared with one of level 3. Readers of hashtags merge
ten outboxes.

`depth`: readers page by 20 past the floor of an inbox of cap 1000. "Past the floor" is the first page below the inbox,
"tail" the page after it.

`hidden`: readers of 200 followees follow one more, who publishes for mutuals and does not follow back, publishes for
themself, is suspended, or reposted deleted items.
"""

from collections.abc import Mapping, Sequence
from heapq import nlargest

import psycopg
import redis
from django.conf import settings
from django.db import connection
from django.db.backends.utils import CursorWrapper

from accounts.levels import policy
from accounts.models import User
from benchmarks.community import (
    FIRST_FOLLOWER,
    FOLLOWEES_OF_HYBRIDS,
    Community,
    materialise_inbox,
    materialise_outbox,
    users,
)
from benchmarks.measure import BenchmarkReport, Case, Times, interleaved, milliseconds, over, span
from items.hydrate import COLUMNS, ITEMS, ORIGINALS
from relations.models import Tag
from relations.tags import follow_tag, unfollow_tag
from storage import keys
from storage.connections import feeds, pipelined
from storage.window import INFINITY, Window
from timeline.home import SLACK, home_page
from timeline.inbox import Tail
from timeline.outbox import outbox_key, source_of

LIMIT = 20
TARGET = 1.3
COST = "What does a page of home cost, against the shortest way to the same rows?"
PULLED = 1.15
"""Limit of a pulled page over the pull alone."""
MANY_OUTBOXES = 100
"""From this number of outboxes on, a page is pulled."""
INBOX_FROM = 50
"""`inbox_from` for readers without an inbox."""
RETURNED = 1.3
FLAT = 1.2
"""Limit of a page with 1000 followees over one with 10."""

BY_IDS = f"""
    SELECT {COLUMNS} FROM {ITEMS} WHERE i.id = ANY(%(ids)s)
    ORDER BY i.id DESC
"""
BY_FOLLOWEES = f"""
    SELECT top.id FROM relations_follow f CROSS JOIN LATERAL (
        SELECT i.id FROM items_item i
        WHERE i.sender_id = f.followee_id AND i.status = 'published' AND i.reply_to_id IS NULL
        ORDER BY i.id DESC LIMIT {LIMIT}
    ) top
    WHERE f.follower_id = %(reader)s
"""
BY_HASHTAGS = f"""
    SELECT top.id FROM relations_tagfollow h JOIN relations_tag g ON g.id = h.tag_id CROSS JOIN LATERAL (
        SELECT t.item_id AS id FROM items_itemtag t WHERE t.tag = g.name AND t.is_public_post
        ORDER BY t.item_id DESC LIMIT {LIMIT}
    ) top
    WHERE h.user_id = %(reader)s
"""
LATERAL, TAGGED_LATERAL = (
    f"""
    WITH ids AS MATERIALIZED (SELECT id FROM ({ids}) found ORDER BY id DESC LIMIT {LIMIT})
    SELECT {COLUMNS} FROM ids JOIN items_item i ON i.id = ids.id JOIN accounts_user s ON s.id = i.sender_id {ORIGINALS}
    ORDER BY i.id DESC
    """
    for ids in (BY_FOLLOWEES, f"{BY_FOLLOWEES} UNION {BY_HASHTAGS}")
)
HASHTAGS, FOLLOWED_HASHTAGS = 500, 10
"""Hashtags in the newest posts, and those that a reader follows."""
TAG_ITEMS = f"""
    INSERT INTO items_itemtag (tag, item_id)
    SELECT 'bench' || row_number() OVER (ORDER BY id) %% {HASHTAGS}, id
    FROM (SELECT id FROM items_item WHERE reply_to_id IS NULL ORDER BY id DESC LIMIT %(count)s) newest
"""
UNTAG_ITEMS = "DELETE FROM items_itemtag WHERE tag LIKE 'bench%'"

FOLLOWEES = 200
PAGES = (1, 10, 49, 50)
DEPTH = "Does a page cost more further down?"
HIDDEN = "What does a page cost over thousands of items that the reader may not see?"
FIRST_HIDDEN = FIRST_FOLLOWER - 100
KINDS = ("mutuals", "self", "suspended", "reposts")

PAIR = """
    INSERT INTO accounts_user (id, password, is_superuser, username, display_name, bio, email, is_big_v, level,
        last_seen_at, following_count, follower_count, is_staff, is_active, date_joined)
    SELECT id, '!', false, 'hidden' || id, '', '', '', false, 3, now(), 0, 0, false,
        id = %(reader)s OR %(active)s, now()
    FROM unnest(ARRAY[%(reader)s, %(sender)s]::bigint[]) AS id
"""
FOLLOW = """
    INSERT INTO relations_follow (follower_id, followee_id, created_at)
    SELECT %(reader)s, followee_id, now() FROM relations_follow WHERE follower_id = %(like)s
    UNION ALL SELECT %(reader)s, %(sender)s, now()
"""
ITEMS = """
    INSERT INTO items_item (sender_id, type, title, content, extra_info, status, visibility, modified_at)
    SELECT %(sender)s, 'text', '', '{"text": "words"}', '{}', %(status)s, %(visibility)s, now()
    FROM generate_series(1, %(count)s) RETURNING id
"""
REPOSTS = f"""
    WITH gone AS ({ITEMS})
    INSERT INTO items_item (sender_id, type, title, content, extra_info, status, visibility, repost_of_id, modified_at)
    SELECT %(sender)s, 'repost', '', '{{}}', '{{}}', 'published', 'public', id, now() FROM gone
"""
FORGET = (
    "DELETE FROM items_item WHERE sender_id = ANY(%(users)s)",
    "DELETE FROM relations_follow WHERE follower_id = ANY(%(users)s)",
    "DELETE FROM accounts_user WHERE id = ANY(%(users)s)",
)


def run(community: Community) -> BenchmarkReport:
    size = community.size
    report = BenchmarkReport(
        "home_page",
        COST,
        ["reader", "ids only", "home_page", "redis-py ids + 1 query", "LATERAL pull", "served by"],
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
        _measure_hashtags(report, peers, community)
        _compare(report, community)
        _compare_returned(report, community)
        few = min(community.readers)
        policy.change(inbox_from=INBOX_FROM)
        no_big_vs = [[] for _ in community.readers[few]]
        kind = f"{few} followees, no inbox"
        _measure(report, peers, kind, users(community.readers[few]), no_big_vs, size.page_rounds)
        policy.change(inbox_from=0)
    community.materialise()
    report.figure("ms a page", span([float(row[2]) for row in report.rows]))
    return report


class Peers:
    """The shortest ways to the same page, on connections of their own."""

    def __init__(self, truth: "psycopg.Connection[tuple[object, ...]]") -> None:
        self.truth = truth
        self.redis = redis.Redis.from_url(settings.REDIS_URL)

    def query(self, query: str, **params: object) -> list[tuple[object, ...]]:
        """The rows of a prepared statement."""
        return self.truth.execute(query, params, prepare=True).fetchall()

    def big_vs(self, reader_id: int) -> list[int]:
        """The ids of the reader's big-Vs."""
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
            for key in (keys.inbox(reader_id), *map(outbox_key, big_vs)):
                pipeline.zrevrangebyscore(key, INFINITY, 1, 0, LIMIT)
            found = {int(member.split(b":")[1]) for members in pipeline.execute() for member in members}
            ids = nlargest(LIMIT, found)
        else:
            members = self.redis.zrevrangebyscore(keys.inbox(reader_id), INFINITY, 1, 0, LIMIT)
            ids = [int(member.split(b":")[1]) for member in members]
        return self.query(BY_IDS, ids=ids, reader=reader_id)

    def by_lateral(self, reader_id: int, query: str) -> list[tuple[object, ...]]:
        """The page by one LATERAL query."""
        return self.query(query, reader=reader_id)


def _measure_hashtags(report: BenchmarkReport, peers: Peers, community: Community) -> None:
    with connection.cursor() as cursor:
        cursor.execute(TAG_ITEMS, {"count": community.size.searched})
        cursor.execute("VACUUM ANALYZE items_itemtag")
    readers = community.readers[FOLLOWEES_OF_HYBRIDS]
    tags = [f"bench{number}" for number in range(FOLLOWED_HASHTAGS)]
    for user in users(readers):
        for tag in tags:
            follow_tag(user=user, tag=tag)
    sources = [source_of(tag=tag.pk) for tag in Tag.objects.filter(name__in=tags)]
    for source in sources:
        materialise_outbox(source)
    kind, every = f"{FOLLOWEES_OF_HYBRIDS} followees, {FOLLOWED_HASHTAGS} hashtags", [sources] * len(readers)
    _measure(report, peers, kind, users(readers), every, community.size.page_rounds, TAGGED_LATERAL)
    for user in users(readers):
        for tag in tags:
            unfollow_tag(user=user, tag=tag)
    with connection.cursor() as cursor:
        cursor.execute(UNTAG_ITEMS)


def _measure(
    report: BenchmarkReport,
    peers: Peers,
    kind: str,
    readers: list[User],
    big_vs: list[list[int]],
    rounds: int,
    lateral: str = LATERAL,
) -> None:
    count = len(readers)
    for reader, pulled in zip(readers, big_vs, strict=True):
        page = [int(item.id) for item in home_page(reader, limit=LIMIT).items]
        for other in (peers.by_redis(reader.pk, pulled), peers.by_lateral(reader.pk, lateral)):
            assert page == [row[0] for row in other], f"{kind}: the ways do not lead to the same page"
    cases: dict[str, Case] = {
        "ids": lambda number: window_ids(readers[number % count].pk, big_vs[number % count]),
        "home_page": lambda number: home_page(readers[number % count], limit=LIMIT),
        "redis-py": lambda number: peers.by_redis(readers[number % count].pk, big_vs[number % count]),
        "lateral": lambda number: peers.by_lateral(readers[number % count].pk, lateral),
    }
    times = interleaved(cases, rounds=rounds, warm_up=2 * count)
    report.rows.append([kind, *(round(milliseconds(times[name]), 3) for name in cases)])
    sources = home_page(readers[0], limit=LIMIT).sources
    is_pulled = len(big_vs[0]) >= MANY_OUTBOXES or "no inbox" in kind
    report.rows[-1] = [*report.rows[-1], ", ".join(sources)]
    for peer, case, target, is_held in (
        ("redis-py + 1 query", "redis-py", TARGET, not is_pulled),
        ("LATERAL pull", "lateral", PULLED, is_pulled),
    ):
        report.ratio(f"home_page / {peer}, {kind}", over(times, "home_page", case), at_most=target if is_held else None)


def _compare(report: BenchmarkReport, community: Community) -> None:
    counts = [count for count in community.readers if count <= 1000]
    few, many = min(counts), max(counts)
    times = _in_turn(community, {"few": community.readers[few], "many": community.readers[many]})
    report.ratio(f"{many} followees / {few} followees", over(times, "many", "few"), at_most=FLAT)


def _compare_returned(report: BenchmarkReport, community: Community) -> None:
    count = min(community.hybrids)
    returned, daily = community.hybrids[count], community.readers[FOLLOWEES_OF_HYBRIDS]
    for level in (2, 1):
        User.objects.filter(pk__in=returned).update(level=level)
        for reader_id in returned:
            materialise_inbox(reader_id)
        times = _in_turn(community, {"returned": returned, "daily": daily})
        name = f"returned reader with {count} outboxes / daily reader, level {level}"
        report.ratio(name, over(times, "returned", "daily"), at_most=RETURNED)
    User.objects.filter(pk__in=returned).update(level=2)


def _in_turn(community: Community, reader_ids: Mapping[str, Sequence[int]]) -> Times:
    cases: dict[str, Case] = {}
    for name, some in reader_ids.items():
        people = users(some)
        cases[name] = lambda number, people=people: home_page(people[number % len(people)], limit=LIMIT)
    return interleaved(cases, rounds=community.size.page_rounds, warm_up=2 * community.size.readers)


def window_ids(reader_id: int, big_vs: list[int]) -> list[int]:
    """The candidates of a first page from the windows, not verified."""
    wanted = LIMIT + 1 + SLACK
    windows = [keys.inbox(reader_id), *map(outbox_key, big_vs)]
    counts = [wanted] * len(windows)
    replies = pipelined(feeds(), Window.read_commands(feeds(), windows, INFINITY, counts))
    found = {item_id for one in Window.slices(replies, counts) for item_id in one.entries}
    return nlargest(wanted, found)


# --- Depth ---------------------------------------------------------------------------------------------------
def depth(community: Community) -> BenchmarkReport:
    """Run the benchmark `depth`."""
    readers = users(community.readers[FOLLOWEES])
    walks = [walk(reader) for reader in readers]
    floors = [first_below(steps) for steps in walks]
    count = len(readers)

    def page(number: int, place: int) -> Case:
        return lambda round_number: home_page(
            readers[round_number % count], last_id=walks[round_number % count][place - 1][0], limit=LIMIT
        )

    def past(round_number: int) -> None:
        one = round_number % count
        pipelined(feeds(), [Tail(readers[one].pk).drop()])
        home_page(readers[one], last_id=walks[one][floors[one]][0], limit=LIMIT)

    def tail(round_number: int) -> None:
        one = round_number % count
        home_page(readers[one], last_id=walks[one][floors[one] + 1][0], limit=LIMIT)

    cases = {f"page {place}": page(0, place) for place in PAGES} | {"past": past, "tail": tail}
    times = interleaved(cases, rounds=community.size.page_rounds, warm_up=2 * count)
    report = BenchmarkReport(
        "depth",
        DEPTH,
        ["page", "ms", "over page 1", "served by"],
        f"{community.size.page_rounds} rounds over {count} readers of {FOLLOWEES} followees; medians",
    )
    steps = walks[0]
    sources = {f"page {place}": steps[place - 1][1] for place in PAGES}
    sources |= {"past": steps[floors[0]][1], "tail": "tail (sql)"}
    names = {"past": f"page {floors[0] + 1}, the first past the floor", "tail": f"page {floors[0] + 2}, from the tail"}
    for name in cases:
        ratio = over(times, name, "page 1")
        report.rows.append([names.get(name, name), round(milliseconds(times[name]), 3), round(ratio, 2), sources[name]])
    report.ratio("page 50 / page 1", over(times, "page 50", "page 1"), at_most=1.3)
    report.ratio("first page past the floor / page 1", over(times, "past", "page 1"), at_most=4)
    return report


def walk(reader: User) -> list[tuple[int | None, str]]:
    """Page through a home until two pages past the floor. Returns each page's start and source."""
    pipelined(feeds(), [Tail(reader.pk).drop()])
    steps: list[tuple[int | None, str]] = []
    last_id: int | None = None
    while len(steps) < 2 or steps[-2][1] != "sql" or len(steps) <= max(PAGES):
        page = home_page(reader, last_id=last_id, limit=LIMIT)
        steps.append((last_id, ",".join(page.sources)))
        last_id = page.last_id
        assert page.has_more, "the reader's home ends before the floor"
    return steps


def first_below(steps: list[tuple[int | None, str]]) -> int:
    """The index of the first page that PostgreSQL served."""
    return next(place for place, (_, source) in enumerate(steps) if source == "sql")


# --- Hidden items ---------------------------------------------------------------------------------------------
def hidden(community: Community) -> BenchmarkReport:
    """Run the benchmark `hidden`."""
    count = community.size.hidden
    ordinary = community.readers[FOLLOWEES][0]
    readers = {kind: FIRST_HIDDEN + 2 * place for place, kind in enumerate(KINDS)}
    with connection.cursor() as cursor:
        for kind, reader in readers.items():
            _publish(cursor, kind, reader, ordinary, count)
        cursor.execute("VACUUM ANALYZE items_item")
    for reader in readers.values():
        materialise_inbox(reader)
    found = dict(zip(("ordinary", *KINDS), users([ordinary, *readers.values()]), strict=True))
    cases = {name: _page(reader) for name, reader in found.items()}
    shown = {name: len(home_page(reader).items) for name, reader in found.items()}
    times = interleaved(cases, rounds=community.size.page_rounds, warm_up=10)
    report = BenchmarkReport(
        "hidden",
        HIDDEN,
        ["the newest items", "ms", "over an ordinary page", "items on the page"],
        f"{community.size.page_rounds} rounds, readers of {FOLLOWEES} followees, {count:,} hidden items; medians",
    )
    for name in cases:
        report.rows.append(
            [name, round(milliseconds(times[name]), 3), round(over(times, name, "ordinary"), 2), shown[name]]
        )
        if name != "ordinary":
            report.ratio(f"hidden items / ordinary page, {name}", over(times, name, "ordinary"), at_most=3)
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # no row refers to these; checking takes minutes
        for statement in FORGET:
            cursor.execute(statement, {"users": list(range(FIRST_HIDDEN, FIRST_HIDDEN + 2 * len(KINDS)))})
        cursor.execute("RESET session_replication_role")
    return report


def _publish(cursor: CursorWrapper, kind: str, reader: int, like: int, count: int) -> None:
    """Create a reader with the followees of `like`, and one more with `count` newest items hidden by `kind`."""
    params = {"reader": reader, "sender": reader + 1, "like": like, "count": count, "active": kind != "suspended"}
    params |= {"visibility": kind if kind in ("mutuals", "self") else "public"}
    cursor.execute(PAIR, params)
    cursor.execute(FOLLOW, params)
    if kind == "reposts":
        cursor.execute(REPOSTS, params | {"status": "deleted"})
    else:
        cursor.execute(ITEMS, params | {"status": "published"})


def _page(reader: User) -> Case:
    return lambda round_number: home_page(reader)
