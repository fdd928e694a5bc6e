"""Where the reader was in their home, and where the last visit ended.

A visit ends with a pause of `GAP`. The next one offers that place.
"""

from datetime import timedelta
from typing import Any, NamedTuple

from accounts.about.site import current
from accounts.models import User
from items.profiles.profile import HELD_POSTS
from storage.connections import LAZILY, fetch
from timeline.home import new_count
from web.rest import PAGE

GAP = timedelta(minutes=10)
"""How long a reader must be away before home offers to continue where they left off."""
INTERVAL = timedelta(seconds=10)
"""A reader's position is written at most once in this time."""

# Where the last visit ended, unless the reader has reached it since.
LEFT = "CASE WHEN p.updated_at <= now() - %(gap)s THEN p.item_id ELSE p.left_id END"
READ = f"""
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint, {LEFT},
        p.reader_id IS NULL OR p.updated_at <= now() - %(interval)s, ARRAY({HELD_POSTS})
    FROM (SELECT) once LEFT JOIN timeline_readingposition p ON p.reader_id = %(reader)s
"""
# The statement itself refuses writes that come too soon.
WRITE = f"""
    INSERT INTO timeline_readingposition AS p (reader_id, item_id, updated_at)
    SELECT %(reader)s, least(%(item)s::bigint, feedsite_next_id()), now() WHERE {LAZILY}
    ON CONFLICT (reader_id) DO UPDATE SET
        left_id = CASE WHEN excluded.item_id > {LEFT} THEN {LEFT} END,
        item_id = excluded.item_id, updated_at = excluded.updated_at
    WHERE p.updated_at <= now() - %(interval)s
    RETURNING item_id
"""
FORGET = """
    UPDATE timeline_readingposition SET left_id = NULL, updated_at = now() WHERE reader_id = %(reader)s
    RETURNING item_id
"""


class ReadingState(NamedTuple):
    """What a page of home reads before its items: the time, the stored position, and held posts."""

    now: int
    """The database's clock in milliseconds. What becomes visible later is new to the page."""
    left_id: int | None
    """Where the reader left off."""
    is_due: bool
    """Whether a write would be accepted now."""
    held: list[int]
    """The reader's newest held posts, which are not part of home."""


class ResumeOffer(NamedTuple):
    """An offer to continue where the reader left off."""

    last_id: int
    """The page below this id begins where they were."""
    between: int
    """Posts above that place."""
    capped: bool
    """Whether there may be more posts than counted."""


def reading_state(reader: User) -> ReadingState:
    """Read the reader's `ReadingState`."""
    return ReadingState(*fetch(READ, _params(reader))[0])


def save_position(*, reader: User, item_id: int) -> bool:
    """Store the reader's position. It is never in the future. False within `INTERVAL` of the last write or in read-only
    mode.
    """
    return current().is_writable and bool(fetch(WRITE, _params(reader) | {"item": item_id}))


def forget_position(*, reader: User) -> None:
    """Stop offering the place."""
    fetch(FORGET, {"reader": reader.pk})


def resume_offer(reader: User, state: ReadingState) -> ResumeOffer | None:
    """The offer to continue where the last visit ended. None if less than a page lies in between."""
    if state.left_id is None:
        return None
    between, capped = new_count(reader, since_id=state.left_id)
    return ResumeOffer(state.left_id + 1, between, capped) if between >= PAGE else None


def _params(reader: User) -> dict[str, Any]:
    return {"reader": reader.pk, "gap": GAP, "interval": INTERVAL}
