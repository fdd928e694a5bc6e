from community.archives import importing
from storage.queue import asks, task


@task("moving.sweep")
@asks("moving.sweep", importing.LEFT, work="imports of archives")
def sweep() -> None:
    """Periodic: queue lost imports, and tidy up."""
    importing.sweep()
