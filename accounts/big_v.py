"""The verbs that make and unmake big-Vs: senders whose items most followers pull instead of being pushed."""

from collections.abc import Sequence

from django.conf import settings
from django.db import transaction

from accounts.models import User
from accounts.signals import big_v_demotion_requested, big_v_made
from feedsite.draws import Draw


@transaction.atomic
def make_big_v(*, user: User) -> bool:
    """Make a user big-V; True if they were not. A demotion under way is taken back."""
    user = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    new = not user.is_big_v
    if new:
        User.objects.filter(pk=user.pk).update(is_big_v=True, promotion=Draw())
        user.refresh_from_db(fields=["is_big_v", "promotion"])
    big_v_made.send(sender=User, user=user)
    return new


@transaction.atomic
def demote(*, user: User) -> bool:
    """Ask to demote a big-V; False if the user is none.

    The followers' inboxes are backfilled first, by a job in the background; the flag falls when that is done.
    Asking again while the job runs changes nothing.
    """
    user = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if not user.is_big_v:
        return False
    big_v_demotion_requested.send(sender=User, user=user)
    return True


def upgrade_big_vs(user_ids: Sequence[int]) -> list[int]:
    """Make those of these users big-V who have reached settings.BIG_V_THRESHOLD; their ids. Never demotes.

    Counts what is folded into `User.follower_count`. A threshold of 0 turns it off.
    """
    if not settings.BIG_V_THRESHOLD or not user_ids:
        return []
    reached = User.objects.filter(
        pk__in=user_ids, is_big_v=False, follower_count__gte=settings.BIG_V_THRESHOLD
    ).order_by("pk")
    return [user.pk for user in reached if make_big_v(user=user)]
