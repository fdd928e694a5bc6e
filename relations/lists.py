"""Lists: the verbs that change them, and their owner's reads. Nobody else sees a list.

A bool result says whether anything changed. Each verb locks the owner's row first, so the caps hold. A change that may
show members of exclusive lists at home again changes the owner's window epoch.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from accounts.models import User
from accounts.rows import user_columns, user_of
from relations import rules
from relations.actions import NotFollowedError, SelfRelationError
from relations.models import Follow, List, ListMember
from storage.connections import fetch
from storage.paging import below, part_of
from web.letters import folded
from web.refusals import ConflictError

LISTS = 50
"""Most lists of a user."""
MEMBERS = 500
"""Most members of a list: a page costs one index probe for each."""


class ListCapError(ConflictError):
    """The user would have more than `LISTS` lists."""


class MemberCapError(ConflictError):
    """The list would have more than `MEMBERS` members."""


NAME_LENGTH = 60
"""Characters of a name to find that count."""
FOUND = 20
"""Most followees that a search within a list finds."""
CALLED = f"""
    SELECT f.is_member, {{columns}} FROM (
        {
    rules.followees(
        "%(owner)s",
        "followee_id AS id, EXISTS (SELECT FROM relations_listmember m"
        " WHERE m.list_id = %(list)s AND m.member_id = followee_id OFFSET 0) AS is_member",
    )
}
    ) f JOIN accounts_user u ON u.id = f.id
    WHERE {rules.may_know_of("u", "%(owner)s")} AND NOT EXISTS (
        SELECT FROM unnest(%(words)s::text[]) AS word
        WHERE strpos(coalesce(u.folded_name, feedsite_name(u.username, u.display_name)), word) = 0)
    ORDER BY lower(u.username) LIMIT {FOUND}
"""


class FoundFollowee(NamedTuple):
    """A followee, and whether the list has them."""

    person: User
    is_member: bool


def followees_called(owner: User, list_id: int, name: str) -> list[FoundFollowee]:
    """The owner's followees with every word of `name` in their names."""
    words = folded(name.strip().removeprefix("@")).split()
    if not words:
        return []
    rows = fetch(CALLED.format(columns=user_columns("u")), {"owner": owner.pk, "list": list_id, "words": words})
    return [FoundFollowee(user_of(columns), is_member) for is_member, *columns in rows]


# --- Verbs -----------------------------------------------------------------------------------------------
@transaction.atomic
def create(*, owner: User, title: str, is_exclusive: bool = False) -> List:
    """Create an empty list. Raises ListCapError."""
    _lock(owner)
    if List.objects.filter(owner=owner).count() >= LISTS:
        raise ListCapError(f"You can have up to {LISTS} lists.")
    return List.objects.create(owner=owner, title=title, is_exclusive=is_exclusive)


@transaction.atomic
def change(*, owner: User, list_id: int, title: str | None = None, is_exclusive: bool | None = None) -> None:
    """Change a list. Raises List.DoesNotExist."""
    changed = _lock_list(owner, list_id)
    if changed.is_exclusive and is_exclusive is False:
        User.objects.advance_epoch_of(owner.pk)
    changed.title = changed.title if title is None else title
    changed.is_exclusive = changed.is_exclusive if is_exclusive is None else is_exclusive
    changed.save(update_fields=["title", "is_exclusive"])


@transaction.atomic
def delete(*, owner: User, list_id: int) -> None:
    """Delete a list. Raises List.DoesNotExist."""
    gone = _lock_list(owner, list_id)
    gone.delete()
    if gone.is_exclusive:
        User.objects.advance_epoch_of(owner.pk)


def add(*, owner: User, list_id: int, member: User) -> bool:
    """Add a followee to a list. Raises what `add_each` raises."""
    return bool(add_each(owner=owner, list_id=list_id, members=[member.pk]))


@transaction.atomic
def add_each(*, owner: User, list_id: int, members: Collection[int]) -> int:
    """Add followees, all or none. Returns how many were new.

    Raises List.DoesNotExist, NotFollowedError, MemberCapError and SelfRelationError.
    """
    if owner.pk in members:
        raise SelfRelationError
    to = _lock_list(owner, list_id)
    there = ListMember.objects.filter(list=to, member__in=members).values_list("member_id", flat=True)
    new = sorted(set(members) - set(there))
    if not new:
        return 0
    if Follow.objects.filter(follower=owner, followee__in=new).count() < len(new):
        raise NotFollowedError
    if ListMember.objects.filter(list=to).count() + len(new) > MEMBERS:
        raise MemberCapError(f"A list can have up to {MEMBERS} members.")
    ListMember.objects.bulk_create(ListMember(list=to, owner=owner, member_id=member) for member in new)
    return len(new)


