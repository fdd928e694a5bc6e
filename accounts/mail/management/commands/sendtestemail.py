"""`sendtestemail`: sends a test letter at once."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.mail import get_connection
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from accounts.mail.actions import is_address
from accounts.mail.letters import compose
from accounts.mail.models import Letter

RUNBOOK = "docs/runbook.md, Mail does not go out"


class Command(BaseCommand):
    """Django's command, with a letter of the site."""

    help = "Send a test letter now, and print the mail server's answer."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the addresses."""
        parser.add_argument("address", nargs="+", help="The recipient.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Send to each address. Raises CommandError at the first refusal."""
        if backend() == "console":
            raise CommandError(f"No mail server is set (FEEDSITE_EMAIL_URL), so letters go to the log: {RUNBOOK}.")
        for address in options["address"]:
            if not is_address(address):
                raise CommandError(f"{address!r} is not an e-mail address.")
            letter = Letter(kind="test", address=address, context={"name": "sendtestemail"}, created_at=timezone.now())
            message = compose(letter)
            try:
                with get_connection() as connection:
                    connection.send_messages([message])
            except OSError as error:  # includes errors of smtplib and TLS
                said = " ".join(f"{type(error).__name__}: {error}".split())
                raise CommandError(f"The letter to {address} was not sent: {said}. {RUNBOOK}.") from error
            self.stdout.write(f"Sent a letter to {address} through {server()}, from {message.from_email}.")


def backend() -> str:
    """How letters go out: `smtp`, `folder`, `console`."""
    return settings.EMAIL_BACKEND.rsplit(".", 2)[-2]


def server() -> str:
    """The mail server, without its password."""
    return f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}" if backend() == "smtp" else f"the backend {backend()!r}"
