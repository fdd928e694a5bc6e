from accounts.models import User
from storage.window import INFINITY
from timeline.fold import FOLDED, REACH, folds_among
from timeline.home import HomePage, home_page
from timeline.lists import list_page
from timeline.pull import entries_around
from timeline.senders import Scope
from timeline.truth import verify_ids

SCAN = 60
"""Entries that a page checks."""


def page_above(reader: User, *, min_id: int, max_id: int | None = None, limit: int = 20, list_id: int = 0) -> HomePage:
    """The items directly above `min_id` and below `max_id` (both exclusive), newest first.

    The next page upward starts at `last_id`. None at the end.
    """
    scope = Scope(reader.pk, list_id) if list_id else Scope.home_of(reader)
    entries = entries_around(scope, last_id=min_id + 1, above=SCAN + REACH, below=REACH)
    above = [item_id for item_id, _ in reversed(entries) if item_id > min_id]
    scanned = above[:SCAN]
    if not scanned:
        return HomePage([], None, False, ["sql"])
    folds = folds_among(entries)
    candidates = [item_id for item_id in scanned if folds.get(item_id) != FOLDED]
    shown = {one.item_id for one in verify_ids(scope, candidates) if one.is_shown}
    lowest = [item_id for item_id in candidates if item_id in shown and (max_id is None or item_id < max_id)][:limit]
    last_id = lowest[-1] if len(lowest) == limit else scanned[-1]
    top = last_id + 1 if len(lowest) == limit or len(above) > SCAN else INFINITY
    below = min(top, INFINITY if max_id is None else max_id)
    at = None if below == INFINITY else below
    page = (
        list_page(reader, list_id, last_id=at, limit=limit) if list_id else home_page(reader, last_id=at, limit=limit)
    )
    items = [item for item in page.items if int(item.id) > min_id]
    return HomePage(items, last_id, page.has_more, page.sources, page.others)
