"""Lists of people on one side of relations, with bounded work."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from accounts.rows import user_columns, user_of
from relations.models import Mute
from relations.rules import READER, follows, has_requested, may_know_of
from storage.connections import fetch, id_array
from storage.paging import below, part_of

SCAN = 500
"""Relations that one page checks, in case most people are hidden from the reader."""
WAITING_CAP = 99


def any_request(user: str) -> str:
    """Whether anybody asks to follow a user."""
    return f"EXISTS (SELECT FROM relations_followrequest f WHERE f.followee_id = {user})"


def count_waiting(user: str) -> str:
    """A query of the number of shown follow requests."""
    return f"""
    SELECT count(*) FROM (
        SELECT FROM (SELECT * FROM relations_followrequest WHERE followee_id = {user} ORDER BY id DESC LIMIT {SCAN}) r
        JOIN accounts_user u ON u.id = r.follower_id
        WHERE {may_know_of("u", user)} LIMIT {WAITING_CAP}
    ) shown
    """


class PeopleTable(NamedTuple):
    """The people in column `other` of `table`, whose owner is in column `own`."""

    table: str
    own: str
    other: str
    shown: str = may_know_of("u", READER)
    """A condition on the user `u`: whether the reader may see them."""
    place: str = "id"
    """The column that orders one owner's rows, by an index."""
    kept: str = "true"
    """A condition on the row `f`."""


FOLLOWERS = PeopleTable("relations_follow", "followee_id", "follower_id")
FOLLOWEES = PeopleTable("relations_follow", "follower_id", "followee_id")
REQUESTS = PeopleTable("relations_followrequest", "followee_id", "follower_id")
BELLS = PeopleTable("relations_follow", "follower_id", "followee_id", kept="f.bell")
# The reader's own blocks and mutes show even users who block the reader: the reader knew them before.
BLOCKS = PeopleTable("relations_block", "blocker_id", "blocked_id", shown="u.is_active")
MUTES = PeopleTable("relations_mute", "muter_id", "muted_id", shown="u.is_active")


@dataclass(frozen=True, slots=True)
class PeoplePage:
    """A page of people. Ids are of relations: the last one checked, and both ends. `has_more`: another exists, or may
    exist.
    """

    people: list[User]
    last_id: int | None
    has_more: bool
    newest_id: int | None = None
    oldest_id: int | None = None


class _PersonRow(NamedTuple):
    bound: int | None
    relation_id: int | None
    columns: Sequence[Any]
    """The columns of accounts.rows.user_columns."""

    @classmethod
    def of(cls, row: Sequence[Any]) -> "_PersonRow":
        bound, relation_id, *columns = row
        return cls(bound, relation_id, columns)


@cache
def _statement(listed: PeopleTable, order: str) -> str:
    place = f"f.{listed.place}"
    first = f"""
        SELECT {place} AS id, f.{listed.other} AS user_id FROM {listed.table} f
        WHERE f.{listed.own} = %(owner)s AND {listed.kept} AND {place} > %(above)s AND {place} < %(below)s
        ORDER BY {place} {order}
    """
    return f"""
        WITH page AS MATERIALIZED (
            SELECT listed.id, known.* FROM ({first} LIMIT %(scan)s) listed CROSS JOIN LATERAL (
                SELECT {user_columns("u")} FROM accounts_user u
                WHERE u.id = listed.user_id AND {listed.shown}
                OFFSET 0
            ) known
            ORDER BY listed.id {order} LIMIT %(count)s
        ),
        bound AS MATERIALIZED (
            SELECT CASE WHEN (SELECT count(*) FROM page) < %(count)s
                THEN (SELECT last.id FROM ({first}) last OFFSET %(scan)s - 1 LIMIT 1) END AS id
        )
        SELECT bound.id, page.* FROM bound LEFT JOIN page ON true
    """


def people_page(
    owner_id: int,
    listed: PeopleTable,
    reader: User | AnonymousUser,
    *,
    last_id: int | None,
    limit: int,
    since_id: int = 0,
    min_id: int | None = None,
) -> PeoplePage:
    """People whom `reader` may see. With `min_id`, those directly above it."""
    order, above = ("DESC", since_id) if min_id is None else ("ASC", max(since_id, min_id))
    params = {
        "owner": owner_id,
        "reader": reader.pk or 0,
        "above": above,
        "below": below(last_id),
        "scan": SCAN,
        "count": limit + 1,
    }
    found = fetch(_statement(listed, order), params, into=_PersonRow.of)
    bound, way = found[0].bound, -1 if min_id is None else 1
    rows = [(row.relation_id, row.columns) for row in found if row.relation_id is not None]
    rows.sort(key=lambda row: way * row[0])
    part = part_of(rows, limit, itemgetter(0), bound=bound)
    shown = part.shown if min_id is None else part.shown[::-1]
    places: list[int | None] = [place for place, _columns in shown] or [None]
    people = [user_of(columns) for _place, columns in shown]
    return PeoplePage(people, part.last_id, part.has_more, places[0], places[-1])


def mutes_among(reader: User, people: Sequence[User]) -> dict[int, Mute]:
    """The reader's mutes of these people, by muted id."""
    return {mute.muted_id: mute for mute in Mute.objects.filter(muter=reader, muted__in=people)}


def followable_among(reader: User, user_ids: Collection[int]) -> dict[int, User]:
    """Users whom the reader neither follows nor asks to."""
    if not user_ids:
        return {}
    found = fetch(_followable_sql(), {"ids": id_array(user_ids), "reader": reader.pk}, into=user_of)
    return {user.pk: user for user in found}


@cache
def _followable_sql() -> str:
    return f"""
        SELECT {user_columns("u")} FROM unnest(%(ids)s::bigint[]) AS asked (id) JOIN accounts_user u ON u.id = asked.id
        WHERE u.id <> {READER} AND NOT {follows(READER, "u.id")} AND NOT {has_requested(READER, "u.id")}
    """


def waiting_requests(user: User) -> int:
    """Number of shown follow requests, at most `WAITING_CAP`."""
    return int(fetch(count_waiting(READER), {"reader": user.pk})[0][0])
