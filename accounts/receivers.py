from typing import Any

from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest

from accounts.signing_in import places, step_up


@receiver(user_logged_in)
def note_proof(sender: Any, request: HttpRequest, **kwargs: Any) -> None:
    """Record a sign-in or sign-up as proof of identity and as a place."""
    step_up.note(request)
    places.note(request)
