from moderation import figures, hashes, senders
from storage.queue import only_if_rows, task


@task("moderation.forget_attempts")
def forget_attempts() -> None:
    """Periodic: delete old attempts to send blocked pictures."""
    hashes.forget_attempts()


@task("moderation.end_suspensions")
@only_if_rows("moderation.end_suspensions", senders.OVER, work="ends of suspensions")
def end_suspensions() -> None:
    """Periodic: end suspensions whose time is over."""
    senders.end_suspensions()


@task("moderation.count_figures")
def count_figures() -> None:
    """Periodic: count what moderators received and decided, by day."""
    figures.count_days()
