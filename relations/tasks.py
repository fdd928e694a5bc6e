"""Celery tasks of relations."""

from celery import shared_task

from accounts.big_v import upgrade_big_vs
from relations import actions


@shared_task(name="relations.fold_follower_counts")
def fold_follower_counts() -> None:
    """Periodic: fold the staged follower counts, and make big-V who has reached the threshold."""
    upgrade_big_vs(actions.fold_follower_counts())
