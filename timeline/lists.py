"""The timeline of a list, from PostgreSQL alone, with home's statements."""

from accounts.models import User
from timeline.home import HomePage, HomeWalk, count_above
from timeline.senders import Scope


def list_page(reader: User, list_id: int, *, last_id: int | None = None, limit: int = 20) -> HomePage:
    """The items of a list below `last_id` (exclusive, need not exist), newest first."""
    walk = HomeWalk.of(reader, Scope(reader.pk, list_id), limit, last_id)
    walk.fill_from_sql()
    return walk.page()


def list_new_count(reader: User, list_id: int, *, since_id: int) -> tuple[int, bool]:
    """How many new items a list has above `since_id`, and whether there may be more. Bounded like home.new_count."""
    return count_above(Scope(reader.pk, list_id), since_id=since_id)
