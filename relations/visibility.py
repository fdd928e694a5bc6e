"""Which users a reader sees, and relations to them."""

from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import NamedTuple

from django.contrib.auth.models import AnonymousUser
from django.db.models import BooleanField
from django.db.models.expressions import RawSQL

from accounts.models import User, UserQuerySet, is_username
from accounts.rows import user_columns, user_of
from relations.rules import (
    READER,
    blocks,
    follows,
    follows_without_reposts,
    has_bell,
    has_requested,
    may_know_of,
    mutes,
    note_about,
)
from storage.connections import fetch, id_array

OF_MUTE = f"FROM relations_mute m WHERE m.muter_id = {READER} AND m.muted_id = u.id"
FOLLOWER_COUNT = """(u.follower_count + coalesce(
        (SELECT sum(c.change) FROM relations_followercountchange c WHERE c.user_id = u.id), 0))::bigint"""
"""The exact number of followers of the user `u`: folded plus staged, in one snapshot."""
FOLLOWING_COUNT = "u.following_count - u.uncounted_followees"
"""The number of shown users whom the user `u` follows."""
STANDING = f"""
    SELECT {FOLLOWER_COUNT},
        {FOLLOWING_COUNT},
        {follows(READER, "u.id")}, {follows("u.id", READER)}, {blocks(READER, "u.id")}, {mutes(READER, "u.id")},
        {follows_without_reposts(READER, "u.id")}, {has_requested(READER, "u.id")}, {has_requested("u.id", READER)},
        (SELECT m.expires_at {OF_MUTE}), coalesce((SELECT m.notifications {OF_MUTE}), false),
        {note_about(READER, "u.id")}, {has_bell(READER, "u.id")}
    FROM accounts_user u WHERE u.id = %(user)s
"""


FOLLOWING = f"SELECT {follows('%(follower)s', '%(followee)s')}"
FOLLOWED = f"SELECT one.id FROM unnest(%(users)s::bigint[]) AS one (id) WHERE {follows(READER, 'one.id')}"


class ProfileRelation(NamedTuple):
    """A user's exact counts, and a reader's relation to them."""

    followers: int
    following_count: int
    following: bool
    followed_by: bool
    blocking: bool
    muting: bool
    hiding_reposts: bool
    """Whether the reader follows without the user's reposts."""
    requested: bool
    """Whether the reader asks to follow the user."""
    requested_by: bool
    """Whether the user asks to follow the reader."""
    muted_until: datetime | None
    """When the reader's mute ends, if it has an end."""
    muting_notifications: bool
    """Whether the mute covers notifications."""
    note: str
    """What the reader noted about the user."""
    bell: bool
    """Whether the reader is notified of each post of the user, or will be once they accept."""


def users_visible_to(reader: User | AnonymousUser) -> UserQuerySet:
    """Users that `reader` may know of. In a subquery of users the alias differs."""
    rule = may_know_of("accounts_user", str(int(reader.pk or 0)))
    return User.objects.get_queryset().filter(RawSQL(rule, [], output_field=BooleanField()))  # noqa: S611 (a constant and a number)


def find_user(username: str, reader: User | AnonymousUser) -> User | None:
    """The user of this name, if `reader` may know of them."""
    if not is_username(username):
        return None
    rows = fetch(_visible_user_query(), {"username": username.lower(), "reader": reader.pk or 0})
    return user_of(rows[0]) if rows else None


def visible_user(username: str, reader: User | AnonymousUser) -> User:
    """Like `find_user`. Raises User.DoesNotExist, the same for unknown and hidden users."""
    user = find_user(username, reader)
    if user is None:
        raise User.DoesNotExist
    return user


VISIBLE_NAMES = f"""
    SELECT lower(u.username) FROM accounts_user u WHERE lower(u.username) = ANY(%(names)s::text[])
    AND {may_know_of("u", READER)}
"""


def visible_names(names: Iterable[str], reader: User | AnonymousUser) -> set[str]:
    """The lower-case names that `reader` may know of."""
    asked = [name for name in names if is_username(name)]
    if not asked:
        return set()
    return {row[0] for row in fetch(VISIBLE_NAMES, {"names": asked, "reader": reader.pk or 0})}


@cache
def _visible_user_query() -> str:
    return f"""
        SELECT {user_columns("u")} FROM accounts_user u WHERE lower(u.username) = %(username)s
        AND {may_know_of("u", READER)}
    """


def followed_among(reader: User, user_ids: Iterable[int]) -> set[int]:
    """Those of these users whom the reader follows."""
    return {user_id for (user_id,) in fetch(FOLLOWED, {"users": id_array(user_ids), "reader": reader.pk})}


def is_following(follower_id: int, followee_id: int) -> bool:
    """Whether one user follows another."""
    return bool(fetch(FOLLOWING, {"follower": follower_id, "followee": followee_id})[0][0])


def profile_relation(user: User, reader: User | AnonymousUser) -> ProfileRelation:
    """Counts and relations in one query. Strangers have no relations."""
    return ProfileRelation(*fetch(STANDING, {"user": user.pk, "reader": reader.pk or 0})[0])
