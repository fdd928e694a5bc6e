from django.db import transaction

from live.models import Host, KeptSnapshot, LiveSession
from storage import keys
from storage.connections import feeds_for_tasks, fetch, pipelined

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
    """Delete about `limit` rows per kind. Return how many."""
    params = {"user": user_id, "limit": limit}
    taken = len(fetch(REMINDERS, params)) + len(fetch(OF_SESSIONS, params)) + _snapshots(user_id)
    return taken or _sessions(user_id, limit)


def _snapshots(user_id: int) -> int:
    """Delete the snapshots of the user's walks, which are few."""
    index = keys.snapshots(user_id)
    (digests,) = pipelined(feeds_for_tasks(), [("ZRANGE", index, 0, -1)])
    names = [index, *(keys.snapshot(user_id, digest.decode()) for digest in digests)]
    pipelined(feeds_for_tasks(), [("UNLINK", name) for name in names])
    return KeptSnapshot.objects.filter(reader=user_id).delete()[0]


@transaction.atomic
def _sessions(user_id: int, limit: int) -> int:
    held = Host.objects.select_for_update(no_key=True).filter(pk=user_id).first()
    if held is None:
        return 0
    ids = list(LiveSession.objects.filter(host=user_id).order_by("pk").values_list("pk", flat=True)[:limit])
    if not ids:
        held.delete()
        return 1
    LiveSession.objects.filter(pk__in=ids).delete()
    return len(ids)
