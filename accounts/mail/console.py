"""Letters on the terminal or in the log."""

import sys
from collections.abc import Sequence

from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend


class EmailBackend(BaseEmailBackend):
    """Writes letters to standard output, which `up` shows."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Write letters. Returns how many."""
        for message in email_messages:
            lines = [f"letter to {', '.join(message.to)}: {message.subject}", *str(message.body).splitlines()]
            sys.stdout.write("".join(f"mail | {line}\n" for line in lines if line.strip()))
        sys.stdout.flush()
        return len(email_messages)
