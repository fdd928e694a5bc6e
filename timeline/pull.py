"""The pull: a reader's home timeline straight from PostgreSQL, for what no window holds.

Bounded work: one index probe a followee finds the newest item of each; only followees whose newest can be among the
wanted are read further (at most as many as items are wanted). At 1000 followees over a million posts the plain join
takes 25 ms, because its plan flips; this takes what 1000 probes take.
"""

from collections.abc import Sequence
from typing import Any

from accounts.policy import EPOCH
from feedsite.connections import fetch
from feedsite.window import INFINITY, Entry
from items.hydrate import COLUMNS, ORIGINALS
from items.visibility import original_visible

# Whose items belong into the reader's home: the reader's own and the followees', neither blocked (by either) nor
# muted.
SENDERS = """
    SELECT f.followee_id AS id FROM relations_follow f WHERE f.follower_id = %(reader)s
        AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = %(reader)s AND b.blocked_id = f.followee_id)
        AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = f.followee_id AND b.blocked_id = %(reader)s)
        AND NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = %(reader)s AND m.muted_id = f.followee_id)
    UNION ALL SELECT %(reader)s::bigint
"""
# Whether a sender's item belongs into a home timeline at all. Mutuals' items do, whoever follows whom just now:
# `SHOWN` decides at the reading, so that no window has to hear of a follow in the other direction.
IN_TIMELINE = """
    i.status = 'published' AND i.reply_to_id IS NULL AND (i.visibility <> 'self' OR i.sender_id = %(reader)s)
"""
# Whether the reader may see just now what belongs into their timeline. OFFSET 0: a probe an item, not a hash of all who
# follow the reader. A repost is shown as far as its original may be seen and its sender is not muted; nobody tells the
# windows when that changes either.
SHOWN = f"""
    ((i.sender_id = %(reader)s OR s.is_active AND (i.visibility <> 'mutuals' OR EXISTS (
        SELECT FROM relations_follow f WHERE f.follower_id = i.sender_id AND f.followee_id = %(reader)s OFFSET 0)))
    AND {
    original_visible(
        "i",
        also="AND NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = %(reader)s AND m.muted_id = o.sender_id)",
    )
})
"""  # noqa: S608 (constants)
PULLED = f"""
    senders AS MATERIALIZED ({SENDERS}),
    heads AS MATERIALIZED (
        SELECT senders.id, head.id AS head FROM senders CROSS JOIN LATERAL (
            SELECT i.id FROM items_item i WHERE i.sender_id = senders.id AND i.id < %(below)s AND {IN_TIMELINE}
            ORDER BY i.id DESC LIMIT 1
        ) head
    ),
    cut AS MATERIALIZED (
        SELECT coalesce((SELECT head FROM heads ORDER BY head DESC OFFSET %(count)s - 1 LIMIT 1), 0) AS id
    ),
    pulled AS MATERIALIZED (
        SELECT item.id, item.sender_id FROM heads CROSS JOIN LATERAL (
            SELECT i.id, i.sender_id FROM items_item i
            WHERE i.sender_id = heads.id AND i.id < %(below)s AND i.id >= (SELECT id FROM cut) AND {IN_TIMELINE}
            ORDER BY i.id DESC LIMIT %(count)s
        ) item
        WHERE heads.head >= (SELECT id FROM cut)
        ORDER BY item.id DESC LIMIT %(count)s
    )
"""  # noqa: S608 (constants)
PULL_ENTRIES = f"""
    WITH {PULLED}
    SELECT {EPOCH}, pulled.id, pulled.sender_id
    FROM accounts_user u LEFT JOIN pulled ON true WHERE u.id = %(reader)s ORDER BY pulled.id DESC
"""  # noqa: S608
PULL_BODIES = f"""
    WITH {PULLED},
    placed AS (SELECT pulled.*, row_number() OVER (ORDER BY pulled.id DESC) AS place FROM pulled)
    SELECT placed.id, placed.sender_id, {SHOWN}, {COLUMNS}
    FROM placed LEFT JOIN items_item i ON i.id = placed.id AND placed.place <= %(bodies)s
        LEFT JOIN accounts_user s ON s.id = i.sender_id {ORIGINALS}
    ORDER BY placed.place
"""  # noqa: S608
# Reposts are looked for only where the posts alone do not reach the count: so little is scanned either way.
COUNT_ABOVE = f"""
    WITH senders AS MATERIALIZED ({SENDERS}),
    posts AS MATERIALIZED (
        SELECT count(*) AS count FROM (
            SELECT FROM senders JOIN accounts_user s ON s.id = senders.id CROSS JOIN LATERAL (
                SELECT FROM items_item i
                WHERE i.sender_id = senders.id AND i.id > %(since)s AND i.repost_of_id IS NULL AND {IN_TIMELINE}
                    AND {SHOWN}
                LIMIT %(count)s
            ) post LIMIT %(count)s
        ) counted
    ),
    reposts AS MATERIALIZED (
        SELECT count(*) AS count FROM (
            SELECT FROM senders JOIN accounts_user s ON s.id = senders.id CROSS JOIN LATERAL (
                SELECT FROM items_item i
                WHERE i.sender_id = senders.id AND i.id > %(since)s AND i.repost_of_id IS NOT NULL AND {IN_TIMELINE}
                    AND {SHOWN}
                LIMIT %(reposts)s
            ) repost
            WHERE (SELECT count FROM posts) < %(count)s LIMIT %(reposts)s
        ) counted
    )
    SELECT (SELECT count FROM posts), (SELECT count FROM reposts)
"""  # noqa: S608
REPOSTS = 1_000
"""Reposts that one count looks at."""


