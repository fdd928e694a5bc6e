"""What waits for devices, in PostgreSQL, and the tasks that send it.

At most one message waits for a device: of the acts in `waiting`, of a test, or of both. At most one is being sent: a
claim holds `retry_at` in the future. `due_at` is when the sweep takes a device up, because its task was lost, its
worker died, or its pause is over. It is None while nothing waits.

The broker holds at most one task of a device. One is enqueued when something begins to wait, and after a message if
more waits. The sweep runs in the same queue (settings.CELERY_TASK_ROUTES): when its turn comes, a task enqueued before
it has left.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import models, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from accounts.models import User
from notifications.models import PushSubscription
from notifications.push.sending import PushMessage, message_for, post, shown_to_devices
from storage.connections import fetch
from storage.queue import HintTask, task
from web import outbound

logger = logging.getLogger(__name__)

ACTS = 20
"""Acts of one task."""
GONE = (404, 410)
"""The answers by which a service says that a device is no longer there."""
AGAIN = (408, 425, 429)
"""Refusals after which the same message may be taken."""
MOST = 100
"""Most acts that wait for a device. The newest stay."""
PUSHED = 20
"""How many of the acts that were pushed a device remembers, because a broker may repeat a task."""
LOST_AFTER = timedelta(seconds=60)
"""A task that no worker took for this long is taken for lost."""
CLAIM_LIFE = timedelta(seconds=60)
"""A worker that sends for this long is taken for dead."""
RETRIES = (15, 60, 240)
"""Seconds after which a message that was not taken is sent again."""
TRY = 2
"""What a try counts until its end is known, then one. So a message is sent once more if its worker died, not thrice."""
LONGEST_PAUSE = timedelta(hours=6)
FORGOTTEN_AFTER = timedelta(days=7)
"""A device that fails for this long is forgotten."""
SWEPT = 1_000

DUE = "SELECT due_at FROM notifications_pushsubscription WHERE due_at <= now()"
SWEEP = """
    UPDATE notifications_pushsubscription SET due_at = now() + %(lost_after)s
    WHERE id = ANY(ARRAY(
        SELECT id FROM notifications_pushsubscription WHERE due_at <= now()
        ORDER BY due_at LIMIT %(count)s FOR NO KEY UPDATE SKIP LOCKED))
    RETURNING id
