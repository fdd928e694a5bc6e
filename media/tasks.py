from media import renaming, resizing, sweeping
from storage.queue import only_if_rows, task


@task("media.sweep")
def sweep() -> None:
    """Periodic: finish moves and renames, remove unused media."""
    sweeping.sweep()
    renaming.enqueue_unfinished()


@task("media.sweep_files")
def sweep_files() -> None:
    """Periodic: remove files without a row."""
    sweeping.sweep_hourly_share()


@task("media.make_sizes")
@only_if_rows("media.make_sizes", resizing.WAITING)
def make_sizes() -> None:
    """Periodic: make sizes of old pictures for some seconds."""
    resizing.make_sizes()
