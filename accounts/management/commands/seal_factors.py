"""`seal_factors`: seals the secrets of second factors by the secret key of today."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.signing_in import second_factors


class Command(BaseCommand):
    """`seal_factors`: the step of a change of the secret key after which the old one can be forgotten."""

    help = (
        "Seal the secrets of second factors by the secret key of today, so that FEEDSITE_SECRET_KEY_FALLBACKS can go."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Seal them. Raises CommandError if there are some that no key opens."""
        changed, lost = second_factors.seal_anew()
        self.stdout.write(f"Sealed anew: {changed}.")
        if lost:
            raise CommandError(
                f"{lost} were sealed by a key that is not known here: name it in FEEDSITE_SECRET_KEY_FALLBACKS, or "
                "remove the second factors of these users in the admin."
            )
