"""The verbs that write notifications, called inside the transaction of the act.

No row is contended: an entry's row changes at most once in `feed.STILL`. A like costs one statement (three for an
item's first), so no task is needed that could be lost.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from django.core.cache import cache
from django.db import transaction

from accounts.about.site import current
from accounts.models import User
from items.hydrate import ITEMS
from items.models import Item, Status
from items.text import mentions
from items.visibility import visible
from notifications import feed
from notifications.models import CHOOSABLE, OF_MODERATORS, PUSHED, Kind, Silenced
from notifications.push.waiting import push_later
from relations.rules import gets_notifications_from
from storage import ids, keys
from storage.connections import fetch, id_array
from storage.events import ManyNotified, Notified, announce
from storage.queue import task

MENTIONS = 20
"""Most people notified of mentions in one item."""
ONE_BY_ONE = MENTIONS + 2
"""Most recipients with one event each. More become one event, because the stream keeps a limited number of events."""
ANNOUNCED = 100
"""Most recipients of one decision who hear of it at once. Others find it when they next load a page."""
BATCH = 5_000
FEW, AT_ONCE = 500, 20
"""Rows per batch, and batches, that one request deletes from a list."""
ATTEMPTS = 3
LATE_SECONDS = 1
"""Acts within `feed.STILL` of an announced one are announced together, this much later."""

OF_ITEM = "n.recipient_id = %(recipient)s AND n.kind = %(kind)s AND n.item_id = %(item)s AND n.day IS NULL"
TODAY = "(now() AT TIME ZONE 'UTC')::date"
OF_TODAY = f"n.recipient_id = %(recipient)s AND n.kind = '{{kind}}' AND n.day = {TODAY}"
# INSERT … ON CONFLICT DO UPDATE of the entry would lock its row even without a change. The act of a user who undoes and
# repeats it already exists, so the recipient is not notified twice. LIMIT tells the planner that there is one entry.
ADD = """
    WITH found AS (SELECT n.id FROM notifications_notification n WHERE {key} LIMIT 1),
    act AS (
        INSERT INTO notifications_act (notification_id, recipient_id, actor_id)
        SELECT found.id, %(recipient)s, %(actor)s FROM found
        ON CONFLICT DO NOTHING RETURNING id, notification_id
    ),
    moved AS (
        UPDATE notifications_notification n SET position = act.id FROM act
        WHERE n.id = act.notification_id AND n.position <= act.id - %(still)s RETURNING n.id
    )
    SELECT EXISTS (SELECT FROM moved), (SELECT id FROM act) FROM found
"""
ADD_TO_ITEM = ADD.format(key=OF_ITEM)
# The kind is in the text: each has its own index.
ADD_TO_TODAY = {
    kind: ADD.format(key=OF_TODAY.format(kind=kind.value))
    for kind in (Kind.FOLLOW, Kind.FOLLOW_REQUEST, Kind.FOLLOW_ACCEPTED)
}
BEGIN_ITEM = """
    INSERT INTO notifications_notification (recipient_id, kind, item_id) VALUES (%(recipient)s, %(kind)s, %(item)s)
    ON CONFLICT DO NOTHING RETURNING id
"""
BEGIN_TODAY = f"""
    INSERT INTO notifications_notification (recipient_id, kind, day)
    VALUES (%(recipient)s, %(kind)s, {TODAY}) ON CONFLICT DO NOTHING RETURNING id
