"""Telling those who asked for it that a session has started.

The rows of `Reminder` are the queue of record. A batch of them is deleted in the transaction that writes their
notifications, so every user is told once, whenever a worker dies and however many are at it; `reminders_due` on the
session says that some may be left, and the sweeper sends for it again.

Open pages are told by one event a batch: 10,000 events would push everything else out of the stream.
"""

from django.db import transaction

from notifications import actions as notifications
from storage.connections import fetch
from storage.queue import enqueue

BATCH = 1000
SWEEP_LENGTH = 100

# In the order of an index: sorted by their own ids, all that wait would be read for each batch.
TAKE = """
    DELETE FROM live_reminder WHERE id = ANY(ARRAY(
        SELECT r.id FROM live_reminder r JOIN live_livesession s ON s.id = r.session_id AND s.reminders_due
        WHERE r.session_id = %(session)s ORDER BY r.user_id LIMIT %(count)s FOR UPDATE OF r SKIP LOCKED))
    RETURNING user_id
"""
# A reminder that another worker holds still has its row and may come back: the session stays due until none is left.
DONE = """
    UPDATE live_livesession SET reminders_due = false
    WHERE id = %(session)s AND reminders_due AND NOT EXISTS (SELECT FROM live_reminder WHERE session_id = %(session)s)
    RETURNING id
"""
HOST = "SELECT host_id FROM live_livesession WHERE id = %(session)s"
LEFT = "(SELECT FROM live_livesession WHERE reminders_due)"
DUE = "SELECT id FROM live_livesession WHERE reminders_due ORDER BY id LIMIT %(count)s"


def send(session_id: int, *, size: int = BATCH) -> int:
    """Tell all users who are left, `size` in one transaction; returns their number."""
    host = fetch(HOST, {"session": session_id})
    taken = 0
    while host and (count := _send_batch(session_id, host[0][0], size)):
        taken += count
    fetch(DONE, {"session": session_id})
    return taken


@transaction.atomic
def _send_batch(session_id: int, host_id: int, size: int) -> int:
    user_ids = [row[0] for row in fetch(TAKE, {"session": session_id, "count": size})]
    if user_ids:
        notifications.tell_of_session(session_id=session_id, host_id=host_id, user_ids=user_ids)
    return len(user_ids)


def sweep() -> int:
    """Send for what the queue lost; how many sessions. One that is at work is shared, not done twice."""
    due = [row[0] for row in fetch(DUE, {"count": SWEEP_LENGTH})]
    for session_id in due:
        if not enqueue("live.remind", session_id):
            break
    return len(due)
