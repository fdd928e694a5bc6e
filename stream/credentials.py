"""Ends connections whose session, token, password or account is gone."""

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from django.conf import settings

from accounts.signing_in.grants import BORROWED_SECONDS, are_valid
from stream.connections import REFUSED, OpenConnection
from stream.threads import in_thread
from web.rest import OUTAGES

logger = logging.getLogger(__name__)

ASK_SECONDS = 0.6
"""How long PostgreSQL may take after a revocation. With `hub.LOOK_SECONDS` a connection ends within a second of it."""


async def end_revoked(threads: ThreadPoolExecutor, connections: Sequence[OpenConnection]) -> None:
    """After a revocation, end these connections, except those that PostgreSQL confirms.

    A connection with only a ticket ends too. All end if the question fails or takes longer than `ASK_SECONDS`, because
    the stream tells of a revocation only once.
    """
    if not connections:
        return
    try:
        async with asyncio.timeout(ASK_SECONDS):
            held = await in_thread(threads, partial(are_valid, [each.grant for each in connections]))
    except Exception as error:
        if not isinstance(error, (*OUTAGES, TimeoutError)):
            logger.exception("sessions and tokens of open connections cannot be checked, so all connections close")
        held = [False] * len(connections)
    for connection, stands in zip(connections, held, strict=True):
        if not stands or connection.grant.is_ticket_only:
            connection.close(REFUSED)


async def end_lapsed(threads: ThreadPoolExecutor, connections: Iterable[OpenConnection]) -> None:
    """End connections whose session, token or ticket no longer holds. Ends none if PostgreSQL does not answer."""
    asked = list(connections)
    try:
        held = await in_thread(threads, partial(are_valid, [each.grant for each in asked]))
    except OUTAGES:
        return  # without PostgreSQL no session can end
    now = time.monotonic()
    for connection, stands in zip(asked, held, strict=True):
        until = connection.opened_at + BORROWED_SECONDS - settings.STREAM_RECHECK_SECONDS
        if not stands or (connection.grant.is_ticket_only and now > until):
            connection.close(REFUSED)
