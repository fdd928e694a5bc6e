"""Recommendations on a site that was just filled past the verbs (`demo`, `load`)."""

from django.utils import timezone

from discover import indexing, refreshing


def recommend() -> None:
    """Recommend what was brought in from the first page on, without waiting for the periodic tasks."""
    now = timezone.now()
    refreshing.refresh_words(now=now)
    refreshing.refresh_popular(now=now)
    indexing.load_again()
