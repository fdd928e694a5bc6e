"""Lists of the people on one side of many relations, newest relation first, with a bound of work."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from accounts.rows import user_columns, user_of
from relations.followers import LAST_ID
from storage.connections import fetch

SCAN = 500
"""Relations that one page looks through, should most of them lead to people whom the reader may not know of."""
Side = Literal["follower", "followee"]


@dataclass(frozen=True, slots=True)
class PeoplePage:
    """A page of a list. `last_id` is the id of the last relation that was looked at. `has_more` is true if another one
    exists, or may exist beyond the bound of the page's work.
    """

    people: list[User]
    last_id: int | None
    has_more: bool


class _Row(NamedTuple):
    """A row of `_statement`: its bound, and a relation with the user it leads to, or none where the page is empty."""

    bound: int | None
    relation_id: int | None
    columns: Sequence[Any]
    """accounts.rows.user_columns"""

    @classmethod
    def of(cls, row: Sequence[Any]) -> "_Row":
        bound, relation_id, *columns = row
        return cls(bound, relation_id, columns)


@cache
def _statement(side: Side) -> str:
    """For `_Row`s: the bound is the last of `scan` relations where they did not fill the page."""
    other = "followee" if side == "follower" else "follower"
    newest = f"""
        SELECT f.id, f.{side}_id AS user_id FROM relations_follow f
        WHERE f.{other}_id = %(user)s AND f.id < %(below)s ORDER BY f.id DESC
    """  # noqa: S608 (our own columns)
    return f"""
        WITH page AS MATERIALIZED (
            SELECT listed.id, known.* FROM ({newest} LIMIT %(scan)s) listed CROSS JOIN LATERAL (
                SELECT {user_columns("u")} FROM accounts_user u WHERE u.id = listed.user_id AND u.is_active
                    AND NOT EXISTS (SELECT FROM relations_block b
                        WHERE b.blocker_id = u.id AND b.blocked_id = %(reader)s OFFSET 0)
                OFFSET 0
            ) known
            ORDER BY listed.id DESC LIMIT %(count)s
        ),
        bound AS MATERIALIZED (
            SELECT CASE WHEN (SELECT count(*) FROM page) < %(count)s
                THEN (SELECT last.id FROM ({newest}) last OFFSET %(scan)s - 1 LIMIT 1) END AS id
        )
        SELECT bound.id, page.* FROM bound LEFT JOIN page ON true
    """  # noqa: S608


def people_page(user: User, side: Side, reader: User | AnonymousUser, *, last_id: int | None, limit: int) -> PeoplePage:
    """Those who follow `user` (side follower), or whom they follow (side followee), below `last_id`, as far as `reader`
    may know of them.
    """
    below = LAST_ID if last_id is None else last_id
    params = {"user": user.pk, "reader": reader.pk or 0, "below": below, "scan": SCAN, "count": limit + 1}
    found = fetch(_statement(side), params, into=_Row.of)
    bound = found[0].bound
    rows = sorted((row for row in found if row.relation_id is not None), key=lambda row: -(row.relation_id or 0))
    page = rows[:limit]
    people = [user_of(row.columns) for row in page]
    if bound is not None:
        return PeoplePage(people, bound, has_more=True)
    return PeoplePage(people, page[-1].relation_id if page else None, len(rows) > limit)
