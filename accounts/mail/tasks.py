from accounts.mail import sending
from storage.queue import asks, task


@task("mail.sweep", soft_time_limit=sending.SECONDS)
@asks("mail.sweep", sending.WAITING, work="letters")
def sweep() -> None:
    """Periodic: send due letters and tidy up."""
    sending.sweep()
