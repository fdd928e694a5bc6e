"""The verbs that change relations. Each is idempotent, one transaction, and exact on the very next request.

Apart from two: `end_mutes` is a transaction for each mute, and a timed `mute` that is asked for again lasts anew.

Acts that show items of a sender again (follow, unblock, unmute, a timed mute that ends, reposts shown again) advance
the window epoch of the follower, in the same transaction: their cached windows are not used again until they are
rebuilt. The window of a user who does not follow the sender lacks nothing of theirs, so no act of a stranger advances
its epoch.
"""

from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from accounts.models import User
from relations import rules, signals
from relations.models import Block, Follow, FollowerCountChange, FollowRequest, Mute
from relations.visibility import FOLLOWER_COUNT
from storage.connections import fetch
from storage.draws import Draw

# One statement: between a look and an insertion the pair may come and go.
BLOCK = "INSERT INTO relations_block (blocker_id, blocked_id) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING id"
MUTE = """
    INSERT INTO relations_mute (muter_id, muted_id, expires_at, notifications)
    VALUES (%(muter)s, %(muted)s, now() + %(lasts)s::interval, %(notifications)s)
    ON CONFLICT (muter_id, muted_id)
        DO UPDATE SET expires_at = EXCLUDED.expires_at, notifications = EXCLUDED.notifications
    RETURNING xmax::text = '0'
"""
OVER = """
    SELECT id, muter_id, muted_id FROM relations_mute WHERE expires_at <= now() ORDER BY expires_at LIMIT %(limit)s
"""


ABOUT = f"""
    SELECT u.is_locked, {rules.follows("%(follower)s", "u.id")}, {rules.asks("%(follower)s", "u.id")}
    FROM accounts_user u WHERE u.id = %(followee)s
"""  # noqa: S608 (constants)
ENDED = 1_000
"""Mutes that one call of `end_mutes` ends."""
REQUEST_CAP = 500
"""Requests of one user that may wait at a time."""

FOLLOWER_COUNT_OF = f"SELECT {FOLLOWER_COUNT} FROM accounts_user u WHERE u.id = %s"  # noqa: S608 (constants)


class SelfRelationError(ValueError):
    """Raised when users follow, block or mute themselves."""


class FollowCapError(Exception):
    """The follower follows as many as one may (settings FOLLOW_CAP)."""


class RequestCapError(Exception):
    """Raised when as many requests of the follower wait as may (`REQUEST_CAP`)."""


def _pair(user: User, other: User) -> None:
    if user.pk == other.pk:
        raise SelfRelationError


# --- Follows ---------------------------------------------------------------------------------------------
@transaction.atomic
def follow(*, follower: User, followee: User, reposts: bool | None = None) -> bool:
    """Follow, or ask to where the followee's account is locked; True if it is new. `reposts`: whether the follower's
    home shows what the followee reposts; None leaves that as it is. Raises SelfRelationError, FollowCapError,
    RequestCapError.

    The follower's own row is the lock that keeps the caps under concurrent calls; the followee's row is not written,
    however many follow at once.
    """
    _pair(follower, followee)
    following = _lock_follower(follower)
    ((is_locked, follows, waits),) = fetch(ABOUT, {"follower": follower.pk, "followee": followee.pk})
    if follows:
        if reposts is not None:
            show_reposts(follower=follower, followee=followee, reposts=reposts)
        return False
    if is_locked:
        return _ask(follower, followee, reposts, waits=waits)
    if waits:  # the account was locked when it was asked
        FollowRequest.objects.filter(follower=follower, followee=followee).delete()
    _begin(follower, followee, following, reposts=reposts is not False)
    signals.followed.send(sender=Follow, follower=follower, followee=followee)
    return True


def _lock_follower(follower: User) -> int:
    """Lock the follower's row until the transaction ends; how many they follow."""
    rows = User.objects.held().values_list("following_count", flat=True)
    return int(rows.get(pk=follower.pk))


def _begin(follower: User, followee: User, following: int, *, reposts: bool) -> None:
    """Add the follow that is not there, to the `following` that are. Raises FollowCapError."""
    if following >= settings.FOLLOW_CAP:
        raise FollowCapError
    Follow.objects.create(follower=follower, followee=followee, reposts=reposts)
    User.objects.filter(pk=follower.pk).update(following_count=F("following_count") + 1, window_epoch=Draw())
    FollowerCountChange.objects.create(user=followee, change=1)


@transaction.atomic
def show_reposts(*, follower: User, followee: User, reposts: bool) -> bool:
    """Show or leave out the reposts of a followee in the follower's home; True if that changed.

    See docs/decisions.md: Windows keep what may come back without an event.
    """
    others = Follow.objects.filter(follower=follower, followee=followee, reposts=not reposts)
    has_changed = bool(others.update(reposts=reposts))
    if has_changed and reposts:
        User.objects.advance_epoch_of(follower.pk)
    return has_changed


