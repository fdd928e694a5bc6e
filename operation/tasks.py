"""What the workers do for whoever runs the site."""

from celery import shared_task

from operation import sampling
from storage.connections import database_now


@shared_task(name="operation.observe")
def observe() -> None:
    sampling.observe(now=database_now())


@shared_task(name="operation.census")
def census() -> None:
    sampling.census()
