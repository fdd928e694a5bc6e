"""What relations do at the news of accounts."""

from typing import Any

from django.dispatch import receiver

from accounts.models import User
from accounts.signals import reactivated
from relations.models import Follow


@receiver(reactivated)
def show_to_followers_again(sender: type[User], user: User, **kwargs: Any) -> None:
    """Followers' windows have forgotten what an inactive sender published, so they are rebuilt."""
    followers = list(Follow.objects.filter(followee=user).values_list("follower", flat=True))
    # Locked in the order of ids, as everybody does who changes many users.
    locked = User.objects.filter(pk__in=[user.pk, *followers]).order_by("pk")
    list(locked.select_for_update(no_key=True).values_list("pk"))
    User.objects.get_queryset().filter(pk__in=followers).advance_epoch()
