"""Folding: a post and its reposts close to each other are one entry of a home.

A repost is folded if one of the `REACH` entries above it reposts the same item, or if the item is among the `REACH`
entries below. Another repost shows how many equal ones are among the `REACH` entries below it.

So folding depends only on the page's entries and `REACH` more on either side. Hidden entries count, but nothing is
folded into a hidden post.

See docs/decisions.md: Windows first, then one statement.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import itemgetter

from items.hydrate import WIDTH, OwnColumns
from storage.connections import fetch, id_array
from timeline.pull import AROUND, HomeCandidate, entries_around
from timeline.senders import Scope, Statement
from timeline.truth import DESCRIBE, HAS_SHOWN_ORIGINAL, TAG_COLUMNS, VERDICT, VerifiedItem, parse_described

REACH = 40
"""Entries."""
FOLDED = -1
NEIGHBOUR = {"id": "near.id", "repost_of_id": "near.repost_of_id"}
"""The columns of `OwnColumns` that a neighbour's row has. The others, including its type, are NULL."""


def _folds_and_originals(describe: str, width: int, around: str) -> str:
    """SQL that describes reposts, and finds the neighbours if one of them is shown."""
    names = [f"c{place}" for place in range(width)]
    return f"""
    WITH described ({", ".join(names)}) AS MATERIALIZED ({describe})
    SELECT * FROM described
    UNION ALL
    SELECT {", ".join(NEIGHBOUR.get(name, "NULL") for name in OwnColumns._fields)},
        {", ".join(["NULL"] * (width - len(OwnColumns._fields)))}
    FROM ({around}) near WHERE (SELECT bool_or({names[WIDTH + HAS_SHOWN_ORIGINAL]}) FROM described)
"""


WIDTHS = (WIDTH + VERDICT, WIDTH + VERDICT + TAG_COLUMNS, WIDTH + VERDICT)
"""The number of columns of each statement in `DESCRIBE`."""
FOLDS_AND_ORIGINALS = Statement(*map(_folds_and_originals, DESCRIBE, WIDTHS, AROUND))
_neighbour = itemgetter(*map(OwnColumns._fields.index, NEIGHBOUR))
_type = itemgetter(OwnColumns._fields.index("type"))
OWN = "SELECT id FROM items_item WHERE id = ANY(%(ids)s::bigint[]) AND sender_id = %(reader)s"


def folds(scope: Scope, *, last_id: int, count: int) -> dict[int, int]:
    """Map each repost among `count` entries below an id to the number of others folded into it, or `FOLDED`."""
    return _folds_of_page(entries_around(scope, last_id=last_id, above=REACH, below=count + REACH), last_id, count)


def folds_and_originals(
    scope: Scope, *, last_id: int, count: int, reposts: Sequence[int]
) -> tuple[dict[int, int], dict[int, VerifiedItem]]:
    """The result of `folds`, and the given reposts with their originals, by id. No folds if none of these is shown."""
    params = {
        "last_id": last_id,
        "above": REACH,
        "below": count + REACH,
        "ids": id_array(reposts),
    }
    entries, verified = [], {}
    for row in FOLDS_AND_ORIGINALS.rows(params, scope):
        if _type(row) is None:
            entries.append(_neighbour(row))
        else:
            repost = parse_described(row)
            verified[repost.item.said.id] = repost
    entries.sort(reverse=True)
    return _folds_of_page(entries, last_id, count), verified


def _folds_of_page(entries: Sequence[tuple[int, int | None]], last_id: int, count: int) -> dict[int, int]:
    found = folds_among(entries)
    below = [entry for entry in entries if entry[0] < last_id]
    return {item_id: found[item_id] for item_id, root in below[:count] if root}


def folds_among(entries: Sequence[tuple[int, int | None]]) -> Mapping[int, int]:
    """Map each repost among neighbouring entries to the number of others folded into it, or `FOLDED`.

    The entries are rows of `AROUND`.
    """
    places: defaultdict[int, list[int]] = defaultdict(list)
    originals = {item_id: place for place, (item_id, root) in enumerate(entries) if root is None}
    for place, (_, root) in enumerate(entries):
        if root:
            places[root].append(place)
    found = {}
    for root, same in places.items():
        for rank, place in enumerate(same):
            is_below_another = rank > 0 and place - same[rank - 1] <= REACH
            is_above_original = root in originals and 0 < originals[root] - place <= REACH
            others = sum(place < other <= place + REACH for other in same)
            found[entries[place][0]] = FOLDED if is_below_another or is_above_original else others
    return found


def count_new(scope: Scope, candidates: Sequence[HomeCandidate], *, of_others: bool) -> int:
    """How many entries are shown, not folded and not own reposts; or of others alone. The candidates have no gap."""
    new = {one.item_id for one in candidates if one.is_shown}
    asked = {one.item_id for one in candidates if one.is_shown and (of_others or one.repost_of)}
    if not asked:
        return len(new)
    new -= {row[0] for row in fetch(OWN, {"ids": id_array(asked), "reader": scope.reader_id})}
    if not any(one.repost_of and one.item_id in new for one in candidates):
        return len(new)
    entries = [one.entry for one in candidates]
    below = entries_around(scope, last_id=entries[-1][0], above=0, below=REACH)
    found = folds_among([*entries, *below])
    return sum(found.get(one) != FOLDED for one in new)
