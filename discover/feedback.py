from django.db import transaction

from accounts.models import User
from discover.models import IssuedPage, NotInterested
from items.models import Item
from storage.connections import fetch

ADD = """
    INSERT INTO discover_notinterested (user_id, item_id) VALUES (%(user)s, %(item)s)
    ON CONFLICT DO NOTHING RETURNING id
"""
REMOVE = "DELETE FROM discover_notinterested WHERE user_id = %(user)s AND item_id = %(item)s RETURNING id"


def not_interested(*, user: User, item: Item) -> bool:
    """Never recommend an item or a repost's original, and less like it."""
    return bool(fetch(ADD, {"user": user.pk, "item": item.repost_of_id or item.pk}))


def interested_again(*, user: User, item: Item) -> bool:
    """Undo `not_interested`."""
    return bool(fetch(REMOVE, {"user": user.pk, "item": item.repost_of_id or item.pk}))


@transaction.atomic
def forget_user(*, user: User, limit: int) -> int:
    """Delete a deleted account's unwanted items and issued pages, at most `limit` of each."""
    unwanted = NotInterested.objects.filter(user=user).order_by("pk").values("pk")[:limit]
    issued = IssuedPage.objects.filter(user=user).order_by("pk").values("pk")[:limit]
    return (
        NotInterested.objects.filter(pk__in=unwanted).delete()[0] + IssuedPage.objects.filter(pk__in=issued).delete()[0]
    )