"""


# The visibility rule, for each candidate as reader. Candidates are found first, by id and by name separately, because
# with OR PostgreSQL would scan all users.
def _notify_statement(addressed: str) -> str:
    return f"""
    WITH answered AS MATERIALIZED (
        SELECT sender_id AS id FROM items_item WHERE id IN (%(parent)s::bigint, %(root)s::bigint)
    ),
    quoted AS MATERIALIZED (SELECT sender_id AS id FROM items_item WHERE id = %(quoted)s::bigint),
    addressed AS MATERIALIZED (
        {addressed}
    ),
    told AS (
        INSERT INTO notifications_notification (recipient_id, kind, item_id)
        SELECT m.id, CASE WHEN m.id IN (SELECT id FROM answered) THEN 'reply'
            WHEN m.id IN (SELECT id FROM quoted) THEN 'quote' ELSE 'mention' END, i.id
        FROM addressed JOIN accounts_user m ON m.id = addressed.id, {ITEMS}
        WHERE m.id <> %(sender)s AND m.is_active AND i.id = %(item)s AND {visible("i", "s", "m.id")}
        ON CONFLICT DO NOTHING RETURNING id, recipient_id, position
    ),
    acts AS (
        INSERT INTO notifications_act (id, notification_id, recipient_id, actor_id)
        SELECT position, id, recipient_id, %(sender)s FROM told
    )
    SELECT recipient_id, position FROM told
    """


TELL = _notify_statement("""
    SELECT id FROM answered UNION SELECT id FROM quoted
    UNION SELECT id FROM accounts_user WHERE lower(username) = ANY(%(names)s::text[])
""")
# A private mention notifies all participants, except those who have it as a request.
TELL_PEOPLE = _notify_statement("""
    SELECT user_id AS id FROM items_participant WHERE conversation_id = %(conversation)s AND NOT is_request
""")
# Once per session and user, without blocks either way and muted notifications.
TELL_OF_SESSION = f"""
    WITH told AS (
        INSERT INTO notifications_notification (recipient_id, kind, session_id)
        SELECT u.id, 'live', %(session)s
        FROM accounts_user u JOIN accounts_user h ON h.id = %(host)s AND h.is_active
        WHERE u.id = ANY(%(users)s::bigint[]) AND u.is_active AND u.id <> h.id
            AND {gets_notifications_from("u.id", "h.id")}
        ON CONFLICT DO NOTHING RETURNING id, recipient_id, position
    ),
    acts AS (
        INSERT INTO notifications_act (id, notification_id, recipient_id, actor_id)
        SELECT position, id, recipient_id, %(host)s FROM told
    )
    SELECT recipient_id, position FROM told
"""
# The act is its sender's, for the sender too: apps name the account of the poll.
TELL_OF_POLL = f"""
    WITH told AS (
        INSERT INTO notifications_notification (recipient_id, kind, item_id)
        SELECT u.id, 'poll', i.id FROM accounts_user u, {ITEMS}
        WHERE u.id = ANY(%(users)s::bigint[]) AND u.is_active AND i.id = %(item)s AND {visible("i", "s", "u.id")}
        ON CONFLICT DO NOTHING RETURNING id, recipient_id, position
    ),
    acts AS (
        INSERT INTO notifications_act (id, notification_id, recipient_id, actor_id)
        SELECT position, id, recipient_id, %(sender)s FROM told
    )
    SELECT recipient_id, position FROM told
"""
# The recipient's own act: no block or mute hides it.
NOTIFY_OF_MODERATION = """
    WITH entries AS (
        INSERT INTO notifications_notification (recipient_id, kind, text, detail, subject_id)
        SELECT u.id, %(kind)s, %(text)s, %(detail)s, %(subject)s
        FROM accounts_user u WHERE u.id = ANY(%(users)s::bigint[]) AND u.deleted_at IS NULL
        RETURNING id, recipient_id, position
    ),
    acts AS (
        INSERT INTO notifications_act (id, notification_id, recipient_id, actor_id)
        SELECT position, id, recipient_id, recipient_id FROM entries
    )
    SELECT recipient_id FROM entries
"""
TELL_OF_SCHEDULED = """
    WITH told AS (
        INSERT INTO notifications_notification (recipient_id, kind, item_id) VALUES (%(user)s, 'scheduled', %(item)s)
        RETURNING id, recipient_id, position
    )
    INSERT INTO notifications_act (id, notification_id, recipient_id, actor_id)
    SELECT position, id, recipient_id, recipient_id FROM told RETURNING id
