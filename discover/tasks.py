from discover import impressions, indexing, issued_pages, refreshing
from storage.connections import database_now
from storage.queue import only_if_rows, task


@task("discover.record_impressions")
@only_if_rows(
    "discover.record_impressions",
    "SELECT issued_at FROM discover_issuedpage WHERE NOT is_recorded",
    work="impressions",
)
def record_impressions() -> None:
    """Add issued pages to the filters of impressions."""
    issued_pages.record_issued_pages()


@task("discover.forget_issued_pages")
def forget_issued_pages() -> None:
    """Delete issued pages that are a day old."""
    issued_pages.forget_issued_pages(now=database_now())


@task("discover.refresh_words")
def refresh_words() -> None:
    """Rewrite the rarity of words."""
    refreshing.refresh_words(now=database_now())


@task("discover.refresh_popular")
def refresh_popular() -> None:
    """Rewrite the popular items."""
    refreshing.refresh_popular(now=database_now())


@task("discover.index")
def index() -> None:
    """Write changes to OpenSearch."""
    indexing.index_slice()


@task("seen.check_impressions")
def check_impressions() -> None:
    """Check how full today's filters of impressions are. The task's name is from version 0.1.0."""
    impressions.check_overfull(database_now().date())
