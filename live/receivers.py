"""What live does at news of sessions."""

from functools import partial
from typing import Any

from django.db import transaction
from django.dispatch import receiver

from feedsite import events
from live import replays
from live.models import LiveSession
from live.signals import replay_made, session_changed


@receiver(session_changed)
def announce_change(sender: type[LiveSession], session: LiveSession, was_hidden: bool, **kwargs: Any) -> None:
    """Once it is committed, to open pages."""
    transaction.on_commit(partial(events.announce, events.SessionChanged(session.pk, was_hidden)))


@receiver(replay_made)
def write_delivery(sender: type[LiveSession], session: LiveSession, **kwargs: Any) -> None:
    """Inside the transaction that ends the session, or shows it again."""
    replays.deliver_anew(session=session)
