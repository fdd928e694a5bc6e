"""Sends reminders when a session has started.

A batch is deleted in the transaction that writes its notifications, so users are told once. It is one event for open
pages.
"""

from django.db import transaction
from django.db.models import Exists

from live.models import LiveSession, Reminder
from notifications import actions as notifications
from storage.connections import fetch
from storage.queue import task

BATCH = 1000
SWEEP_LENGTH = 100

# In index order. Sorted by their own ids, each batch would read all waiting reminders.
TAKE = """
    DELETE FROM live_reminder WHERE id = ANY(ARRAY(
        SELECT r.id FROM live_reminder r JOIN live_livesession s ON s.id = r.session_id AND s.reminders_due
        WHERE r.session_id = %(session)s ORDER BY r.user_id LIMIT %(count)s FOR UPDATE OF r SKIP LOCKED))
    RETURNING user_id
"""
LEFT = "(SELECT started_at FROM live_livesession WHERE reminders_due)"


@task("live.remind")
def send(session_id: int, *, size: int = BATCH) -> int:
    """Send a session's reminders, `size` per transaction."""
    session = LiveSession.objects.filter(pk=session_id)
    host_id = session.values_list("host", flat=True).first()
    taken = 0
    while host_id and (count := _send_batch(session_id, host_id, size)):
        taken += count
    # Another worker's rollback can bring a reminder back, so the session stays due until none is left.
    left = Exists(Reminder.objects.filter(session=session_id))
    session.filter(~left, reminders_due=True).update(reminders_due=False)
    return taken


@transaction.atomic
def _send_batch(session_id: int, host_id: int, size: int) -> int:
    user_ids = [row[0] for row in fetch(TAKE, {"session": session_id, "count": size})]
    if user_ids:
        notifications.notify_of_session(session_id=session_id, host_id=host_id, user_ids=user_ids)
    return len(user_ids)


def sweep() -> int:
    """Queue sessions with unsent reminders."""
    due = LiveSession.objects.filter(reminders_due=True).order_by("pk").values_list("pk", flat=True)[:SWEEP_LENGTH]
    for session_id in due:
        if not send.delay(session_id):
            break
    return len(due)
