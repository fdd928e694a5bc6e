"""Celery tasks of the public side."""

from celery import shared_task

from feedsite.public.sitemap import extend


@shared_task(name="public.extend_sitemap")
def extend_sitemap() -> None:
    """Periodic: add the parts of the sitemap that have become full."""
    extend()
