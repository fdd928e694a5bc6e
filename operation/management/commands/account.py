import secrets
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.urls import reverse

from accounts import addresses
from accounts.actions import LastSuperuserError, delete_account, demote, promote
from accounts.joining import first_admin
from accounts.joining.actions import sign_up
from accounts.models import User
from accounts.signing_in import recovery, second_factors
from moderation import senders
from moderation.decisions import Grounds

BY_COMMAND = "By a command of the operator"
VERBS = {
    "make": "create an account, and print a link that sets its password",
    "promote": "make a user an administrator, or a moderator (--moderator)",
    "demote": "make an administrator or moderator an ordinary member",
    "reset-link": "print a link that sets a new password, valid for 4 hours",
    "remove-factors": "remove a user's second factors: they log in with the password alone, and get a letter",
    "ban": "sign a user out, and hide their account and posts",
    "unban": "lift a ban",
    "delete": "delete an account for good, like its owner can",
    "first-admin": "print a link that creates the first administrator, once, valid for 24 hours",
}


class Command(BaseCommand):
    """Manages one account."""

    help = "Create, promote, demote, ban or delete an account, or restore its owner's access."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the verbs and their options."""
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        each = {verb: verbs.add_parser(verb, help=text, description=text) for verb, text in VERBS.items()}
        for verb in each.keys() - {"first-admin"}:
            each[verb].add_argument("name", metavar="NAME", help="a username, with or without @")
        each["first-admin"].add_argument("--if-wanted", action="store_true", help="print nothing if there is one")
        each["make"].add_argument("--email", default="", help="the e-mail address, which needs no confirmation")
        each["promote"].add_argument("--moderator", action="store_true", help="a moderator, not an administrator")
        for verb in ("ban", "unban"):
            each[verb].add_argument(
                "--why", default="", help="the reason, shown in Admin → Decisions, and of a ban to the user"
            )
        each["delete"].add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        """Run the verb. Raises CommandError."""
        if verb == "first-admin":
            self.first_admin(is_asked=not options["if_wanted"])
        elif verb == "make":
            self.make(options["name"], options["email"])
        else:
            name = options["name"].removeprefix("@")
            user = User.objects.named(name).first()
            if user is None:
                raise CommandError(f"There is no user {name}.")
            getattr(self, verb.replace("-", "_"))(user, **options)

    def first_admin(self, *, is_asked: bool) -> None:
        """Print the link that makes the first administrator, if there is none."""
        if first_admin.is_missing():
            link = settings.SITE_URL + reverse("first-admin", args=[first_admin.token()])
            self.stdout.write(
                f"This site has no administrator yet. Open this page within 24 hours to create one: {link}"
            )
        elif is_asked:
            raise CommandError("The site has an administrator. `manage.py account promote NAME` makes another.")

    def make(self, name: str, email: str) -> None:
        """Create an account, and print a link that sets its password. Nobody can log in before that."""
        try:
            with transaction.atomic():
                user = sign_up(username=name, password=secrets.token_urlsafe(32))
                if email:
                    user.email = email
                    user.save(update_fields=["email"])
                    addresses.confirm_entered(user=user)
                if addresses.confirmed_address(user) != email.lower():
                    raise CommandError(f"{email} is not an e-mail address, or another account has it.")
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        self.log(user, "made the account")
        self.stdout.write(
            f"Created {user.username}. This page sets the password, for 4 hours: {recovery.reset_link(user)}"
        )

    def promote(self, user: User, *, moderator: bool, **options: Any) -> None:
        """Make the user an administrator or moderator."""
        self.must_be_active(user)
        role = "a moderator" if moderator else "an administrator"
        is_new = promote(user=user, as_moderator=moderator)
        self.done(user, is_new, f"made {role}", f"is {role}", f"is already {role}")

    def demote(self, user: User, **options: Any) -> None:
        """Make the user an ordinary member."""
        try:
            had = demote(user=user)
        except LastSuperuserError:
            raise CommandError(f"{user.username} is the last administrator. Promote another first.") from None
        self.done(user, had, "took all powers", "is an ordinary member now", "is an ordinary member already")

    def reset_link(self, user: User, **options: Any) -> None:
        """Print a link that sets a new password, for an owner without a proven address."""
        self.must_be_active(user)
        self.log(user, "printed a link that sets a password")
        self.stdout.write(
            f"This page sets a new password for {user.username}, for 4 hours: {recovery.reset_link(user)}"
        )

    def remove_factors(self, user: User, **options: Any) -> None:
        """Remove the second factors, for an owner who lost them."""
        is_done = second_factors.remove_all(user=user)
        self.done(user, is_done, "removed second factors", "can log in with the password alone", "has no second factor")

    def ban(self, user: User, *, why: str, **options: Any) -> None:
        """Ban the user. Also written to the log of decisions."""
        try:
            is_new = senders.ban(user=user, by=None, reason=self.reason(why), grounds=Grounds(why))
        except PermissionError:
            raise CommandError(f"{user.username} is staff and cannot be banned. Demote them first.") from None
        self.done(user, is_new, "", "is banned", "is already banned")

    def unban(self, user: User, *, why: str, **options: Any) -> None:
        """End the user's ban. Also written to the log of decisions."""
        is_done = senders.unban(user=user, by=None, reason=self.reason(why))
        self.done(user, is_done, "", "is no longer banned", "is not banned")

    def delete(self, user: User, *, yes: bool, **options: Any) -> None:
        """Ask for confirmation, then delete the account."""
        name = user.username
        if not yes and input(f"This deletes {name} and all their posts, for good. Type the name: ") != name:
            raise CommandError("Nothing was deleted.")
        try:
            is_done = delete_account(user=user)
        except LastSuperuserError:
            raise CommandError(f"{name} is the last administrator. Promote another first.") from None
        user.refresh_from_db()
        self.done(user, is_done, "deleted the account", "is deleted", "is already deleted", name=name)

    # --- Words
    def done(self, user: User, is_done: bool, logged: str, now: str, before: str, *, name: str = "") -> None:
        """Log the action, and print the result."""
        if is_done and logged:
            self.log(user, logged)
        self.stdout.write(f"{name or user.username} {now if is_done else before}.")

    def log(self, user: User, text: str) -> None:
        """Write to the account's history."""
        LogEntry.objects.log_actions(user.pk, [user], CHANGE, f"{BY_COMMAND}: {text}.")

    def reason(self, why: str) -> str:
        """The reason for the log of decisions."""
        return f"{BY_COMMAND}: {why}" if why else f"{BY_COMMAND}."

    def must_be_active(self, user: User) -> None:
        """Raise CommandError for an inactive account."""
        if not user.is_active:
            raise CommandError(f"{user.username} is deactivated, banned or deleted.")
