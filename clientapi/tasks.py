"""Tasks of the client API."""

from celery import shared_task

from clientapi import actions

TURNS = 20
"""Turns of one run: apps shall go faster than a network of addresses registers them."""


@shared_task(name="clientapi.forget_unused")
def forget_unused() -> None:
    """Forget expired tokens and codes, and apps that no user let in."""
    for _ in range(TURNS):
        if actions.forget_unused() < actions.FORGOTTEN:
            return