"""
# One entry per post. A further removal moves it up, with the new text.
TELL_OF_PICTURES = """
    WITH told AS (
        INSERT INTO notifications_notification (recipient_id, kind, item_id, text, subject_id)
        VALUES (%(user)s, 'picture', %(item)s, %(text)s, %(decision)s)
        ON CONFLICT (recipient_id, item_id, kind) WHERE day IS NULL
            DO UPDATE SET text = EXCLUDED.text, subject_id = EXCLUDED.subject_id, position = EXCLUDED.position
        RETURNING id, recipient_id, position
    )
    INSERT INTO notifications_act (id, notification_id, recipient_id, actor_id)
    SELECT position, id, recipient_id, recipient_id FROM told
    ON CONFLICT (notification_id, actor_id) DO UPDATE SET id = EXCLUDED.id RETURNING actor_id
"""
MARK = """
    INSERT INTO notifications_readmark AS mark (user_id, up_to)
    VALUES (%(user)s, least(%(up_to)s::bigint, feedsite_next_id()))
    ON CONFLICT (user_id) DO UPDATE SET up_to = EXCLUDED.up_to WHERE mark.up_to < EXCLUDED.up_to
    RETURNING user_id
"""


# --- Acts that users are told of -------------------------------------------------------------------------
def notify_of_item(*, item: Item) -> None:
    """Notify of a repost, reply, quote or mention, in this order, each recipient at most once per item. A reply goes to
    the senders of the answered item and of the root, a message to everyone in its conversation.
    """
    if item.status != Status.PUBLISHED:
        return
    if item.repost_of:
        _add_act(Kind.REPOST, item.repost_of, item.sender_id)
        return
    names = mentions(item.text)[:MENTIONS]
    quoted_id = None if item.is_quote_revoked else item.quote_of_id
    if not (names or item.is_private or item.reply_to_id or quoted_id):
        return
    told = fetch(
        TELL_PEOPLE if item.is_private else TELL,
        {
            "item": item.pk,
            "conversation": item.conversation_id or item.pk,
            "sender": item.sender_id,
            "parent": item.reply_to_id,
            "root": item.root_id,
            "quoted": quoted_id,
            "names": [name.lower() for name in names],
        },
    )
    announce_and_push(told)


def notify_of_like(*, item: Item, user: User) -> None:
    """Notify the item's sender of a like."""
    _add_act(Kind.LIKE, item, user.pk)


def notify_of_follow(*, follower: User, followee: User) -> None:
    """Notify `followee` of a follower."""
    _add_to_todays_entry(Kind.FOLLOW, followee, follower)


def notify_of_request(*, follower: User, followee: User) -> None:
    """Notify `followee` of a follow request."""
    _add_to_todays_entry(Kind.FOLLOW_REQUEST, followee, follower)


def notify_of_acceptance(*, follower: User, followee: User) -> None:
    """Notify `follower` that their request was accepted."""
    _add_to_todays_entry(Kind.FOLLOW_ACCEPTED, follower, followee)


def _add_to_todays_entry(kind: Kind, recipient: User, actor: User) -> None:
    params = {"recipient": recipient.pk, "kind": kind.value, "actor": actor.pk, "still": feed.STILL}
    _add_to_entry(ADD_TO_TODAY[kind], BEGIN_TODAY, params)


def notify_of_session(*, session_id: int, host_id: int, user_ids: Sequence[int]) -> None:
    """Notify users with a reminder that a session has started."""
    told = fetch(TELL_OF_SESSION, {"session": session_id, "host": host_id, "users": id_array(user_ids)})
    announce_and_push(told)


def notify_of_poll(*, item: Item, user_ids: Sequence[int]) -> None:
    """Tell voters who see a poll that it has ended."""
    told = fetch(TELL_OF_POLL, {"item": item.pk, "sender": item.sender_id, "users": id_array(user_ids)})
    announce_and_push(told)


