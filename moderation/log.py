"""The log of decisions: rows that never change, and log lines for operators."""

import json
import logging
from typing import Any

from accounts.models import User
from items.models import Item
from moderation.models import Decision, Verb

logger = logging.getLogger("moderation.actions")
"""Operators find decisions in the logs by this name."""


def log_decision(
    by: User | None,
    verb: Verb,
    *,
    item: Item | None = None,
    session_id: int | None = None,
    user: User | None = None,
    note: str = "",
    before: Any = None,
    after: Any = None,
    **fields: Any,
) -> Decision:
    """Log a decision. Without `by` the site decided. `fields`: what its subject reads (decisions.log_for_subject)."""
    user = user or (item.sender if item else None)
    subject = {"item": item, "session_id": session_id, "user": user}
    decision = Decision.objects.create(
        by=by, verb=verb, **subject, note=note[:500], before=before, after=after, **fields
    )
    logger.info(
        "%s by=%s item=%s session=%s user=%s before=%s after=%s: %r",
        verb.value,
        by.pk if by else None,
        item.pk if item else None,
        session_id,
        user.pk if user else None,
        json.dumps(before),
        json.dumps(after),
        note,
    )
    return decision
