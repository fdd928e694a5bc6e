from celery import shared_task

from accounts.mail import sending
from storage.queue import asks


@shared_task(name="mail.send", soft_time_limit=sending.SECONDS)
def send() -> None:
    """Send due letters."""
    sending.send_due()


@shared_task(name="mail.sweep", soft_time_limit=sending.SECONDS)
@asks("mail.sweep", sending.WAITING, work="letters")
def sweep() -> None:
    """Periodic: send due letters and tidy up."""
    sending.sweep()
