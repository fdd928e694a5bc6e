"""Celery tasks of moving."""

from celery import shared_task

from community.archives import importing
from storage.queue import asks


@shared_task(name="moving.run_import")
def run_import(import_id: int) -> None:
    """Bring the next posts of an archive."""
    importing.run(import_id)


@shared_task(name="moving.sweep")
@asks("moving.sweep", importing.LEFT)
def sweep() -> None:
    """Periodic: send imports to the workers that no worker is at, and remove the files of those that have ended."""
    importing.sweep()
