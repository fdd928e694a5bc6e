"""Removes a deleted account's sessions, and its reminders of those of others.

The sessions of inactive hosts are hidden, so they vanish when the account does. Their remains in Redis, and in
notifications, point at nothing and are never shown.
"""

from django.db import transaction

from live.models import Host, LiveSession
from storage.connections import fetch

REMINDERS = """
    DELETE FROM live_reminder WHERE id = ANY(ARRAY(
        SELECT r.id FROM live_reminder r WHERE r.user_id = %(user)s LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
    RETURNING 1
"""
OF_SESSIONS = """
    DELETE FROM live_reminder WHERE id = ANY(ARRAY(
        SELECT r.id FROM live_reminder r JOIN live_livesession s ON s.id = r.session_id
        WHERE s.host_id = %(user)s LIMIT %(limit)s FOR UPDATE OF r SKIP LOCKED))
    RETURNING 1
"""


def purge(*, user_id: int, limit: int) -> int:
    """Take away about `limit` rows of each kind; how many went, 0 when none is left."""
    params = {"user": user_id, "limit": limit}
    taken = len(fetch(REMINDERS, params)) + len(fetch(OF_SESSIONS, params))
    return taken or _sessions(user_id, limit)


@transaction.atomic
def _sessions(user_id: int, limit: int) -> int:
    """Some of the sessions, under the lock that every change of theirs holds; with the last of them the host's row."""
    held = Host.objects.select_for_update(no_key=True).filter(pk=user_id).first()
    if held is None:
        return 0
    ids = list(LiveSession.objects.filter(host=user_id).order_by("pk").values_list("pk", flat=True)[:limit])
    if not ids:
        held.delete()
        return 1
    LiveSession.objects.filter(pk__in=ids).delete()
    return len(ids)
