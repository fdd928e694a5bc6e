from celery import shared_task

from media import renaming, sweeping


@shared_task(name="media.sweep")
def sweep() -> None:
    """Periodic: finish moves and renames, remove unused media."""
    sweeping.sweep()
    renaming.sweep()


@shared_task(name="media.finish_moves")
def finish_moves() -> None:
    """Do the moves that a request left."""
    sweeping.finish_moves()


@shared_task(name=renaming.TASK)
def rename_files_of(owner_id: int, turn: str | None = None) -> None:
    """Rename files of a hidden account."""
    renaming.run(owner_id, turn)


@shared_task(name="media.sweep_files")
def sweep_files() -> None:
    """Periodic: remove files without a row."""
    sweeping.turn()