@transaction.atomic
def add_by_title(*, owner: User, title: str, member: User) -> bool:
    """Add a followee to the owner's oldest list of this title, or a new one. Raises what `create` and `add` raise."""
    _lock(owner)
    found = List.objects.filter(owner=owner, title=title).order_by("pk").first() or create(owner=owner, title=title)
    return add(owner=owner, list_id=found.pk, member=member)


def remove(*, owner: User, list_id: int, member: User) -> bool:
    """Remove a member from a list. Raises List.DoesNotExist."""
    return bool(remove_each(owner=owner, list_id=list_id, members=[member.pk]))


@transaction.atomic
def remove_each(*, owner: User, list_id: int, members: Collection[int]) -> int:
    """Remove members. Returns how many. Raises List.DoesNotExist."""
    of = _lock_list(owner, list_id)
    gone, _ = ListMember.objects.filter(list=of, member__in=members).delete()
    if gone and of.is_exclusive:
        User.objects.advance_epoch_of(owner.pk)
    return gone


@transaction.atomic
def change_memberships(*, owner: User, member: User, into: Iterable[int], out_of: Iterable[int]) -> None:
    """Add a followee to lists and remove them from others, all or none."""
    for list_id in out_of:
        remove(owner=owner, list_id=list_id, member=member)
    for list_id in into:
        add(owner=owner, list_id=list_id, member=member)


def _lock_list(owner: User, list_id: int) -> List:
    _lock(owner)
    return List.objects.get(owner=owner, pk=list_id)


def _lock(owner: User) -> None:
    User.objects.locked().values_list("pk").get(pk=owner.pk)


# --- Reads -----------------------------------------------------------------------------------------------
class OwnedList(NamedTuple):
    """A list as its owner reads it."""

    id: int
    title: str
    is_exclusive: bool
    created_at: datetime
    members: int
    has_person: bool
    """Whether `person_id` is a member."""


def _owned_lists(owner: User, person_id: int) -> QuerySet[List, Any]:
    members = ListMember.objects.filter(list=OuterRef("pk"))
    size = members.values("list").annotate(size=Count("*")).values("size")
    return (
        List.objects.filter(owner=owner)
        .annotate(size=Coalesce(Subquery(size), 0), has_person=Exists(members.filter(member=person_id)))
        .values_list("pk", "title", "is_exclusive", "created_at", "size", "has_person")
    )


def lists_of(owner: User, *, person_id: int = 0, last_id: int | None = None, limit: int = LISTS) -> list[OwnedList]:
    """The owner's lists below `last_id`, newest first."""
    rows = _owned_lists(owner, person_id).filter(pk__lt=below(last_id)).order_by("-pk")
    return [OwnedList(*row) for row in rows[:limit]]


def own_list(owner: User, list_id: int) -> OwnedList:
    """One of the owner's lists. Raises List.DoesNotExist."""
    return OwnedList(*_owned_lists(owner, person_id=0).get(pk=list_id))


def sorted_by_title(lists: Iterable[OwnedList]) -> list[OwnedList]:
    """Lists sorted by title."""
    return sorted(lists, key=lambda one: (one.title.casefold(), one.id))


class MembersPage(NamedTuple):
    """A page of a list's members. Ids are of memberships: the last one checked, and both ends."""

    people: list[User]
    last_id: int | None
    has_more: bool
    newest_id: int | None
    oldest_id: int | None


class _Member(NamedTuple):
    id: int
    user: User

    @classmethod
    def of(cls, row: Sequence[Any]) -> "_Member":
        member_id, *columns = row
        return cls(member_id, user_of(columns))


@cache
def _members(order: str) -> str:
    """The statement for a page of members. They are few, so hidden ones are filtered one by one."""
    return f"""
        SELECT m.id, {user_columns("u")}
        FROM (
            {rules.members("%(list)s", "id, member_id")} AND owner_id = %(owner)s
            AND id < %(below)s AND id > %(above)s
        ) m
        JOIN accounts_user u ON u.id = m.member_id
        WHERE {rules.may_know_of("u", "%(owner)s")} ORDER BY m.id {order} LIMIT %(count)s
    """


def members_page(
    owner: User,
    list_id: int,
    *,
    last_id: int | None = None,
    limit: int = MEMBERS,
    since_id: int = 0,
    min_id: int | None = None,
) -> MembersPage:
    """The members that the owner may know of. With `min_id`, those directly above it."""
    order, above = ("DESC", since_id) if min_id is None else ("ASC", max(since_id, min_id))
    params = {
        "owner": owner.pk,
        "list": list_id,
        "above": above,
        "below": below(last_id),
        "count": limit + 1,
    }
    rows = fetch(_members(order), params, into=_Member.of)
    part = part_of(rows, limit, attrgetter("id"))
    shown = part.shown if min_id is None else part.shown[::-1]
    newest, oldest = (shown[0].id, shown[-1].id) if shown else (None, None)
    return MembersPage([member.user for member in shown], part.last_id, part.has_more, newest, oldest)
