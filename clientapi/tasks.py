from celery import shared_task

from clientapi.oauth import actions

TURNS = 20
"""Calls per run, so that apps are deleted faster than one network can register them."""


@shared_task(name="clientapi.forget_unused")
def forget_unused() -> None:
    """Delete expired tokens and codes, and unused apps."""
    for _ in range(TURNS):
        if actions.forget_unused() < actions.FORGOTTEN:
            return
