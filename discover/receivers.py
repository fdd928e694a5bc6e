"""What discover does at the news from below."""

from typing import Any

from django.dispatch import receiver
from django.utils import timezone

from discover import refreshing
from items.signals import data_loaded, demo_made


@receiver([demo_made, data_loaded])
def know_the_new(sender: object, **kwargs: Any) -> None:
    """A site that was just filled recommends from the first page on, without waiting for the periodic tasks."""
    now = timezone.now()
    refreshing.refresh_words(now=now)
    refreshing.refresh_popular(now=now)
