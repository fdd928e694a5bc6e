"""Folding: several reposts of one item, close to each other, are one entry of a home.

The rule: of the entries of a home (timeline.pull), newest first, a repost is folded if one of the `REACH` entries above
it reposts the same item. An entry that is not folded speaks for the reposts of the same item among the `REACH` entries
below it. So a page depends on nothing but its own entries and `REACH` more on either side, whatever its cursor. Reposts
whose original is hidden count as places like any other entry: how far the rule looks does not depend on what it finds.

Originals are never folded, and nothing is folded into them: they are older than their reposts.

See docs/decisions.md: Folding looks forty entries up and down, and no further.
"""

from collections import defaultdict
from collections.abc import Sequence

from timeline.pull import Candidate, around

REACH = 40
"""Entries."""
FOLDED = -1


def folds(reader_id: int, *, last_id: int, count: int) -> dict[int, int]:
    """For the reposts among the `count` entries below a position: how many others each stands for, or `FOLDED`.

    One query, which costs the same however often the items were reposted; only pages with reposts ask it.
    """
    entries = around(reader_id, last_id=last_id, above=REACH, below=count + REACH)
    places: defaultdict[int, list[int]] = defaultdict(list)
    for place, (_, root) in enumerate(entries):
        if root:
            places[root].append(place)
    above = sum(item_id >= last_id for item_id, _ in entries)
    found = {}
    for same in places.values():
        for rank, place in enumerate(same):
            if above <= place < above + count:
                is_folded = rank > 0 and place - same[rank - 1] <= REACH
                others = sum(place < other <= place + REACH for other in same)
                found[entries[place][0]] = FOLDED if is_folded else others
    return found


def count_shown(candidates: Sequence[Candidate]) -> int:
    """How many of the newest entries of a home, given without a gap, are shown and not folded."""
    places: dict[int, int] = {}
    count = 0
    for place, candidate in enumerate(candidates):
        root = candidate.repost_of
        is_folded = root is not None and place - places.get(root, -REACH - 1) <= REACH
        if root is not None:
            places[root] = place
        count += candidate.is_shown and not is_folded
    return count
