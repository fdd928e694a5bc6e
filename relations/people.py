"""Lists of the people on one side of many relations, newest relation first, with a bound of work."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet, Subquery

from accounts.models import User
from relations.models import Follow
from relations.visibility import users_visible_to

SCAN = 500
"""Relations that one page looks through, should most of them lead to people whom the reader may not know of."""


@dataclass(frozen=True, slots=True)
class PeoplePage:
    """A page of a list. `last_id` is the id of the last relation that was looked at. `has_more` is true if another one
    exists, or may exist beyond the bound of the page's work.
    """

    people: list[User]
    last_id: int | None
    has_more: bool


def people_page(
    follows: QuerySet[Follow], side: str, reader: User | AnonymousUser, *, last_id: int | None, limit: int
) -> PeoplePage:
    """The users on one `side` (follower, followee) of `follows` below `last_id` whom `reader` may know of."""
    if last_id is not None:
        follows = follows.filter(pk__lt=last_id)
    newest = follows.order_by("-pk").values("pk")
    bounds = newest[SCAN - 1 : SCAN]
    shown = Follow.objects.filter(pk__in=newest[:SCAN], **{f"{side}__in": users_visible_to(reader)})
    ordered = shown.select_related(side).annotate(bound=Subquery(bounds)).order_by("-pk")
    rows: list[Any] = list(ordered[: limit + 1])
    people: list[User] = [getattr(row, side) for row in rows[:limit]]
    if len(rows) > limit:
        return PeoplePage(people, rows[limit - 1].pk, has_more=True)
    bound = rows[0].bound if rows else bounds.values_list("pk", flat=True).first()
    last = rows[-1].pk if rows else None
    return PeoplePage(people, bound or last, has_more=bound is not None)
