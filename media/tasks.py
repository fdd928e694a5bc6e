"""Celery tasks of media."""

from celery import shared_task

from media import sweeping


@shared_task(name="media.sweep")
def sweep() -> None:
    """Periodic: remove media that nothing uses, and finish what was begun."""
    sweeping.sweep()


@shared_task(name="media.sweep_files")
def sweep_files() -> None:
    """Periodic: remove an hour's part of the files without a row."""
    sweeping.turn()
