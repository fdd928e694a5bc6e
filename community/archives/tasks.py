from celery import shared_task

from community.archives import importing, reader
from storage.queue import asks

PART_SECONDS = 600
"""Maximum seconds of a part while other uploads take all decoders."""
SECONDS = reader.seconds() * reader.WAIT_FACTOR + PART_SECONDS


@shared_task(name="moving.run_import", soft_time_limit=SECONDS, time_limit=SECONDS + 30)
def run_import(import_id: int, turn: str | None = None) -> None:
    """Import the next posts of an archive."""
    importing.run(import_id, turn)


@shared_task(name="moving.sweep")
@asks("moving.sweep", importing.LEFT, work="imports of archives")
def sweep() -> None:
    """Periodic: queue lost imports, and tidy up."""
    importing.sweep()
