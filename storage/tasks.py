"""Tasks of the data ground."""

from celery import shared_task

from storage import parking


@shared_task(name="storage.unpark")
def unpark() -> None:
    """Periodic: send on the messages that another version's workers did not know."""
    parking.unpark()
