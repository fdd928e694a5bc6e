"""Tasks of the client API."""

from celery import shared_task

from clientapi import actions


@shared_task(name="clientapi.forget_unused")
def forget_unused() -> None:
    """Forget expired tokens and codes, and apps that no user let in."""
    actions.forget_unused()
