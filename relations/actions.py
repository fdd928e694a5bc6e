"""The verbs that change relations. Each is idempotent, one transaction, and exact on the very next request.

Acts that show items of a sender again (follow, unblock, unmute) advance the window epoch of the follower, in the same
transaction: their cached windows are not used again until they are rebuilt. The window of a user who does not follow
the sender lacks nothing of theirs, so no act of a stranger advances its epoch.
"""

from collections.abc import Sequence

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef

from accounts.models import User
from relations import signals
from relations.models import Block, Follow, FollowerCountChange, Mute
from storage.connections import fetch
from storage.draws import Draw

# One statement: between a look and an insertion the pair may come and go.
BLOCK = "INSERT INTO relations_block (blocker_id, blocked_id) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING id"
MUTE = "INSERT INTO relations_mute (muter_id, muted_id) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING id"


class SelfRelationError(ValueError):
    """Raised when users follow, block or mute themselves."""


class FollowCapError(Exception):
    """The follower follows as many as one may (settings FOLLOW_CAP)."""


def _pair(user: User, other: User) -> None:
    if user.pk == other.pk:
        raise SelfRelationError


@transaction.atomic
def follow(*, follower: User, followee: User) -> bool:
    """Follow; True if it is new. Raises SelfRelationError, FollowCapError.

    The follower's own row is the lock that keeps the cap under concurrent calls; the followee's row is not written,
    however many follow at once.
    """
    _pair(follower, followee)
    following = (
        User.objects.select_for_update(no_key=True).values_list("following_count", flat=True).get(pk=follower.pk)
    )
    if Follow.objects.filter(follower=follower, followee=followee).exists():
        return False
    if following >= settings.FOLLOW_CAP:
        raise FollowCapError
    Follow.objects.create(follower=follower, followee=followee)
    User.objects.filter(pk=follower.pk).update(following_count=F("following_count") + 1, window_epoch=Draw())
    FollowerCountChange.objects.create(user=followee, change=1)
    signals.followed.send(sender=Follow, follower=follower, followee=followee)
    return True


@transaction.atomic
def unfollow(*, follower: User, followee: User) -> bool:
    """Stop following; True if they did follow. The verifying query hides the items; windows forget them when read."""
    User.objects.select_for_update(no_key=True).get(pk=follower.pk)
    gone, _ = Follow.objects.filter(follower=follower, followee=followee).delete()
    if gone:
        User.objects.filter(pk=follower.pk).update(following_count=F("following_count") - 1)
        FollowerCountChange.objects.create(user=followee, change=-1)
    return bool(gone)


@transaction.atomic
def block(*, blocker: User, blocked: User) -> bool:
    """Hide two users from each other; True if it is new. Follows stay, so that unblocking brings all back."""
    _pair(blocker, blocked)
    return bool(fetch(BLOCK, [blocker.pk, blocked.pk]))


@transaction.atomic
def unblock(*, blocker: User, blocked: User) -> bool:
    """Take a block back; True if there was one. A side that follows the other may see again what its windows have
    forgotten, unless the other side's block still stands.
    """
    gone, _ = Block.objects.filter(blocker=blocker, blocked=blocked).delete()
    if gone:
        _lock([blocker, blocked])
        if not Block.objects.filter(blocker=blocked, blocked=blocker).exists():
            _advance_followers([blocker, blocked], of=[blocker, blocked])
    return bool(gone)


def mute(*, muter: User, muted: User) -> bool:
    """Leave a sender out of the muter's home; True if it is new."""
    _pair(muter, muted)
    return bool(fetch(MUTE, [muter.pk, muted.pk]))


@transaction.atomic
def unmute(*, muter: User, muted: User) -> bool:
    """Take a mute back; True if there was one. A muter who follows may see again what their windows have forgotten."""
    gone, _ = Mute.objects.filter(muter=muter, muted=muted).delete()
    if gone:
        _lock([muter])
        _advance_followers([muter], of=[muted])
    return bool(gone)


def _lock(users: Sequence[User]) -> None:
    """Lock the users' rows until the transaction ends, in the order of ids, so that two such calls do not deadlock."""
    rows = User.objects.filter(pk__in=[user.pk for user in users]).order_by("pk")
    list(rows.select_for_update(no_key=True).values_list("pk"))


def _advance_followers(users: Sequence[User], *, of: Sequence[User]) -> None:
    """Advance the window epochs of those `users` who follow one of the users `of`.

    The rows of `users` are locked before: a follow takes the same lock, so it is either seen here, or begins after this
    transaction and advances the epoch by itself.

    See docs/decisions.md: A window epoch in PostgreSQL.
    """
    follows = Follow.objects.filter(follower=OuterRef("pk"), followee__in=[user.pk for user in of])
    User.objects.get_queryset().filter(Exists(follows), pk__in=[user.pk for user in users]).advance_epoch()


def fold_follower_counts() -> list[int]:
    """Add the staged changes to `User.follower_count`; the ids of the users whose count changed.

    One statement: a change is counted either in the table or in the column, never in both or in neither. Two at once
    do not count twice, because a row can be deleted only once. The users are locked in the order of ids, as in every
    transaction that changes many.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH folded AS (DELETE FROM relations_followercountchange RETURNING user_id, change),
                 sums AS (SELECT user_id, sum(change) AS change FROM folded GROUP BY user_id),
                 locked AS (SELECT id FROM accounts_user WHERE id IN (SELECT user_id FROM sums)
                            ORDER BY id FOR NO KEY UPDATE)
            UPDATE accounts_user u SET follower_count = u.follower_count + s.change
            FROM sums s JOIN locked l ON l.id = s.user_id WHERE u.id = s.user_id RETURNING u.id
            """
        )
        return [row[0] for row in cursor.fetchall()]


def follower_count(user: User) -> int:
    """How many follow `user`, exact: the folded count and the changes staged since, in one snapshot."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT u.follower_count + coalesce(
                (SELECT sum(c.change) FROM relations_followercountchange c WHERE c.user_id = u.id), 0)
            FROM accounts_user u WHERE u.id = %s
            """,
            [user.pk],
        )
        row = cursor.fetchone()
    return int(row[0]) if row else 0
