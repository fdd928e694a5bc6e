from celery import shared_task

from feedsite.public.sitemap import extend


@shared_task(name="public.extend_sitemap")
def extend_sitemap() -> None:
    """Add full parts of posts to the sitemap."""
    extend()
