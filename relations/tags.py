"""Followed hashtags, in canonical form: the verbs, and their follower's reads.

The follower's row counts them, so users without any cost no statement for them.

See docs/decisions.md: A followed hashtag is an outbox.
"""

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.db.models import F

from accounts.models import User
from relations.models import TagFollow
from relations.rules import followed_tags
from storage.connections import fetch
from storage.paging import below, part_of
from web.refusals import ConflictError

TAGS = 100
"""Most followed hashtags of a user: a page of home costs one index probe for each."""


class TagCapError(ConflictError):
    """The user would follow more than `TAGS` hashtags."""


# --- Verbs -----------------------------------------------------------------------------------------------
# Two statements: the second of two first followers waits for the other's row and then sees it.
KNOW = "INSERT INTO relations_tag (name) VALUES (%(tag)s) ON CONFLICT DO NOTHING RETURNING id"
FOLLOW = """
    INSERT INTO relations_tagfollow (user_id, tag_id) SELECT %(user)s, id FROM relations_tag WHERE name = %(tag)s
    RETURNING id
"""


@transaction.atomic
def follow_tag(*, user: User, tag: str) -> bool:
    """Follow a hashtag. False if the user follows it already. Raises TagCapError."""
    count = User.objects.locked().values_list("followed_tag_count", flat=True).get(pk=user.pk)
    if TagFollow.objects.filter(user=user, tag__name=tag).exists():
        return False
    if count >= TAGS:
        raise TagCapError(f"You can follow up to {TAGS} hashtags.")
    params = {"user": user.pk, "tag": tag}
    fetch(KNOW, params)
    fetch(FOLLOW, params)
    User.objects.filter(pk=user.pk).update(followed_tag_count=F("followed_tag_count") + 1)
    return True


@transaction.atomic
def unfollow_tag(*, user: User, tag: str) -> bool:
    """Stop following a hashtag. False if the user does not follow it."""
    User.objects.locked().values_list("pk").get(pk=user.pk)
    gone, _ = TagFollow.objects.filter(user=user, tag__name=tag).delete()
    if gone:
        User.objects.filter(pk=user.pk).update(followed_tag_count=F("followed_tag_count") - 1)
    return bool(gone)


# --- Reads -----------------------------------------------------------------------------------------------
class FollowedTag(NamedTuple):
    """A followed hashtag, with the id of the follow."""

    id: int
    name: str
    since: datetime


FOLLOWED = f"""
    {followed_tags("%(user)s", "h.id, g.name, h.created_at")} AND h.id < %(below)s AND h.id > %(above)s
"""
FOLLOWED_DOWN, FOLLOWED_UP = (f"{FOLLOWED} ORDER BY h.id {order} LIMIT %(count)s" for order in ("DESC", "ASC"))


class TagPage(NamedTuple):
    """Followed hashtags. `last_id`: the last follow checked."""

    tags: Sequence[FollowedTag]
    last_id: int | None
    has_more: bool


def followed_tags_page(
    user: User, *, last_id: int | None = None, limit: int = TAGS, since_id: int = 0, min_id: int | None = None
) -> TagPage:
    """A user's followed hashtags. With `min_id`, those directly above it."""
    query, above = (FOLLOWED_DOWN, since_id) if min_id is None else (FOLLOWED_UP, max(since_id, min_id))
    params = {"user": user.pk, "below": below(last_id), "above": above, "count": limit + 1}
    part = part_of(fetch(query, params, into=FollowedTag._make), limit, attrgetter("id"))
    return TagPage(part.shown if min_id is None else part.shown[::-1], part.last_id, part.has_more)


AMONG = f"{followed_tags('%(user)s')} AND g.name = ANY(%(tags)s::text[])"


def followed_tags_among(user: User | AnonymousUser, tags: Sequence[str]) -> set[str]:
    """Those of the hashtags that a user follows."""
    if not (tags and isinstance(user, User) and user.followed_tag_count):
        return set()
    return {row[0] for row in fetch(AMONG, {"user": user.pk, "tags": list(tags)})}


def follows_tag(user: User | AnonymousUser, tag: str) -> bool:
    """Whether a user follows a hashtag."""
    return bool(followed_tags_among(user, [tag]))
