from accounts.mail import sending
from storage.queue import only_if_rows, task


@task("mail.sweep", soft_time_limit=sending.SECONDS)
@only_if_rows("mail.sweep", sending.WAITING, work="letters")
def sweep() -> None:
    """Periodic: send due letters and tidy up."""
    sending.sweep()
