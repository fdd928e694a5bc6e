"""Pages of a list.

A page begins below `last_id`, the last position checked. It reads one row more, which proves that there is more.
"""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from storage.ids import NO_BOUND

Row = TypeVar("Row")


class Part(NamedTuple, Generic[Row]):
    """A page of a list. `has_more`: more rows exist, or may exist beyond the bound."""

    shown: Sequence[Row]
    last_id: int | None
    has_more: bool


def below(last_id: int | None) -> int:
    """The position below which a page begins: `last_id`, or the top of the list."""
    return NO_BOUND if last_id is None else last_id


def part_of(found: Sequence[Row], limit: int, position: Callable[[Row], int], *, bound: int | None = None) -> Part[Row]:
    """A page of at most `limit` of the found rows. `bound`: where the search had to stop."""
    shown = found[:limit]
    if bound is not None and len(found) <= limit:
        return Part(shown, bound, has_more=True)
    return Part(shown, position(shown[-1]) if shown else None, len(found) > limit)


def as_text(position: int | None) -> str | None:
    """A position as the API shows it."""
    return None if position is None else str(position)
