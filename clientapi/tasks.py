from clientapi.oauth import actions
from storage.queue import task

TURNS = 20
"""Calls per run, so that apps are deleted faster than one network can register them."""


@task("clientapi.forget_unused")
def forget_unused() -> None:
    """Delete expired tokens and codes, and unused apps."""
    for _ in range(TURNS):
        if actions.forget_unused() < actions.FORGOTTEN:
            return
