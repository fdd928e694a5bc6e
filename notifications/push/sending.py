"""Push messages: their text, and the request to the push service.

An act is pushed if the page would show it at that moment, and its recipient has not read it. What waits for a device
(`waiting`) becomes one message.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from operator import attrgetter
from typing import NamedTuple
from zoneinfo import ZoneInfo

from django.utils import timezone

from accounts.cards import UserCard
from accounts.models import User
from items.hydrate import hydrate
from items.models import Context
from notifications.feed import act_shown, item_shown, read_mark
from notifications.models import Kind, PushSubscription
from notifications.push import encryption, messages
from notifications.push.messages import MessageFacts
from notifications.sessions import sessions
from relations.rules import follows
from storage.connections import fetch, id_array
from storage.ids import moment
from web import outbound

logger = logging.getLogger(__name__)

TRIAL_LIFE = timedelta(hours=2)
DAY_SECONDS = 24 * 3600
URGENCY = {Kind.LIVE: "high", Kind.FOLLOW: "low"}
LIFE = {Kind.LIVE: 3600}
"""Seconds for which an act may wait, and for which a service keeps a message for a device that is off; two days for
other kinds."""

RECIPIENT = "n.recipient_id"


@cache
def _due_statement() -> str:
    return f"""
    SELECT s.id, a.id, n.id, n.kind, n.recipient_id, n.item_id, n.session_id,
        u.id, u.username, u.display_name, u.is_big_v, u.avatar::text, q.begins, q.ends, q.time_zone
    FROM notifications_act a
    JOIN notifications_notification n ON n.id = a.notification_id
    JOIN accounts_user u ON u.id = a.actor_id
    JOIN accounts_user r ON r.id = n.recipient_id AND r.is_active
    JOIN notifications_pushsubscription s ON s.user_id = n.recipient_id AND n.kind = ANY(s.kinds)
    LEFT JOIN notifications_quiethours q ON q.user_id = n.recipient_id
    WHERE a.id = ANY(%(acts)s::bigint[]) AND a.id > {read_mark(RECIPIENT)}
        AND (%(only)s::bigint IS NULL OR s.id = %(only)s)
        AND CASE s.policy
            WHEN 'all' THEN true
            WHEN 'followed' THEN {follows(RECIPIENT, "a.actor_id")}
            WHEN 'follower' THEN {follows("a.actor_id", RECIPIENT)}
            ELSE false
        END
        AND {STANDING}
        AND {item_shown(RECIPIENT)} AND {act_shown(RECIPIENT)}
    """


STANDING = """
    CASE WHEN s.token_id IS NULL THEN EXISTS (
        SELECT FROM django_session d WHERE d.session_key = s.session_key AND d.expire_date > now() OFFSET 0)
    ELSE EXISTS (
        SELECT FROM oauth2_provider_accesstoken t WHERE t.id = s.token_id AND t.expires > now() OFFSET 0)
    END
"""


class PushMessage(NamedTuple):
    """A message, the kind of its newest act, and the topic under which a push service replaces it."""

    message: bytes
    kind: str
    topic: str


class _DueRow(NamedTuple):
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


def message_for(device: PushSubscription, *, is_capped: bool) -> PushMessage | None:
    """The message of the acts that wait and are still shown, else of a test. None if there is nothing to send."""
    rows = shown_to_devices(device.waiting, only=device.pk) if device.waiting else []
    told = _shown_facts(rows)
    if told:
        newest = max((row for row in rows if row.act_id in told), key=attrgetter("act_id"))
        message = messages.message(told[newest.act_id], device, others=len(told) - 1, is_capped=is_capped)
        return PushMessage(message, newest.kind, f"e{newest.entry_id}")
    if device.trial_at is not None and device.trial_at > timezone.now() - TRIAL_LIFE:
        return PushMessage(messages.trial_message(device), Kind.MENTION, "trial")
    return None


def shown_to_devices(act_ids: Sequence[int], *, only: int | None = None) -> list[_DueRow]:
    """The acts that may be pushed now to each device, or to `only` one."""
    now = timezone.now()
    return [
        row
        for row in fetch(_due_statement(), {"acts": id_array(act_ids), "only": only}, into=_DueRow._make)
        if not is_quiet(row.begins, row.ends, row.time_zone, now)
        and moment(row.act_id) > now - timedelta(seconds=_ttl_seconds(row.kind))
    ]


def _ttl_seconds(kind: str) -> int:
    return LIFE.get(Kind(kind), 2 * DAY_SECONDS)


def is_quiet(begins: int | None, ends: int | None, time_zone: str | None, now: datetime) -> bool:
    """Whether the time is in a user's quiet hours."""
    if begins is None or ends is None or time_zone is None:
        return False
    hour = now.astimezone(ZoneInfo(time_zone)).hour
    return begins <= hour < ends if begins < ends else hour >= begins or hour < ends


def _shown_facts(rows: Sequence[_DueRow]) -> Mapping[int, MessageFacts]:
    """What to tell a reader of acts, by act id. Acts on items that filters hide are left out."""
    reader = User.objects.filter(pk=rows[0].recipient_id).first() if rows else None
    if reader is None:
        return {}
    items = {
        int(item.id): item
        for item in hydrate([row.item_id for row in rows if row.item_id], reader, Context.NOTIFICATIONS)
    }
    started = [row.session_id for row in rows if row.session_id]
    cards = sessions.cards(started, reader) if started else {}
    told = {}
    for row in rows:
        item = items.get(row.item_id) if row.item_id else None
        if row.item_id and (item is None or item.is_hidden):
            continue
        card = cards.get(row.session_id) if row.session_id else None
        title = card.title if card else ""
        told[row.act_id] = MessageFacts(row.act_id, row.kind, row.actor, item, row.session_id, title)
    return told


def post(device: PushSubscription, parcel: PushMessage) -> int:
    """Send a message to the service of a device, and return the status. Raises OutboundError."""
    letter = encryption.encrypt_message(
        parcel.message, p256dh=device.p256dh, auth=device.auth, is_standard=device.is_standard
    )
    headers = {
        **encryption.vapid_headers(letter, device.endpoint, device.server_key),
        "Content-Type": "application/octet-stream",
        "TTL": str(_ttl_seconds(parcel.kind)),
        "Urgency": URGENCY.get(Kind(parcel.kind), "normal"),
        "Topic": parcel.topic,
    }
    return outbound.post(device.endpoint, headers=headers, body=letter.body, member=device.user_id).status
