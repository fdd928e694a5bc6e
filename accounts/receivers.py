"""What accounts does at news of Django's."""

from typing import Any

from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest

from accounts import step_up


@receiver(user_logged_in)
def note_proof(sender: Any, request: HttpRequest, **kwargs: Any) -> None:
    """Every way in proves who comes, signing up too."""
    step_up.note(request)
