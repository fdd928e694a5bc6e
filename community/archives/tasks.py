"""Celery tasks of moving."""

from celery import shared_task

from community.archives import importing, reader
from storage.queue import asks

PART_SECONDS = 600
"""Seconds of a part of the posts, while other uploads take all decoders."""
SECONDS = reader.seconds() * reader.WAIT_FACTOR + PART_SECONDS


@shared_task(name="moving.run_import", soft_time_limit=SECONDS, time_limit=SECONDS + 30)
def run_import(import_id: int) -> None:
    """Bring the next posts of an archive."""
    importing.run(import_id)


@shared_task(name="moving.sweep")
@asks("moving.sweep", importing.LEFT)
def sweep() -> None:
    """Periodic: send imports to the workers that no worker is at, and remove the files of those that have ended."""
    importing.sweep()
