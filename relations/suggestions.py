"""Whom to follow, for those who follow nobody yet."""

from django.db.models import Exists, OuterRef

from accounts.models import User, UserQuerySet
from feedsite.replica import PRIMARY, lagging
from relations.models import Block, Follow, Mute
from relations.visibility import users_visible_to


def suggestions(reader: User, *, count: int = 6) -> list[User]:
    """The most followed users whom the reader neither follows nor has turned away from.

    Read in the order of an index, past those who are followed or turned away from.
    """
    users, on = lagging(reader.pk, lambda on: (list(_best(reader).using(on)[:count]), on))
    return users if on == PRIMARY else list(_best(reader).filter(pk__in=[user.pk for user in users]))


def _best(reader: User) -> UserQuerySet:
    turned_away = (
        Follow.objects.filter(follower=reader, followee=OuterRef("pk")),
        Block.objects.filter(blocker=reader, blocked=OuterRef("pk")),
        Mute.objects.filter(muter=reader, muted=OuterRef("pk")),
    )
    users = users_visible_to(reader).exclude(pk=reader.pk)
    for relations in turned_away:
        users = users.exclude(Exists(relations))
    return users.order_by("-follower_count", "pk")
