import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from web.health import server_states

LATE = ("(in time)", "(TimeoutError)", "(ConnectionTimeout)")
"""Ends of the states of servers that may still answer."""
LATE_SECONDS = 10
VARIABLES = {
    "postgresql": "FEEDSITE_DATABASE_URL",
    "feeds": "FEEDSITE_REDIS_URL",
    "broker": "FEEDSITE_BROKER_URL or FEEDSITE_REDIS_URL",
    "plays": "FEEDSITE_PLAYED_URL",
}


class Command(BaseCommand):
    """Waits until the servers answer. Asks late ones again for `LATE_SECONDS`."""

    help = "Wait until PostgreSQL and the Redis servers answer. If one does not, fail and name its setting."
    requires_system_checks: list[str] = []  # `up` asks before anything else

    def handle(self, *args: Any, **options: Any) -> None:
        """Wait for the servers. Raises CommandError if one does not answer."""
        deadline = time.monotonic() + LATE_SECONDS
        states = server_states()
        while any(state.endswith(LATE) for state in states.values()) and time.monotonic() < deadline:
            states = server_states()
        for name, state in states.items():
            if state != "ok":
                raise CommandError(f"The server {name} {state}. Check {VARIABLES[name]}, and that the server runs.")
