"""The demotion of a big-V: fill all followers' inboxes, then clear the flag.

Meanwhile fan-out pushes to all followers and readers still pull the outbox, so no item is missed. The claim is a lease,
because the broker redelivers messages after five minutes.
"""

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from accounts.levels.big_v import complete_demotion
from accounts.models import User
from relations.actions import follower_count
from relations.followers import follower_parts
from storage.connections import FeedsUnavailableError, feeds_errors, feeds_for_tasks, fetch, pipelined
from storage.deliveries import OUTAGE_PAUSE
from storage.ids import NO_BOUND
from storage.queue import task
from timeline import active_fans
from timeline.inbox import Inbox, Tail, cap_of
from timeline.models import Backfill
from timeline.outbox import Outbox, pull

PART = 500
"""Followers filled between two updates of the progress."""
LEASE = OUTAGE_PAUSE * 6
"""A backfill without progress for this long has lost its worker. The sweeper starts it again."""
CLAIM = """
    UPDATE timeline_backfill SET lease = feedsite_draw(), leased_until = now() + %(lease)s, sweep_at = now() + %(lease)s
    WHERE id = %(backfill)s AND finished_at IS NULL AND cancelled_at IS NULL
        AND (leased_until IS NULL OR leased_until <= now())
    RETURNING lease
"""


def start(*, sender: User) -> bool:
    """Begin the demotion. False if one is running."""
    backfill, is_new = Backfill.objects.get_or_create(
        sender=sender, finished_at=None, cancelled_at=None, defaults={"followers": follower_count(sender)}
    )
    run.delay_on_commit(backfill.pk)
    return is_new


def cancel(*, sender: User) -> bool:
    """Stop a running demotion. Filled inboxes do no harm."""
    running = Backfill.objects.filter(sender=sender, finished_at=None, cancelled_at=None)
    return bool(running.update(cancelled_at=Now()))


@task("timeline.backfill")
def run(backfill_id: int) -> bool:
    """Fill the inboxes of the remaining followers, after a kill too. True if the flag was cleared."""
    rows = fetch(CLAIM, {"backfill": backfill_id, "lease": LEASE})
    if not rows:
        return False
    leased = Backfill.objects.filter(pk=backfill_id, lease=rows[0][0])
    try:
        with feeds_errors():
            return _run(leased.get(), leased.filter(finished_at=None, cancelled_at=None))
    except FeedsUnavailableError as error:
        leased.update(last_error=str(error), sweep_at=Now() + OUTAGE_PAUSE)
        return False
    finally:
        leased.update(lease=None, leased_until=None)


def _run(backfill: Backfill, running: QuerySet[Backfill]) -> bool:
    done = backfill.done
    parts = follower_parts(backfill.sender_id, backfill.position, NO_BOUND, 1, PART, with_inbox=True)
    for followers, levels in parts:
        # Pulled again for every part: later commits are pushed to the part's followers.
        entries, floor = pull(backfill.sender_id, settings.OUTBOX_CAP)
        client = feeds_for_tasks()
        # Tails pulled below the floor lack items that the sender has published again since.
        pipelined(client, [Tail(follower).drop() for follower in followers])
        pipelined(client, [Inbox(follower).merge(entries, floor) for follower in followers])
        pipelined(client, [Inbox(one).trim(cap_of(level)) for one, level in zip(followers, levels, strict=True)])
        done += len(followers)
        until = Now() + LEASE
        if not running.update(position=followers[-1], done=done, sweep_at=until, leased_until=until, last_error=""):
            return False  # cancelled, or so slow that another worker took over
    return _finish(backfill, running)


def _finish(backfill: Backfill, running: QuerySet[Backfill]) -> bool:
    with transaction.atomic():
        # Locks the user's row first, like accounts.levels.big_v, against deadlocks.
        sender = User.objects.locked().get(pk=backfill.sender_id)
        flipped = running.update(finished_at=Now(), done=F("followers"))
        if flipped:
            complete_demotion(user=sender)
    if flipped:
        active_fans.drop(backfill.sender_id)
        pipelined(feeds_for_tasks(), [Outbox(backfill.sender_id).drop()])
    return bool(flipped)


DUE = """
    (SELECT NULL::timestamptz FROM timeline_backfill
    WHERE finished_at IS NULL AND cancelled_at IS NULL AND sweep_at <= now())
"""


def sweep() -> int:
    """Enqueue backfills that lost their worker."""
    due = fetch(
        """
        UPDATE timeline_backfill SET sweep_at = now() + %s
        WHERE finished_at IS NULL AND cancelled_at IS NULL AND sweep_at <= now() RETURNING id
        """,
        [LEASE],
    )
    for (backfill_id,) in due:
        run.delay(backfill_id)
    return len(due)
