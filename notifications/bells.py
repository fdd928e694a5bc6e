"""Notifies those with a bell for a sender of a new post, in ranges of followers.

A `Ringing` row is the queue. It commits with the post, and is deleted when the last follower is notified. Nobody is
notified twice.
"""

import logging
from functools import partial

from django.db import transaction
from django.db.models.functions import Now

from items.hydrate import ITEMS
from items.models import Item, Visibility
from items.visibility import visible
from notifications.actions import announce_and_push
from notifications.models import Ringing
from relations.rules import bells_of, gets_notifications_from
from storage import claims
from storage.connections import fetch
from storage.queue import task

logger = logging.getLogger(__name__)

BATCH = 1_000
"""Bells of one transaction."""
ROUNDS = 40
"""Batches per task, so that other tasks get their turn."""
ATTEMPTS = 5
"""A ringing ends after this many failures in a row."""

BEGIN = f"""
    INSERT INTO notifications_ringing (item_id, up_to, attempts)
    SELECT %(item)s, 0, 0 WHERE EXISTS ({bells_of("%(sender)s")})
    ON CONFLICT (item_id) DO UPDATE SET up_to = 0, attempts = 0, tried_at = NULL, created_at = now()
    RETURNING item_id
"""
# Whoever is mentioned or quoted in the post has an entry of it already.
RING = f"""
    WITH bells AS MATERIALIZED (
        {bells_of("%(sender)s")} AND follower_id > %(up_to)s ORDER BY follower_id LIMIT %(count)s
    ),
    told AS (
        INSERT INTO notifications_notification (recipient_id, kind, item_id)
        SELECT u.id, 'post', i.id FROM bells JOIN accounts_user u ON u.id = bells.follower_id, {ITEMS}
        WHERE i.id = %(item)s AND u.is_active AND {visible("i", "s", "u.id")}
            AND {gets_notifications_from("u.id", "i.sender_id")}
            AND NOT EXISTS (
                SELECT FROM notifications_notification n
                WHERE n.recipient_id = u.id AND n.item_id = i.id AND n.kind IN ('mention', 'quote') AND n.day IS NULL
                OFFSET 0)
        ON CONFLICT DO NOTHING RETURNING id, recipient_id, position
    ),
    acts AS (
        INSERT INTO notifications_act (id, notification_id, recipient_id, actor_id)
        SELECT position, id, recipient_id, %(sender)s FROM told
    )
    SELECT last.id, told.recipient_id, told.position
    FROM (SELECT max(follower_id) FROM bells) AS last (id) LEFT JOIN told ON true
"""


def begin(*, item: Item) -> None:
    """Have bells rung for a post, in the transaction that publishes it. Replies and reposts ring none."""
    is_for_followers = item.visibility not in (Visibility.SELF, Visibility.MENTIONED)
    if not (item.may_ring and is_for_followers) or item.reply_to_id or item.repost_of_id:
        return
    if fetch(BEGIN, {"item": item.pk, "sender": item.sender_id}):
        transaction.on_commit(partial(claims.enqueue_turn, ring, Ringing, item.pk))


@task("notifications.ring")
def ring(item_id: int, turn: str | None = None) -> None:
    """Ring some bells, and enqueue the rest."""
    row = Ringing.objects.filter(pk=item_id).first()
    if row is None or not row.claim(turn):
        return
    if row.attempts >= ATTEMPTS:
        logger.error("the bells of item %s failed %s times and are given up", item_id, ATTEMPTS)
        Ringing.objects.filter(pk=item_id).delete()
        return
    for _ in range(ROUNDS):
        if _ring_batch(item_id):
            return
    row.release()
    claims.enqueue_turn(ring, Ringing, item_id)


@transaction.atomic
def _ring_batch(item_id: int) -> bool:
    """Ring the next bells. True after the last one."""
    row = Ringing.objects.select_for_update().filter(pk=item_id).first()
    sender_id = Item.objects.filter(pk=item_id).values_list("sender", flat=True).first()
    if row is None or sender_id is None:
        Ringing.objects.filter(pk=item_id).delete()
        return True
    found = fetch(RING, {"item": item_id, "sender": sender_id, "up_to": row.up_to, "count": BATCH})
    announce_and_push([(recipient_id, act_id) for _last, recipient_id, act_id in found if recipient_id])
    last = found[0][0]
    if last is None:
        row.delete()
        return True
    Ringing.objects.filter(pk=item_id).update(up_to=last, attempts=0, tried_at=Now())
    return False


def sweep() -> int:
    """Periodic: enqueue what a dead worker left."""
    return claims.sweep(Ringing, ring)
