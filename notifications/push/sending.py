"""Sending push messages.

An act is pushed if the page would show it at that moment, and its recipient has not read it. A device that fails is
left alone, longer each time, and forgotten after `FORGOTTEN_AFTER`.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from accounts.cards import UserCard
from accounts.models import User
from items.hydrate import hydrate
from items.models import Context
from notifications.feed import act_shown, item_shown, mark
from notifications.models import Kind, PushSubscription
from notifications.push import encryption, messages
from notifications.push.messages import Told
from notifications.sessions import sessions
from relations.rules import follows
from storage.connections import fetch, id_array
from storage.queue import enqueue
from web import outbound

logger = logging.getLogger(__name__)

ACTS = 20
"""Acts of one task."""
TURN_SECONDS = 20.0
"""Seconds after which a task leaves the other devices to tasks of their own, behind what waits for workers."""
RETRIES = (15, 60, 240)
"""Seconds after which a message that was not taken is sent again."""
LONGEST_PAUSE = timedelta(hours=6)
FORGOTTEN_AFTER = timedelta(days=7)
"""A device that fails for this long is forgotten."""
GONE = (404, 410)
"""The answers by which a service says that a device is no longer there."""
AGAIN = (408, 425, 429)
"""Refusals after which the same message may be taken."""
DAY_SECONDS = 24 * 3600
URGENCY = {Kind.LIVE: "high", Kind.FOLLOW: "low"}
LIFE = {Kind.LIVE: 3600}
"""Seconds for which a service keeps a message for a device that is off; two days for other kinds."""

WITH_DEVICES = """
    SELECT DISTINCT user_id FROM notifications_pushsubscription WHERE user_id = ANY(%(users)s::bigint[])
"""
RECIPIENT = "n.recipient_id"


@cache
def _due() -> str:
    return f"""
    SELECT s.id, a.id, n.id, n.kind, n.recipient_id, n.item_id, n.session_id,
        u.id, u.username, u.display_name, u.is_big_v, u.avatar::text, q.begins, q.ends, q.time_zone
    FROM notifications_act a
    JOIN notifications_notification n ON n.id = a.notification_id
    JOIN accounts_user u ON u.id = a.actor_id
    JOIN accounts_user r ON r.id = n.recipient_id AND r.is_active
    JOIN notifications_pushsubscription s ON s.user_id = n.recipient_id AND n.kind = ANY(s.kinds)
    LEFT JOIN notifications_quiethours q ON q.user_id = n.recipient_id
    WHERE a.id = ANY(%(acts)s::bigint[]) AND a.id > {mark(RECIPIENT)}
        AND CASE WHEN %(only)s::bigint IS NULL THEN s.retry_at IS NULL OR s.retry_at <= now() ELSE s.id = %(only)s END
        AND CASE s.policy
            WHEN 'all' THEN true
            WHEN 'followed' THEN {follows(RECIPIENT, "a.actor_id")}
            WHEN 'follower' THEN {follows("a.actor_id", RECIPIENT)}
            ELSE false
        END
        AND {STANDING}
        AND {item_shown(RECIPIENT)} AND {act_shown(RECIPIENT)}
    """  # noqa: S608 (constants)


STANDING = """
    CASE WHEN s.token_id IS NULL THEN EXISTS (
        SELECT FROM django_session d WHERE d.session_key = s.session_key AND d.expire_date > now() OFFSET 0)
    ELSE EXISTS (
        SELECT FROM oauth2_provider_accesstoken t WHERE t.id = s.token_id AND t.expires > now() OFFSET 0)
    END
