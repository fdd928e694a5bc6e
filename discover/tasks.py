"""The workers' tasks for discover: they call what does the work."""

from celery import shared_task

from discover import impressions, indexing, issued_pages, refreshing
from storage.connections import database_now
from storage.queue import asks


@shared_task(name="discover.record_impressions")
@asks("discover.record_impressions", "SELECT FROM discover_issuedpage WHERE NOT is_recorded")
def record_impressions() -> None:
    """Write issued pages into the filters of impressions."""
    issued_pages.record_issued_pages()


@shared_task(name="discover.forget_issued_pages")
def forget_issued_pages() -> None:
    """Delete issued pages that are a day old."""
    issued_pages.forget_issued_pages(now=database_now())


@shared_task(name="discover.refresh_words")
def refresh_words() -> None:
    """How rare words are."""
    refreshing.refresh_words(now=database_now())


@shared_task(name="discover.refresh_popular")
def refresh_popular() -> None:
    """Which items are popular."""
    refreshing.refresh_popular(now=database_now())


@shared_task(name="discover.index")
def index() -> None:
    """Tell OpenSearch, where there is one, what changed."""
    indexing.work()


@shared_task(name="seen.check_impressions")
def check_impressions() -> None:
    """Count how full the week's filters are; the name is that of version 0.1.0, when `seen` had the filters."""
    impressions.check(database_now().date())