@transaction.atomic
def unfollow(*, follower: User, followee: User) -> bool:
    """Stop following, and withdraw a request to; True if there was either. The verifying query hides the items;
    windows forget them when read.
    """
    _lock_follower(follower)
    asked, _ = FollowRequest.objects.filter(follower=follower, followee=followee).delete()
    gone, _ = Follow.objects.filter(follower=follower, followee=followee).delete()
    if gone:
        User.objects.filter(pk=follower.pk).update(following_count=F("following_count") - 1)
        FollowerCountChange.objects.create(user=followee, change=-1)
    return bool(gone or asked)


# --- Requests to follow ----------------------------------------------------------------------------------
def _ask(follower: User, followee: User, reposts: bool | None, *, waits: bool) -> bool:
    """Leave a request, where none waits; True if it is new. Raises RequestCapError."""
    if waits:
        if reposts is not None:
            FollowRequest.objects.filter(follower=follower, followee=followee).update(reposts=reposts)
        return False
    if FollowRequest.objects.filter(follower=follower).count() >= REQUEST_CAP:
        raise RequestCapError
    FollowRequest.objects.create(follower=follower, followee=followee, reposts=reposts is not False)
    signals.follow_requested.send(sender=FollowRequest, follower=follower, followee=followee)
    return True


@transaction.atomic
def accept(*, followee: User, follower: User) -> bool:
    """Let a user who asked follow from now on; True if a request of theirs was waiting. Raises FollowCapError, and the
    request stays.
    """
    following = _lock_follower(follower)
    request = FollowRequest.objects.filter(follower=follower, followee=followee).first()
    if request is None:
        return False
    request.delete()
    if not Follow.objects.filter(follower=follower, followee=followee).exists():
        _begin(follower, followee, following, reposts=request.reposts)
        signals.follow_accepted.send(sender=Follow, follower=follower, followee=followee)
    return True


def reject(*, followee: User, follower: User) -> bool:
    """Take away a request that waits; True if there was one. The user who asked is not told, and may ask again."""
    gone, _ = FollowRequest.objects.filter(follower=follower, followee=followee).delete()
    return bool(gone)


# --- Blocks and mutes ------------------------------------------------------------------------------------
@transaction.atomic
def block(*, blocker: User, blocked: User) -> bool:
    """Hide two users from each other; True if it is new. Follows stay, so that unblocking brings all back; requests to
    follow go.
    """
    _pair(blocker, blocked)
    is_new = bool(fetch(BLOCK, [blocker.pk, blocked.pk]))
    between = Q(follower=blocker, followee=blocked) | Q(follower=blocked, followee=blocker)
    FollowRequest.objects.filter(between).delete()
    return is_new


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


def mute(*, muter: User, muted: User, lasts: timedelta | None = None, notifications: bool = True) -> bool:
    """Leave a sender out of the muter's home, for a time or without an end; True if it is new. `notifications`: whether
    the muter is not told of what they do either. A mute that stands becomes the one that is asked for.

    A task removes the row when the time is over. No query compares it with the clock, because the end must change the
    muter's epoch.
    """
    _pair(muter, muted)
    params = {"muter": muter.pk, "muted": muted.pk, "lasts": lasts, "notifications": notifications}
    return bool(fetch(MUTE, params)[0][0])


@transaction.atomic
def unmute(*, muter: User, muted: User) -> bool:
    """Take a mute back; True if there was one. A muter who follows may see again what their windows have forgotten."""
    return _unmuted(Mute.objects.filter(muter=muter, muted=muted), muter.pk, muted.pk)


def _unmuted(mutes: QuerySet[Mute], muter_id: int, muted_id: int) -> bool:
    """Take away the mute of these two, if it is among `mutes`; whether it was."""
    gone, _ = mutes.delete()
    if gone:
        muter, muted = User(pk=muter_id), User(pk=muted_id)
        _lock([muter])
        _advance_followers([muter], of=[muted])
    return bool(gone)


def end_mutes() -> int:
    """Take the mutes away whose time is over, each in a transaction of its own, at most `ENDED`; how many went.

    A mute that was prolonged meanwhile stays; of two workers at once one ends it.
    """
    ended = 0
    for mute_id, muter_id, muted_id in fetch(OVER, {"limit": ENDED}):
        with transaction.atomic():
            ended += _unmuted(Mute.objects.filter(pk=mute_id, expires_at__lte=Now()), muter_id, muted_id)
    return ended


# --- Windows and counts ----------------------------------------------------------------------------------
def _lock(users: Sequence[User]) -> None:
    """Lock the users' rows until the transaction ends, in the order of ids, so that two such calls do not deadlock."""
    rows = User.objects.filter(pk__in=[user.pk for user in users]).order_by("pk")
    list(rows.select_for_update(no_key=True).values_list("pk"))


def _advance_followers(users: Sequence[User], *, of: Sequence[User]) -> None:
    """Advance the window epochs of those `users` who follow one of the users `of`.

    The rows of `users` are locked before: a follow takes the same lock, so it is either seen here, or begins after this
    transaction and advances the epoch by itself.

    See docs/decisions.md: Windows are valid for one epoch.
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
    """How many follow `user`, exact; 0 where there is no such user."""
    rows = fetch(FOLLOWER_COUNT_OF, [user.pk])
    return int(rows[0][0]) if rows else 0
