"""Takes away what deleted accounts leave behind: items, follows, blocks, likes and the rows of other rooms.

The row of `Deletion` is the queue of record, so that nothing is lost when workers or the broker die. Each room does its
part by receiving `account_purged`, in batches that commit one by one; a part that is done twice, or by two workers at
once, is done once. Late writes of a request that was under way at the deletion are met too: a deletion is not complete
before `STRAGGLERS` have had time to commit.
"""

from datetime import timedelta

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from accounts import invitations
from accounts.actions import forget_security
from accounts.models import Deletion, User
from accounts.signals import account_purged
from mail import actions as mail
from media import actions as media
from storage.queue import enqueue

BATCH = 500
"""Rows that a receiver takes away in one transaction."""
ROUNDS = 40
"""Batches of one task: a large account does not keep a worker from all others."""
CLAIM_LIFE = timedelta(seconds=60)
"""A worker that has not come further for so long is taken for dead."""
STRAGGLERS = timedelta(seconds=60)
SWEPT = 100


def purge(user_id: int) -> bool:
    """Do the next part of a deletion; True if nothing is left of the account and the deletion is complete."""
    now = timezone.now()
    free = Q(tried_at=None) | Q(tried_at__lt=now - CLAIM_LIFE)
    claimed = Deletion.objects.filter(free, user=user_id)
    if not claimed.update(tried_at=now, attempts=F("attempts") + 1):
        return False
    deletion = Deletion.objects.select_related("user").get(user=user_id)
    forget_security(deletion.user)
    for _ in range(ROUNDS):
        answers = account_purged.send(sender=User, user=deletion.user, limit=BATCH)
        files = media.purge(owner_id=user_id, limit=BATCH) + mail.forget(user_id=user_id, limit=BATCH)
        files += invitations.purge(user=deletion.user, limit=BATCH)
        if not files and not any(taken for _, taken in answers):
            return _complete(deletion)
        Deletion.objects.filter(user=user_id).update(tried_at=timezone.now())
    Deletion.objects.filter(user=user_id).update(tried_at=None)
    enqueue("accounts.purge", user_id)
    return False


@transaction.atomic
def _complete(deletion: Deletion) -> bool:
    if deletion.created_at > timezone.now() - STRAGGLERS:
        return False
    # They have no followers any more, so no window depends on how their items are delivered.
    User.objects.filter(pk=deletion.user_id).update(is_big_v=False)
    return bool(Deletion.objects.filter(pk=deletion.pk).delete()[0])


LEFT = "(SELECT FROM accounts_deletion) UNION ALL (SELECT FROM accounts_heldname WHERE until < now())"


def sweep() -> int:
    """Periodic: send to the workers what no worker is at; how many."""
    free = Q(tried_at=None) | Q(tried_at__lt=timezone.now() - CLAIM_LIFE)
    waiting = list(Deletion.objects.filter(free).order_by("attempts", "pk").values_list("pk", flat=True)[:SWEPT])
    for user_id in waiting:
        if not enqueue("accounts.purge", user_id):
            break
    return len(waiting)
