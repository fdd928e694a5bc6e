"""Pages of a list by positions: which rows a page asks for, and where it ends.

A position is an id that falls down the list. A page begins below `last_id`, the position up to which the page before
it has looked, and asks for one row more than it shows: that one proves that there is more.
"""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from storage.ids import NO_BOUND

Row = TypeVar("Row")


class Part(NamedTuple, Generic[Row]):
    """The rows of a page. `has_more`: there are more rows, or may be beyond the bound of the page's work."""

    shown: Sequence[Row]
    last_id: int | None
    has_more: bool


def below(last_id: int | None) -> int:
    """The position below which a page begins: that of its reader, or the top of the list."""
    return NO_BOUND if last_id is None else last_id


def part_of(found: Sequence[Row], limit: int, position: Callable[[Row], int], *, bound: int | None = None) -> Part[Row]:
    """The page of at most `limit` rows of those that were found. `bound`: the position up to which the page has looked,
    where it was not allowed to look further.
    """
    shown = found[:limit]
    if bound is not None and len(found) <= limit:
        return Part(shown, bound, has_more=True)
    return Part(shown, position(shown[-1]) if shown else None, len(found) > limit)


def as_text(position: int | None) -> str | None:
    """A position as the API shows it: in decimal."""
    return None if position is None else str(position)