# What stands around a position: entries that the reader is shown, without their bodies. Both directions look at heads
# first, as `PULLED` does; `senders` goes by the name `s`, which `SHOWN` asks for `is_active`.
AROUND = f"""
    WITH senders AS MATERIALIZED (
        SELECT u.id, u.is_active FROM ({SENDERS}) senders JOIN accounts_user u ON u.id = senders.id
    ),
    heads AS MATERIALIZED (
        SELECT s.id, s.is_active, head.id AS head FROM senders s CROSS JOIN LATERAL (
            SELECT i.id FROM items_item i WHERE i.sender_id = s.id AND i.id < %(last_id)s AND {IN_TIMELINE} AND {SHOWN}
            ORDER BY i.id DESC LIMIT 1
        ) head
    ),
    cut AS MATERIALIZED (
        SELECT coalesce((SELECT head FROM heads ORDER BY head DESC OFFSET %(below)s - 1 LIMIT 1), 0) AS id
    ),
    feet AS MATERIALIZED (
        SELECT s.id, s.is_active, foot.id AS foot FROM senders s CROSS JOIN LATERAL (
            SELECT i.id FROM items_item i WHERE i.sender_id = s.id AND i.id >= %(last_id)s AND {IN_TIMELINE} AND {SHOWN}
            ORDER BY i.id LIMIT 1
        ) foot
        WHERE %(last_id)s < {INFINITY}
    ),
    top AS MATERIALIZED (
        SELECT coalesce((SELECT foot FROM feet ORDER BY foot OFFSET %(above)s - 1 LIMIT 1), {INFINITY}) AS id
    )
    (SELECT item.id, item.repost_of_id FROM feet s CROSS JOIN LATERAL (
        SELECT i.id, i.repost_of_id FROM items_item i
        WHERE i.sender_id = s.id AND i.id >= %(last_id)s AND i.id <= (SELECT id FROM top) AND {IN_TIMELINE} AND {SHOWN}
        ORDER BY i.id LIMIT %(above)s
    ) item WHERE s.foot <= (SELECT id FROM top) ORDER BY item.id LIMIT %(above)s)
    UNION ALL
    (SELECT item.id, item.repost_of_id FROM heads s CROSS JOIN LATERAL (
        SELECT i.id, i.repost_of_id FROM items_item i
        WHERE i.sender_id = s.id AND i.id < %(last_id)s AND i.id >= (SELECT id FROM cut) AND {IN_TIMELINE} AND {SHOWN}
        ORDER BY i.id DESC LIMIT %(below)s
    ) item WHERE s.head >= (SELECT id FROM cut) ORDER BY item.id DESC LIMIT %(below)s)
    ORDER BY id DESC
"""  # noqa: S608 (constants)


def pull_entries(reader_id: int, count: int) -> tuple[int | None, list[Entry], int]:
    """The newest `count` entries that belong into a reader's window, as (policy.EPOCH, entries, floor), in one
    snapshot.
    """
    rows = fetch(PULL_ENTRIES, {"reader": reader_id, "below": INFINITY, "count": count + 1})
    entries = [Entry(row[1], row[2]) for row in rows if row[1] is not None]
    floor = entries[count].item_id if len(entries) > count else 0
    return rows[0][0], entries[:count], floor


def pull_bodies(reader_id: int, *, below: int, count: int, bodies: int) -> list[Sequence[Any]]:
    """`count` entries below an id, newest first, the first `bodies` of them hydrated.

    Rows are (id, sender id, shown, *COLUMNS); beyond the first `bodies` only the ids are meaningful.
    """
    return list(fetch(PULL_BODIES, {"reader": reader_id, "below": below, "count": count, "bodies": bodies}))


def around(reader_id: int, *, last_id: int, above: int, below: int) -> list[tuple[int, int | None]]:
    """The entries next to a position that the reader is shown, newest first, and what they repost: `above` of them with
    ids from `last_id` up, `below` with smaller ones.
    """
    params = {"reader": reader_id, "last_id": last_id, "above": above, "below": below}
    return [(row[0], row[1]) for row in fetch(AROUND, params)]


def count_above(reader_id: int, *, since: int, count: int) -> tuple[int, int]:
    """How many posts above an id the reader's home has, at most `count`; and if they are fewer, how many reposts,
    folded or not, at most `REPOSTS`.
    """
    params = {"reader": reader_id, "since": since, "count": count, "reposts": REPOSTS}
    posts, reposts = fetch(COUNT_ABOVE, params)[0]
    return posts, reposts
