"""`big_v USER on|off`: promotes a user to big-V, or demotes them."""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from accounts.levels import big_v
from accounts.models import User
from timeline import backfill
from timeline.models import Backfill

POLL_SECONDS = 0.2
WORKER_SECONDS = 3.0
"""If nothing moves for this long, no worker is running, and the command does the work itself."""


class Command(BaseCommand):
    """Promotes or demotes a user."""

    help = (
        "Make a user big-V (on), or demote them (off). Off fills all followers' inboxes first. It also turns automatic "
        "tagging off for this user, until you use `on` or the admin."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add USERNAME and STATE."""
        parser.add_argument("username")
        parser.add_argument("state", choices=["on", "off"])

    def handle(self, *args: Any, username: str, state: str, **options: Any) -> None:
        """Raises CommandError for an unknown or deactivated user, or a cancelled demotion."""
        user = User.objects.named(username.removeprefix("@")).first()
        if user is None:
            raise CommandError(f"There is no user {username}.")
        if state == "on":
            try:
                new = big_v.make_big_v(user=user)
            except big_v.NotActiveError:
                raise CommandError(f"{user.username} is deactivated and cannot be big-V.") from None
            self.stdout.write(f"{user.username} is {'' if new else 'already '}big-V.")
        elif big_v.demote(user=user) or user.is_big_v:
            self._wait(user)
        else:
            self.stdout.write(f"{user.username} is not big-V.")

    def _wait(self, user: User) -> None:
        job = Backfill.objects.filter(sender=user).latest("pk")
        moved = time.monotonic()
        with tqdm(total=job.followers, initial=job.done, unit="follower", disable=None) as bar:
            while job.finished_at is None and job.cancelled_at is None:
                if time.monotonic() - moved > WORKER_SECONDS:
                    backfill.run(job.pk)
                time.sleep(POLL_SECONDS)
                job.refresh_from_db()
                if job.done > bar.n:
                    moved = time.monotonic()
                    bar.update(job.done - bar.n)
        if job.cancelled_at is not None:
            raise CommandError(f"{user.username} was made big-V again, so the demotion was cancelled.")
        self.stdout.write(f"{user.username} is no longer big-V. Filled the inboxes of {job.done} followers.")
