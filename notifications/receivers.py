"""The notifications' receivers of signals. Those of items and relations run inside the transaction.

Undone or hidden acts need none: the reading query notices.
"""

from typing import Any

from django.dispatch import receiver

from accounts.export import ExportFile
from accounts.models import User
from accounts.signals import account_purged, export_requested, sessions_ended
from items.models import Item, ScheduledPost
from items.signals import item_edited, item_liked, item_published, poll_ended, scheduled_ended
from notifications import actions, bells, export, forgetting
from notifications.push import actions as push
from relations.models import Follow, FollowRequest
from relations.signals import follow_accepted, follow_requested, followed


@receiver([item_published, item_edited])
def notify_of_item(sender: type[Item], item: Item, **kwargs: Any) -> None:
    """Notify of an item. Runs also after an edit, for new mentions, and after a wider audience."""
    actions.notify_of_item(item=item)


@receiver(item_published)
def ring_bells(sender: type[Item], item: Item, **kwargs: Any) -> None:
    """Notify those with a bell for the sender. Not after an edit."""
    bells.begin(item=item)


@receiver(item_liked)
def notify_of_like(sender: type[Item], item: Item, user: User, **kwargs: Any) -> None:
    """Notify the item's sender of a like."""
    actions.notify_of_like(item=item, user=user)


@receiver(poll_ended)
def notify_of_poll(sender: type[Item], item: Item, user_ids: list[int], **kwargs: Any) -> None:
    """Tell voters and sender that a poll has ended."""
    actions.notify_of_poll(item=item, user_ids=user_ids)


@receiver(scheduled_ended)
def notify_of_scheduled(sender: type[ScheduledPost], user: User, item: Item | None, **kwargs: Any) -> None:
    """Notify the author that a scheduled post was not published, or is held."""
    actions.notify_of_scheduled(user=user, item=item)


@receiver(followed)
def notify_of_follow(sender: type[Follow], follower: User, followee: User, **kwargs: Any) -> None:
    """Notify the followee."""
    actions.notify_of_follow(follower=follower, followee=followee)


@receiver(follow_requested)
def notify_of_request(sender: type[FollowRequest], follower: User, followee: User, **kwargs: Any) -> None:
    """Notify the followee of a follow request."""
    actions.notify_of_request(follower=follower, followee=followee)


@receiver(follow_accepted)
def notify_of_acceptance(sender: type[Follow], follower: User, followee: User, **kwargs: Any) -> None:
    """Notify the follower of the acceptance."""
    actions.notify_of_acceptance(follower=follower, followee=followee)


@receiver(sessions_ended)
def end_pushes(sender: type[User], user: User, **kwargs: Any) -> None:
    """Push nothing to browsers that are logged out."""
    push.end_sessions(user=user)


@receiver(account_purged)
def forget_user(sender: type[User], user: User, limit: int, **kwargs: Any) -> int:
    """Delete at most `limit` rows of a deleted account."""
    return forgetting.forget_user(user=user, limit=limit)


@receiver(export_requested)
def export_choices(sender: type[User], reader: User, **kwargs: Any) -> list[ExportFile]:
    """The notifications' part of the data export."""
    return export.files(reader)
