"""Folding: several reposts of one item, close to each other, are one entry of a home.

The rule: of the reader's entries, newest first, a repost is folded if one of the `REACH` entries above it reposts the
same item. What it is folded into is the newest of the chain, which says how many others it stands for. So what a page
shows depends on nothing but its own entries and the `REACH` above them, whatever its cursor.

Originals are never folded, and nothing is folded into them: they are older than their reposts.
"""

from collections.abc import Iterable, Mapping

from feedsite.connections import fetch, id_array
from timeline.hydrate import BELONGS
from timeline.pull import IN_TIMELINE, SENDERS, SHOWN

REACH = 40
"""Entries."""
FEW = 500
"""Of an item with more reposts each followee's is looked for by an index probe; with fewer, all of them are read."""
FOLDED = -1

FOLDS = f"""
    WITH roots AS MATERIALIZED (
        SELECT wanted.id, coalesce(counted.reposts, 0) > {FEW} AS many FROM unnest(%(roots)s::bigint[]) AS wanted (id)
        LEFT JOIN items_itemcounts counted ON counted.item_id = wanted.id
    ),
    senders AS MATERIALIZED ({SENDERS}),
    found AS MATERIALIZED (
        SELECT roots.id AS root, i.id FROM roots
            JOIN items_item i ON i.repost_of_id = roots.id AND i.status = 'published'
            JOIN accounts_user s ON s.id = i.sender_id
        WHERE NOT roots.many AND {BELONGS} AND {SHOWN}
        UNION ALL
        SELECT roots.id, i.id FROM roots CROSS JOIN senders
            JOIN items_item i ON i.repost_of_id = roots.id AND i.sender_id = senders.id AND i.status = 'published'
            JOIN accounts_user s ON s.id = i.sender_id
        WHERE roots.many AND {IN_TIMELINE} AND {SHOWN}
    ),
    placed AS MATERIALIZED (SELECT root, id, lag(id) OVER (PARTITION BY root ORDER BY id DESC) AS newer FROM found)
    SELECT root, id, CASE WHEN newer IS NOT NULL THEN (
        SELECT count(*) FROM (
            SELECT FROM senders JOIN accounts_user s ON s.id = senders.id CROSS JOIN LATERAL (
                SELECT FROM items_item i
                WHERE i.sender_id = senders.id AND i.id > placed.id AND i.id < placed.newer AND {IN_TIMELINE}
                    AND {SHOWN}
                LIMIT %(reach)s
            ) entry LIMIT %(reach)s
        ) between_them) END
    FROM placed ORDER BY root, id DESC
"""  # noqa: S608 (constants)


def folds(reader_id: int, roots: Iterable[int]) -> dict[int, int]:
    """For every repost of these items that the reader's home holds: how many others are folded into it, or `FOLDED`.

    One query, bounded by whom the reader follows, however often the items were reposted.
    """
    wanted = set(roots)
    if not wanted:
        return {}
    params = {"reader": reader_id, "roots": id_array(wanted), "reach": REACH}
    found: dict[int, int] = {}
    head, of = 0, 0
    for root, repost, between in fetch(FOLDS, params):
        if root == of and between < REACH:
            found[repost] = FOLDED
            found[head] += 1
        else:
            found[repost] = 0
            head, of = repost, root
    return found


def unfolded(reader_id: int, reposts: Mapping[int, int]) -> int:
    """How many of these reposts (id to what they repost) the reader's home shows as entries."""
    found = folds(reader_id, reposts.values())
    return sum(found.get(repost, FOLDED) != FOLDED for repost in reposts)
