from media import renaming, sweeping
from storage.queue import task


@task("media.sweep")
def sweep() -> None:
    """Periodic: finish moves and renames, remove unused media."""
    sweeping.sweep()
    renaming.enqueue_unfinished()


@task("media.sweep_files")
def sweep_files() -> None:
    """Periodic: remove files without a row."""
    sweeping.sweep_hourly_share()