def notify_of_decision(*, user: User, decision_id: int, detail: str, text: str) -> None:
    """Notify a user of what moderators did (`detail`), and of their words."""
    _notify_of_moderation(Kind.WARNING, [user.pk], detail, text=text, subject_id=decision_id)


def notify_of_report(*, user_ids: Sequence[int], detail: str) -> None:
    """Notify reporters of what came of their report."""
    _notify_of_moderation(Kind.REPORT, user_ids, detail)


def notify_staff(*, user_ids: Sequence[int], detail: str, subject_id: int) -> None:
    """Notify moderators of what waits for them: a case, or an appeal."""
    _notify_of_moderation(Kind.CASE, user_ids, detail, subject_id=subject_id)


def _notify_of_moderation(
    kind: Kind, user_ids: Sequence[int], detail: str, *, text: str = "", subject_id: int | None = None
) -> None:
    params = {"kind": kind.value, "users": id_array(user_ids), "detail": detail, "text": text, "subject": subject_id}
    fetch(NOTIFY_OF_MODERATION, params)
    _announce_later(user_ids[:ANNOUNCED])


def notify_of_scheduled(*, user: User, item: Item | None) -> None:
    """Notify a user that a scheduled post was not published, or is held."""
    fetch(TELL_OF_SCHEDULED, {"user": user.pk, "item": item and item.pk})
    _announce_later([user.pk])


def notify_of_pictures(*, item: Item, decision_id: int, text: str) -> None:
    """Notify the sender that moderators removed pictures, and why."""
    fetch(TELL_OF_PICTURES, {"user": item.sender_id, "item": item.pk, "text": text, "decision": decision_id})
    _announce_later([item.sender_id])


def _add_act(kind: Kind, item: Item, actor_id: int) -> None:
    if item.sender_id == actor_id:
        return
    params = {
        "recipient": item.sender_id,
        "kind": kind.value,
        "item": item.pk,
        "actor": actor_id,
        "still": feed.STILL,
    }
    _add_to_entry(ADD_TO_ITEM, BEGIN_ITEM, params)


def _add_to_entry(add: str, begin: str, params: Mapping[str, Any]) -> None:
    """Add an act to its entry, and create the entry if it is missing. Then push and announce the act."""
    is_new = False
    for _ in range(ATTEMPTS):
        if found := fetch(add, params):
            has_moved, act_id = found[0]
            if act_id and params.get("kind") in PUSHED:
                _push_later([(params["recipient"], act_id)])
            # Pages need one announcement a second per entry.
            if is_new or has_moved:
                _announce_later([params["recipient"]])
            elif act_id:
                transaction.on_commit(partial(_announce_batched, params["recipient"]), robust=True)
            return
        is_new = bool(fetch(begin, params)) or is_new


# --- Reading ---------------------------------------------------------------------------------------------
def mark_read(*, user: User, up_to: int | None = None) -> None:
    """Mark everything up to this act as read. The mark never moves back or into the future."""
    if current().is_writable and fetch(MARK, {"user": user.pk, "up_to": up_to or ids.MAX_ID}):
        _announce_later([user.pk])


def silence(*, user: User, kinds: Collection[str]) -> None:
    """Hide only these kinds. Raises ValueError for kinds that cannot be hidden."""
    if unknown := set(kinds).difference(CHOOSABLE):
        raise ValueError(f"no kinds to choose: {sorted(unknown)}")
    with transaction.atomic():
        if kinds:
            Silenced.objects.update_or_create(user=user, defaults={"kinds": sorted(set(kinds))})
        else:
            Silenced.objects.filter(user=user).delete()
        _announce_later([user.pk])


def _announce_later(user_ids: Sequence[int]) -> None:
    """Announce news to these users after the commit. A failure only delays the news."""
    if user_ids:
        transaction.on_commit(partial(_announce_counts, user_ids), robust=True)


