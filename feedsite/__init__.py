"""The ground of the project: settings, ids, every Redis key, the clients of the servers."""

from feedsite.celery import app as celery_app

__all__ = ["celery_app"]