"""


class _Due(NamedTuple):
    subscription_id: int
    act_id: int
    entry_id: int
    kind: str
    recipient_id: int
    item_id: int | None
    session_id: int | None
    actor_id: int
    username: str
    display_name: str
    is_big_v: bool
    avatar: str | None
    begins: int | None
    ends: int | None
    time_zone: str | None

    @property
    def actor(self) -> UserCard:
        return UserCard.from_row(self.actor_id, self.username, self.display_name, self.is_big_v, self.avatar)


def push_later(told: Iterable[tuple[int, int]]) -> None:
    """Have workers push acts to those who have devices."""
    acts = dict(told)
    if not acts:
        return
    with_devices = [user_id for (user_id,) in fetch(WITH_DEVICES, {"users": id_array(acts)})]
    for start in range(0, len(with_devices), ACTS):
        enqueue("notifications.push", [acts[user_id] for user_id in with_devices[start : start + ACTS]])


def push(act_ids: Sequence[int], *, only: int | None = None, attempt: int = 0) -> None:
    """Push acts to devices, or one again to `only` one."""
    due = fetch(_due(), {"acts": id_array(act_ids), "only": only}, into=_Due._make)
    now = timezone.now()
    due = [row for row in due if not is_quiet(row.begins, row.ends, row.time_zone, now)]
    if not due:
        return
    told = _told(due)
    subscriptions = PushSubscription.objects.in_bulk({row.subscription_id for row in due})
    until = time.monotonic() + TURN_SECONDS
    for place, row in enumerate(due):
        subscription = subscriptions.get(row.subscription_id)
        if subscription is None or row.act_id not in told:
            continue
        if place and time.monotonic() > until:
            enqueue("notifications.push_again", row.act_id, subscription.pk, attempt)
        else:
            message = messages.message(told[row.act_id], subscription)
            if not _send(subscription, message, row.kind, f"e{row.entry_id}") and attempt < len(RETRIES):
                again = (row.act_id, subscription.pk, attempt + 1)
                enqueue("notifications.push_again", *again, after_seconds=RETRIES[attempt])


def push_trial(subscription_id: int) -> None:
    """Send a trial message to a device."""
    subscription = PushSubscription.objects.filter(pk=subscription_id).first()
    if subscription is not None:
        _send(subscription, messages.trial(subscription), Kind.MENTION, "trial")


def is_quiet(begins: int | None, ends: int | None, time_zone: str | None, now: datetime) -> bool:
    """Whether the time is in a user's quiet hours."""
    if begins is None or ends is None or time_zone is None:
        return False
    hour = now.astimezone(ZoneInfo(time_zone)).hour
    return begins <= hour < ends if begins < ends else hour >= begins or hour < ends


def _told(due: Sequence[_Due]) -> Mapping[int, Told]:
    """What to tell of each act, by act id. Acts on items that filters hide are left out."""
    told = {}
    readers = User.objects.in_bulk({row.recipient_id for row in due})
    for row in {row.act_id: row for row in due}.values():
        reader = readers.get(row.recipient_id)
        if reader is None:
            continue
        one = Told(row.act_id, row.kind, row.actor, session_id=row.session_id)
        if row.item_id:
            one.item = next(iter(hydrate([row.item_id], reader, Context.NOTIFICATIONS)), None)
            if one.item is None or one.item.is_hidden:
                continue
        if row.session_id:
            card = sessions.cards([row.session_id], reader).get(row.session_id)
            one.title = card.title if card else ""
        told[row.act_id] = one
    return told


def _send(subscription: PushSubscription, message: bytes, kind: str, topic: str) -> bool:
    """Send a message to a device. False if the device may take it later."""
    letter = encryption.encrypted(
        message, p256dh=subscription.p256dh, auth=subscription.auth, is_standard=subscription.is_standard
    )
    headers = {
        **encryption.signed(letter, subscription.endpoint, subscription.server_key),
        "Content-Type": "application/octet-stream",
        "TTL": str(LIFE.get(Kind(kind), 2 * DAY_SECONDS)),
        "Urgency": URGENCY.get(Kind(kind), "normal"),
        "Topic": topic,
    }
    try:
        status = outbound.post(
            subscription.endpoint, headers=headers, body=letter.body, member=subscription.user_id
        ).status
    except outbound.RefusedError:
        logger.info("push subscription %s has no public address. It is deleted", subscription.pk)
        PushSubscription.objects.filter(pk=subscription.pk).delete()
        return True
    except outbound.OutboundError as error:
        logger.info("push subscription %s failed: %s", subscription.pk, error)
        _note_failure(subscription)
        return False
    if 200 <= status < 300:
        if subscription.failing_since:
            PushSubscription.objects.filter(pk=subscription.pk).update(failing_since=None, retry_at=None)
        return True
    logger.info("push subscription %s was refused: status %s", subscription.pk, status)
    if status in GONE:
        PushSubscription.objects.filter(pk=subscription.pk).delete()
        return True
    _note_failure(subscription)
    return status not in AGAIN and status < 500


def _note_failure(subscription: PushSubscription) -> None:
    now = timezone.now()
    failing_for = now - (subscription.failing_since or now)
    row = PushSubscription.objects.filter(pk=subscription.pk)
    if failing_for >= FORGOTTEN_AFTER:
        row.delete()
        return
    pause = min(max(failing_for / 2, timedelta(seconds=RETRIES[0])), LONGEST_PAUSE)
    row.update(failing_since=Coalesce("failing_since", Now()), retry_at=now + pause)
