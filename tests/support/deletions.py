from datetime import timedelta

from django.utils import timezone

from accounts import purge
from accounts.models import Deletion, User


def settle(user: User) -> int:
    """Purge to the end. Returns the number of parts."""
    Deletion.objects.update(created_at=timezone.now() - purge.STRAGGLERS - timedelta(seconds=1))
    for part in range(1, 100):
        Deletion.objects.update(tried_at=None)
        if purge.purge(user.pk):
            return part
    raise AssertionError("it does not end")
