from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from items.models import Item, Like
from items.text import mentions
from notifications.models import Act, Kind, Notification, ReadMark
from relations.models import Follow
from storage import ids

UNREAD = timedelta(hours=5)
"""Newer entries are unread."""


class DemoAct(NamedTuple):
    """An act, with its entry's item or day."""

    at: datetime
    recipient_id: int
    kind: Kind
    actor_id: int
    item_id: int | None = None
    day: date | None = None


def write_notifications(items: Sequence[Item], likes: Sequence[Like], follows: Sequence[Follow]) -> None:
    """Write the notifications of the whole community."""
    told = sorted(
        (
            one
            for one in (*_acts_of_items(items), *_acts_of_likes(likes), *_acts_of_follows(follows))
            if one.recipient_id != one.actor_id
        ),
        key=lambda one: one.at,
    )
    entries: dict[tuple[object, ...], Notification] = {}
    acts: dict[tuple[object, ...], Act] = {}
    for place, one in enumerate(told):
        key = (one.recipient_id, one.kind, one.item_id, one.day)
        # By time, so that acts of one millisecond get different ids.
        act_id = ids.compose(one.at, place % 2**ids.SEQUENCE_BITS)
        entry = entries.setdefault(
            key, Notification(recipient_id=one.recipient_id, kind=one.kind, item_id=one.item_id, day=one.day)
        )
        entry.position = act_id
        acts[*key, one.actor_id] = Act(
            id=act_id, recipient_id=one.recipient_id, actor_id=one.actor_id, notification=entry
        )
    Notification.objects.bulk_create(entries.values(), batch_size=5000)
    for act in acts.values():
        act.notification_id = act.notification.pk
    Act.objects.bulk_create(acts.values(), batch_size=5000)
    seen = ids.compose(datetime.now(UTC) - UNREAD, 0)
    recipients = {entry.recipient_id for entry in entries.values()}
    ReadMark.objects.bulk_create([ReadMark(user_id=pk, up_to=seen) for pk in sorted(recipients)], batch_size=5000)


def _acts_of_items(items: Sequence[Item]) -> Iterator[DemoAct]:
    people = {item.sender.username.lower(): item.sender_id for item in items}
    for item in items:
        at = item.modified_at
        if item.repost_of:
            yield DemoAct(at, item.repost_of.sender_id, Kind.REPOST, item.sender_id, item.repost_of_id)
            continue
        answered = {above.sender_id for above in (item.reply_to, item.root) if above}
        named = {people[name.lower()] for name in mentions(item.text) if name.lower() in people}
        for recipient_id in sorted(answered):
            yield DemoAct(at, recipient_id, Kind.REPLY, item.sender_id, item.pk)
        for recipient_id in sorted(named - answered):
            yield DemoAct(at, recipient_id, Kind.MENTION, item.sender_id, item.pk)


def _acts_of_likes(likes: Sequence[Like]) -> Iterator[DemoAct]:
    for like in likes:
        yield DemoAct(like.created_at, like.item.sender_id, Kind.LIKE, like.user_id, like.item_id)


def _acts_of_follows(follows: Sequence[Follow]) -> Iterator[DemoAct]:
    for follow in follows:
        day = follow.created_at.astimezone(UTC).date()
        yield DemoAct(follow.created_at, follow.followee_id, Kind.FOLLOW, follow.follower_id, None, day)
