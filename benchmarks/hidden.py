"""How dear is a page where a followee of the reader last published thousands of items that the reader may not see?

Readers of 200 followees follow one more: a sender of items for mutuals who does not follow back, a sender of items for
themself, a suspended sender, or a sender who reposted what was deleted. Of the last kind a page looks through a bounded
number, and is short.
"""

from collections.abc import Callable

from django.db import connection
from django.db.backends.utils import CursorWrapper

from accounts.models import User
from benchmarks.community import FIRST_FOLLOWER, Community, materialise_inbox, users
from benchmarks.measure import Report, interleaved, milliseconds, over
from timeline.home import home_page

FOLLOWEES = 200
FIRST = FIRST_FOLLOWER - 100
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
"""  # noqa: S608 (constants)
FORGET = (
    "DELETE FROM items_item WHERE sender_id = ANY(%(users)s)",
    "DELETE FROM relations_follow WHERE follower_id = ANY(%(users)s)",
    "DELETE FROM accounts_user WHERE id = ANY(%(users)s)",
)


def run(community: Community) -> Report:
    """Run the benchmark, and return its report."""
    count = community.size.hidden
    ordinary = community.readers[FOLLOWEES][0]
    readers = {kind: FIRST + 2 * place for place, kind in enumerate(KINDS)}
    with connection.cursor() as cursor:
        for kind, reader in readers.items():
            publish(cursor, kind, reader, ordinary, count)
        cursor.execute("VACUUM ANALYZE items_item")
    for reader in readers.values():
        materialise_inbox(reader)
    found = dict(zip(("ordinary", *KINDS), users([ordinary, *readers.values()]), strict=True))
    cases = {name: page(reader) for name, reader in found.items()}
    shown = {name: len(home_page(reader).items) for name, reader in found.items()}
    times = interleaved(cases, rounds=community.size.page_rounds, warm_up=10)
    report = Report(
        "hidden",
        __doc__.splitlines()[0],
        ["the newest items", "ms", "over an ordinary page", "items on the page"],
        f"{community.size.page_rounds} rounds, readers of {FOLLOWEES} followees, {count:,} hidden items; medians",
    )
    for name in cases:
        report.rows.append(
            [name, round(milliseconds(times[name]), 3), round(over(times, name, "ordinary"), 2), shown[name]]
        )
        if name != "ordinary":
            report.ratio(f"{name} / ordinary page", over(times, name, "ordinary"), at_most=3)
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # no row refers to these; checking takes minutes
        for statement in FORGET:
            cursor.execute(statement, {"users": list(range(FIRST, FIRST + 2 * len(KINDS)))})
        cursor.execute("RESET session_replication_role")
    return report


def publish(cursor: CursorWrapper, kind: str, reader: int, like: int, count: int) -> None:
    """A reader who follows whom `like` follows, and the user after them, whose newest `count` items are hidden in the
    way of `kind`.
    """
    params = {"reader": reader, "sender": reader + 1, "like": like, "count": count, "active": kind != "suspended"}
    params |= {"visibility": kind if kind in ("mutuals", "self") else "public"}
    cursor.execute(PAIR, params)
    cursor.execute(FOLLOW, params)
    if kind == "reposts":
        cursor.execute(REPOSTS, params | {"status": "deleted"})
    else:
        cursor.execute(ITEMS, params | {"status": "published"})


def page(reader: User) -> Callable[[int], object]:
    """A case that reads the reader's first page."""
    return lambda round_number: home_page(reader)
