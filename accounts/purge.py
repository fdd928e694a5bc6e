"""Removes what deleted accounts leave behind, such as items, follows and likes.

`Deletion` rows are the queue. Doing a part twice is harmless. A deletion stays open for `STRAGGLERS`, to catch late
writes.
"""

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from accounts.actions import delete_credentials
from accounts.joining import invitations
from accounts.mail import actions as mail
from accounts.models import Deletion, User
from accounts.signals import account_purged
from media import actions as media
from storage import keys
from storage.claims import unclaimed
from storage.connections import feeds_for_tasks, pipelined
from storage.queue import task

BATCH = 500
"""Rows per receiver and transaction."""
ROUNDS = 40
"""Batches per task, so that other tasks get their turn."""
STRAGGLERS = timedelta(seconds=60)
"""How long a deletion stays open. Requests that ran at the deletion have ended by then."""
SWEPT = 100


@task("accounts.purge")
def purge(user_id: int) -> bool:
    """Do the next part of a deletion. True if complete."""
    claimed = Deletion.objects.filter(unclaimed(), user=user_id)
    if not claimed.update(tried_at=Now(), attempts=F("attempts") + 1):
        return False
    deletion = Deletion.objects.select_related("user").get(user=user_id)
    delete_credentials(deletion.user)
    for _ in range(ROUNDS):
        answers = account_purged.send(sender=User, user=deletion.user, limit=BATCH)
        files = media.purge(owner_id=user_id, limit=BATCH) + mail.forget(user_id=user_id, limit=BATCH)
        files += invitations.purge(user=deletion.user, limit=BATCH)
        if not files and not any(taken for _, taken in answers):
            names = keys.of_user(user_id, settings.ACTIVE_FANS_SHARDS)
            pipelined(feeds_for_tasks(), [("UNLINK", name) for name in names])
            return _finish_deletion(deletion)
        Deletion.objects.filter(user=user_id).update(tried_at=Now(), attempts=0)
    Deletion.objects.filter(user=user_id).update(tried_at=None)
    purge.delay(user_id)
    return False


@transaction.atomic
def _finish_deletion(deletion: Deletion) -> bool:
    if not Deletion.objects.filter(pk=deletion.pk, created_at__lt=Now() - STRAGGLERS).exists():
        return False
    # Without followers, no window depends on how their items are delivered. Deletions by older versions left a folded
    # name.
    User.objects.filter(pk=deletion.user_id).update(is_big_v=False, folded_name=None)
    return bool(Deletion.objects.filter(pk=deletion.pk).delete()[0])


# A deletion that fails again and again waits since it was requested.
LEFT = """
    SELECT CASE WHEN attempts > 5 THEN created_at ELSE coalesce(tried_at, created_at) END FROM accounts_deletion
"""


def sweep() -> int:
    """Periodic: enqueue lost deletions."""
    waiting = list(Deletion.objects.filter(unclaimed()).order_by("attempts", "pk").values_list("pk", flat=True)[:SWEPT])
    for user_id in waiting:
        if not purge.delay(user_id):
            break
    return len(waiting)