def announce_and_push(told: Sequence[tuple[int, int]]) -> None:
    """Announce and push these acts, by recipient, after the commit."""
    _announce_later([recipient_id for recipient_id, _act_id in told])
    _push_later(told)


def _push_later(told: Sequence[tuple[int, int]]) -> None:
    """Push acts after the commit. If a dead broker loses the push, the act still stands in the list."""
    if told:
        transaction.on_commit(partial(push_later, told), robust=True)


def _announce_batched(user_id: int) -> None:
    """Announce all acts of the next `LATE_SECONDS` at once. It may be lost without Redis or workers."""
    if cache.add(keys.late_notice(user_id), 1, LATE_SECONDS):
        announce_to.apply_async((user_id,), countdown=LATE_SECONDS)


@task("notifications.announce")
def announce_to(user_id: int) -> None:
    """Tell a user's open pages and apps of news."""
    _announce_counts([user_id])


def _announce_counts(user_ids: Sequence[int]) -> None:
    counts = feed.unread_counts(user_ids)
    payloads = {user_id: msgspec.to_builtins(count) for user_id, count in counts.items()}
    if len(payloads) > ONE_BY_ONE:
        announce(ManyNotified(payloads))
    else:
        announce(*(Notified(user_id, payload) for user_id, payload in payloads.items()))


# --- Putting away ----------------------------------------------------------------------------------------
# A viral item has many acts. The mark hides them until `forget_old`.
MARK_PUT_AWAY = """
    INSERT INTO notifications_readmark AS mark (user_id, up_to, put_away) VALUES (%(user)s, 0, feedsite_next_id())
    ON CONFLICT (user_id) DO UPDATE SET put_away = greatest(mark.put_away, EXCLUDED.put_away)
    RETURNING 1
"""
PUT_AWAY = """
    DELETE FROM notifications_notification WHERE id = ANY(ARRAY(
        SELECT id FROM notifications_notification
        WHERE recipient_id = %(user)s AND position < %(below)s AND kind <> ALL(%(kept)s::varchar[])
        ORDER BY position DESC LIMIT %(limit)s FOR UPDATE)) RETURNING position
"""
PUT_AWAY_ACT = """
    DELETE FROM notifications_act a USING notifications_notification n
    WHERE a.id = %(act)s AND a.recipient_id = %(user)s AND n.id = a.notification_id
        AND n.kind <> ALL(%(kept)s::varchar[]) RETURNING 1
"""


def delete_batch(*, user: User, below: int | None = None) -> int | None:
    """Delete the user's entries of people's acts, newest first.

    Returns None at the end, else the position `below` which to continue. Apps see none of them from the first batch on.
    """
    if below is None:
        fetch(MARK_PUT_AWAY, {"user": user.pk})
        below = ids.NO_BOUND
    params = {"user": user.pk, "kept": [kind.value for kind in OF_MODERATORS], "limit": FEW}
    for _ in range(AT_ONCE):
        gone: list[tuple[int]] = fetch(PUT_AWAY, params | {"below": below})
        if len(gone) < FEW:
            _announce_later([user.pk])
            return None
        below = min(position for (position,) in gone)
    return below


@task("notifications.put_away")
def continue_delete(user_id: int, below: int) -> None:
    """Continue `delete_batch`, and queue the rest."""
    user = User.objects.filter(pk=user_id).first()
    rest = delete_batch(user=user, below=below) if user else None
    if rest is not None:
        continue_delete.delay(user_id, rest)


def delete_act(*, user: User, act_id: int) -> bool:
    """Delete an act, unless it is a moderators' message. True if it was there. Its entry stays, so that an edit of its
    item does not notify again.
    """
    kept = [kind.value for kind in OF_MODERATORS]
    is_gone = bool(fetch(PUT_AWAY_ACT, {"user": user.pk, "act": act_id, "kept": kept}))
    if is_gone:
        _announce_later([user.pk])
    return is_gone
