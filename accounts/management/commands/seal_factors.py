"""`seal_factors`: re-encrypts secrets of second factors with the current secret key."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.signing_in import second_factors
from storage import site_key


class Command(BaseCommand):
    """Re-encrypts secrets of second factors. Run it when the secret key has changed. Then the old key can go."""

    help = "Re-encrypt second factors with the current secret key. Then you can remove FEEDSITE_SECRET_KEY_FALLBACKS."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare `--new-key`."""
        parser.add_argument(
            "--new-key", action="store_true", help="The old key is lost: make this machine's key the site's key."
        )

    def handle(self, *args: Any, new_key: bool, **options: Any) -> None:
        """Re-encrypt. Raises CommandError if no key decrypts some of them."""
        if new_key:
            site_key.delete_fingerprint()
            site_key.check()
        changed, lost = second_factors.reencrypt_secrets()
        self.stdout.write(f"Re-encrypted: {changed}.")
        if lost:
            raise CommandError(
                f"{lost} cannot be decrypted: their key is not known here. Add it to FEEDSITE_SECRET_KEY_FALLBACKS, or "
                "remove these users' second factors in the admin."
            )
