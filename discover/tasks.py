"""What the workers do for the recommended feed."""

from celery import shared_task
from django.utils import timezone

from discover import refreshing


@shared_task(name="discover.refresh_words")
def refresh_words() -> None:
    """Periodic: how rare words are."""
    refreshing.refresh_words(now=timezone.now())


@shared_task(name="discover.refresh_popular")
def refresh_popular() -> None:
    """Periodic: which items are popular."""
    refreshing.refresh_popular(now=timezone.now())
