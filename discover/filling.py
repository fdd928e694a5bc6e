"""Refreshes recommendations after `demo` and `load`, which write rows without the site's actions."""

from django.utils import timezone

from discover import indexing, refreshing


def recommend() -> None:
    """Refresh what periodic tasks would refresh."""
    now = timezone.now()
    refreshing.refresh_words(now=now)
    refreshing.refresh_popular(now=now)
    indexing.restart_load()
