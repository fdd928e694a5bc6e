"""Settings, addresses, and the WSGI, ASGI and Celery applications. No other package imports it."""

from feedsite.celery import app as celery_app

__all__ = ["celery_app"]
