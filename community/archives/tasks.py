from community.archives import importing
from storage.queue import only_if_rows, task


@task("moving.sweep")
@only_if_rows("moving.sweep", importing.LEFT, work="imports of archives")
def sweep() -> None:
    """Periodic: queue lost imports, and tidy up."""
    importing.sweep()
