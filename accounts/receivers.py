"""Receivers of Django's signals: a sign-in is noted."""

from typing import Any

from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest

from accounts.signing_in import places, step_up


@receiver(user_logged_in)
def note_proof(sender: Any, request: HttpRequest, **kwargs: Any) -> None:
    """Every way in proves who comes, signing up too, and is a place in which the user is signed in."""
    step_up.note(request)
    places.note(request)
