from moderation import hashes
from storage.queue import task


@task("moderation.forget_attempts")
def forget_attempts() -> None:
    """Periodic: delete old attempts to send blocked pictures."""
    hashes.forget_attempts()