"""


def push_later(told: Iterable[tuple[int, int]]) -> None:
    """Have workers push acts to those who have devices."""
    acts = dict(told)
    if not acts:
        return
    with_devices = PushSubscription.objects.filter(user__in=acts).values_list("user", flat=True).distinct()
    for start in range(0, len(with_devices), ACTS):
        queue_pushes.delay([acts[user_id] for user_id in with_devices[start : start + ACTS]])


@task("notifications.push")
def queue_pushes(act_ids: Sequence[int]) -> None:
    """Have acts wait for the devices of their recipients."""
    acts: dict[int, set[int]] = defaultdict(set)
    for row in shown_to_devices(act_ids):
        acts[row.subscription_id].add(row.act_id)
    if acts:
        queue_acts(acts)


def queue_acts(acts: Mapping[int, set[int]]) -> None:
    """Have acts wait for devices, by the id of the device."""
    with transaction.atomic():
        rows = list(_lock_subscriptions().filter(pk__in=acts).order_by("pk"))
        for row in rows:
            oldest = row.pushed[0] if len(row.pushed) == PUSHED else 0
            fresh = {act for act in acts[row.pk] if act > oldest and act not in row.pushed}
            row.waiting = sorted({*row.waiting, *fresh})[-MOST:]
            if row.waiting:
                _schedule_sending(row)
        PushSubscription.objects.bulk_update(rows, ["waiting", "due_at"])


@transaction.atomic
def add_trial(*, user: User, subscription_id: int) -> bool:
    """Have a test wait for a device. False if one waits, the device fails, or there is none."""
    row = _lock_subscriptions().filter(user=user, pk=subscription_id, trial_at=None).first()
    if row is None or row.is_failing:
        return False
    row.trial_at = row.now
    _schedule_sending(row, push_trial)
    row.save(update_fields=["trial_at", "due_at"])
    return True


@task("notifications.push_device")
def push_device(subscription_id: int) -> None:
    """Send what waits for a device, as one message."""
    until = time.monotonic() + CLAIM_LIFE.total_seconds() - 2 * outbound.SECONDS
    device = claim(subscription_id)
    if device is None:
        return
    parcel = message_for(device, is_capped=len(device.waiting) == MOST)
    if parcel is None:
        end_claim(device)
    elif time.monotonic() < until:  # else another worker may soon send it
        _send(device, parcel)


@task("notifications.push_trial")
def push_trial(subscription_id: int) -> None:
    """Send the test that waits for a device."""
    push_device(subscription_id)


def _send(device: PushSubscription, parcel: PushMessage) -> None:
    try:
        status = post(device, parcel)
    except outbound.OverBudgetError as error:
        postpone(device, timedelta(seconds=error.seconds))
    except outbound.OutboundError as error:
        # The same for a name that does not exist and for one inside the site's network: nobody learns which are there.
        logger.info("push subscription %s failed: %s", device.pk, error)
        mark_failed(device)
    else:
        _handle_status(device, status)


def _handle_status(device: PushSubscription, status: int) -> None:
    if 200 <= status < 300:
        mark_delivered(device)
        return
    logger.info("push subscription %s was refused: status %s", device.pk, status)
    if status in GONE:
        PushSubscription.objects.filter(pk=device.pk).delete()
        return
    mark_failed(device, is_final=status not in AGAIN and status < 500)


def claim(subscription_id: int) -> PushSubscription | None:
    """Take what waits for a device. None if nothing does, or not yet, or another worker sends."""
    free = PushSubscription.objects.filter(Q(retry_at=None) | Q(retry_at__lte=Now()), pk=subscription_id)
    until = Now() + CLAIM_LIFE
    if not free.filter(due_at__isnull=False).update(retry_at=until, due_at=until, tries=F("tries") + TRY):
        return None
    device = PushSubscription.objects.filter(pk=subscription_id).first()
    if device is not None and device.tries - TRY > len(RETRIES):
        end_claim(device)
        return None
    return device


# --- The end of a claim ----------------------------------------------------------------------------------
def end_claim(device: PushSubscription) -> None:
    """Forget what was claimed, without a word of the device."""
    _finish_claim(device, is_over=True)


def mark_delivered(device: PushSubscription) -> None:
    """Note that the device took the message."""
    _finish_claim(device, is_over=True, failing_since=None)


def postpone(device: PushSubscription, pause: timedelta) -> None:
    """Send later, because the site may not send now."""
    _finish_claim(device, is_over=False, pause=min(pause, LONGEST_PAUSE), tries=device.tries - TRY)


def mark_failed(device: PushSubscription, *, is_final: bool = False) -> None:
    """Leave a device alone, longer each time. Its message is sent again unless this is `is_final`, or the last try.

    Members see a failure when the longest request would have ended. So they cannot tell by time what failed.
    """
    assert device.due_at is not None  # noqa: S101 (it is claimed)
    claimed_at = device.due_at - CLAIM_LIFE
    since = device.failing_since or claimed_at + timedelta(seconds=outbound.SECONDS)
    failing_for = claimed_at - since
    if failing_for >= FORGOTTEN_AFTER:
        PushSubscription.objects.filter(pk=device.pk).delete()
        return
    tries = device.tries - TRY + 1
    pause = max(failing_for / 2, timedelta(seconds=RETRIES[min(tries, len(RETRIES)) - 1]))
    _finish_claim(
        device,
        is_over=is_final or tries > len(RETRIES),
        pause=min(pause, LONGEST_PAUSE),
        tries=tries,
        failing_since=since,
    )


def _finish_claim(device: PushSubscription, *, is_over: bool, pause: timedelta | None = None, **changes: Any) -> None:
    """End a claim. `is_over`: forget what it took. What came meanwhile waits."""
    with transaction.atomic():
        row = _lock_subscriptions().filter(pk=device.pk, due_at=device.due_at).first()
        if row is None:  # the device was removed, or its claim has lapsed
            return
        for column, value in changes.items():
            setattr(row, column, value)
        if is_over:
            row.waiting = [act for act in row.waiting if act not in device.waiting]
            row.trial_at = None if row.trial_at == device.trial_at else row.trial_at
            row.tries = 0
            row.pushed = sorted({*row.pushed, *device.waiting})[-PUSHED:]
        row.retry_at = None if pause is None else row.now + pause
        row.due_at = None
        if row.waiting or row.trial_at:
            _schedule_sending(row)
        row.save(update_fields=["waiting", "trial_at", "tries", "pushed", "failing_since", "retry_at", "due_at"])


def _schedule_sending(row: Any, by: HintTask[..., None] | None = None) -> None:
    """Have a task send what waits, unless a task, a worker or the sweep has it in hand."""
    if row.due_at is not None:
        return
    if row.retry_at is not None and row.retry_at > row.now:
        row.due_at = row.retry_at
    else:
        row.due_at = row.now + LOST_AFTER
        transaction.on_commit(partial((by or push_device).delay, row.pk), robust=True)


def _lock_subscriptions() -> "models.QuerySet[Any]":
    """Devices to change, with PostgreSQL's time as `now`."""
    return PushSubscription.objects.select_for_update(no_key=True).annotate(now=Now())


# --- Upkeep ----------------------------------------------------------------------------------------------
def sweep() -> int:
    """Periodic: enqueue tasks of due devices until the broker refuses. Returns how many were due."""
    due = fetch(SWEEP, {"lost_after": LOST_AFTER, "count": SWEPT})
    for (subscription_id,) in due:
        if not push_device.delay(subscription_id):
            break
    return len(due)
