"""Connections that rest on nothing any more: a session, a token, a password or an account is gone.

A connection that PostgreSQL does not confirm within 0.6 s after a revocation ends too. Its client comes back by itself.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from django.conf import settings

from accounts.signing_in.grants import BORROWED_SECONDS, standing
from stream.connections import REFUSED, Connection
from stream.threads import in_thread
from web.rest import OUTAGES

logger = logging.getLogger(__name__)

ASK_SECONDS = 0.6
"""How long PostgreSQL may take to say which connections a revocation leaves. With `hub.LOOK_SECONDS` less than a second
passes from the event to the end."""


async def end_revoked(threads: ThreadPoolExecutor, connections: Sequence[Connection]) -> None:
    """End those of the connections, of users of whom something was revoked, that stand no more. A connection that only
    a ticket vouches for ends too: its session is unknown, and may be the revoked one. A reader who may listen comes
    back at once.

    All end where the question fails or takes longer than `ASK_SECONDS`: the stream tells of a revocation once.
    """
    if not connections:
        return
    try:
        async with asyncio.timeout(ASK_SECONDS):
            held = await in_thread(threads, partial(standing, [each.grant for each in connections]))
    except Exception as error:
        if not isinstance(error, (*OUTAGES, TimeoutError)):
            logger.exception("It cannot be asked which connections still stand")
        held = [False] * len(connections)
    for connection, stands in zip(connections, held, strict=True):
        if not stands or connection.grant.is_borrowed:
            connection.close(REFUSED)


async def end_lapsed(threads: ThreadPoolExecutor, connections: Iterable[Connection]) -> None:
    """End the connections that no longer stand, revoked or not; none where PostgreSQL does not say."""
    asked = list(connections)
    try:
        held = await in_thread(threads, partial(standing, [each.grant for each in asked]))
    except OUTAGES:
        return  # without PostgreSQL no session can end
    now = time.monotonic()
    for connection, stands in zip(asked, held, strict=True):
        until = connection.opened_at + BORROWED_SECONDS - settings.STREAM_RECHECK_SECONDS
        if not stands or (connection.grant.is_borrowed and now > until):
            connection.close(REFUSED)
