"""The Celery application. The broker is a hint: the delivery table is the queue of record (storage/queue.py)."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "feedsite.settings")

app = Celery("feedsite", task_cls="storage.parking:ParkingTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
