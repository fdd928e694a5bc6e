"""What relations do at the news of accounts."""

from typing import Any

from django.dispatch import receiver

from accounts.models import User
from accounts.signals import reactivated
from relations.models import Follow


@receiver(reactivated)
def show_to_followers_again(sender: type[User], user: User, **kwargs: Any) -> None:
    """Followers' windows have forgotten what an inactive sender published, so they are rebuilt."""
    followers = Follow.objects.filter(followee=user).values("follower")
    affected = User.objects.get_queryset().filter(pk__in=followers)
    # Locked in the order of ids, as everybody does who changes many users.
    list(affected.order_by("pk").select_for_update(no_key=True).values_list("pk"))
    affected.advance_epoch()
