"""Whom to follow, for those who follow nobody yet."""

from django.db.models import Exists, OuterRef

from accounts.models import User
from relations.models import Block, Follow, Mute
from relations.visibility import users_visible_to


def suggestions(reader: User, *, count: int = 6) -> list[User]:
    """The most followed users whom the reader neither follows nor has turned away from.

    It sorts all users, so it is for empty homes only.
    """
    turned_away = (
        Follow.objects.filter(follower=reader, followee=OuterRef("pk")),
        Block.objects.filter(blocker=reader, blocked=OuterRef("pk")),
        Mute.objects.filter(muter=reader, muted=OuterRef("pk")),
    )
    users = users_visible_to(reader).exclude(pk=reader.pk)
    for relations in turned_away:
        users = users.exclude(Exists(relations))
    return list(users.order_by("-follower_count", "pk")[:count])
