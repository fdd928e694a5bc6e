"""The timeline of a list, from PostgreSQL alone, with home's statements.

See docs/decisions.md: Lists have no windows.
"""

from accounts.models import User
from timeline import home
from timeline.fold import count_new
from timeline.home import Page, Walk, from_sql, page_of
from timeline.pull import pull_above
from timeline.senders import Scope


def list_page(reader: User, list_id: int, *, last_id: int | None = None, limit: int = 20) -> Page:
    """The items of a list below `last_id` (exclusive, need not exist), newest first."""
    walk = Walk.of(reader, limit, last_id, list_id)
    from_sql(walk)
    return page_of(walk)


def list_new_count(reader: User, list_id: int, *, since_id: int) -> tuple[int, bool]:
    """How many new items a list has above `since_id`, and whether there may be more. Bounded like home.new_count."""
    scope, cap, scan = Scope(reader.pk, list_id), home.NEW_CAP, home.NEW_SCAN
    candidates = pull_above(scope, since=since_id, count=scan, enough=cap + 1)
    if candidates is None:
        return cap, True
    count = count_new(scope, candidates)
    return min(count, cap), count > cap or len(candidates) == scan
