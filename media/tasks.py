from celery import shared_task

from media import sweeping


@shared_task(name="media.sweep")
def sweep() -> None:
    """Periodic: finish moves, remove unused media."""
    sweeping.sweep()


@shared_task(name="media.finish_moves")
def finish_moves() -> None:
    """Do the moves that a request left."""
    sweeping.finish_moves()


@shared_task(name="media.sweep_files")
def sweep_files() -> None:
    """Periodic: remove files without a row."""
    sweeping.turn()
