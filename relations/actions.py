"""The verbs that change relations. A bool result says whether anything changed.

Each is idempotent and one transaction, except `end_mutes` and a repeated timed `mute`. Verbs that show a sender's items
again change the follower's window epoch, because windows may lack these.
"""

from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from accounts.models import User
from relations import rules, signals
from relations.models import AccountNote, Block, Follow, FollowerCountChange, FollowRequest, Mute
from relations.visibility import FOLLOWER_COUNT
from storage.connections import fetch
from storage.draws import Draw
from web.refusals import ConflictError, RefusalError

# One statement: a separate read could be outdated at the insertion.
BLOCK = "INSERT INTO relations_block (blocker_id, blocked_id) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING id"
MUTE = """
    INSERT INTO relations_mute (muter_id, muted_id, expires_at, notifications)
    VALUES (%(muter)s, %(muted)s, now() + %(lasts)s::interval, %(notifications)s)
    ON CONFLICT (muter_id, muted_id)
        DO UPDATE SET expires_at = EXCLUDED.expires_at, notifications = EXCLUDED.notifications
    RETURNING xmax::text = '0'
"""
ABOUT = f"""
    SELECT u.is_locked, {rules.follows("%(follower)s", "u.id")}, {rules.has_requested("%(follower)s", "u.id")}
    FROM accounts_user u WHERE u.id = %(followee)s
"""
ENDED = 1_000
"""Mutes that one call of `end_mutes` ends."""
REQUEST_CAP = 500
"""Most waiting requests of one user."""
BELL_CAP = 100
"""Most users of whose posts one user is notified, requests included."""

FOLLOWER_COUNT_OF = f"SELECT {FOLLOWER_COUNT} FROM accounts_user u WHERE u.id = %s"


class SelfRelationError(RefusalError, ValueError):
    """A user cannot follow, block or mute themselves."""

    sentence = "You can't do this to yourself."


class FollowCapError(ConflictError):
    """The follower has reached the setting FOLLOW_CAP."""

    sentence = "You've reached the limit of follows. Unfollow someone first."


class RequesterCapError(ConflictError):
    """Whoever asks to follow has reached the setting FOLLOW_CAP."""

    sentence = "The user has reached the limit of follows."


class NotFollowedError(ConflictError):
    """The one user does not follow the other."""

    sentence = "Follow them first."


class BellCapError(ConflictError):
    """The follower has `BELL_CAP` bells."""

    sentence = "You've reached the limit of people whose posts notify you. Turn one off first."


class RequestCapError(ConflictError):
    """The follower has `REQUEST_CAP` waiting requests."""

    sentence = "You have too many open follow requests. Withdraw some first."


def _check_not_self(user: User, other: User) -> None:
    if user.pk == other.pk:
        raise SelfRelationError


# --- Follows ---------------------------------------------------------------------------------------------
@transaction.atomic
def follow(*, follower: User, followee: User, reposts: bool | None = None, bell: bool | None = None) -> bool:
    """Follow a user, or ask to if their account is locked. `reposts` and `bell` None: unchanged, for a new follow True
    and False.

    The lock on the follower's row keeps the caps. The followee's row is not written. Raises SelfRelationError,
    FollowCapError, RequestCapError, BellCapError.
    """
    _check_not_self(follower, followee)
    following = _lock_follower(follower)
    ((is_locked, follows, waits),) = fetch(ABOUT, {"follower": follower.pk, "followee": followee.pk})
    if follows:
        if reposts is not None:
            show_reposts(follower=follower, followee=followee, reposts=reposts)
        if bell is not None:
            set_bell(follower=follower, followee=followee, rings=bell)
        return False
    if is_locked:
        is_new = _request_follow(follower, followee, reposts, waits=waits)
        _set_bell(FollowRequest.objects.filter(follower=follower, followee=followee), follower, rings=bell)
        return is_new
    if waits:  # the account was locked then
        FollowRequest.objects.filter(follower=follower, followee=followee).delete()
    _create_follow(follower, followee, following, reposts=reposts is not False)
    _set_bell(Follow.objects.filter(follower=follower, followee=followee), follower, rings=bell)
    signals.followed.send(sender=Follow, follower=follower, followee=followee)
    return True


def _lock_follower(follower: User) -> int:
    """Lock the follower's row. Returns the number of followees."""
    rows = User.objects.locked().values_list("following_count", flat=True)
    return int(rows.get(pk=follower.pk))


def _create_follow(
    follower: User,
    followee: User,
    following: int,
    *,
    reposts: bool,
    bell: bool | None = None,
    full: type[ConflictError] = FollowCapError,
) -> None:
    if following >= settings.FOLLOW_CAP:
        raise full
    Follow.objects.create(follower=follower, followee=followee, reposts=reposts, bell=bell)
    User.objects.filter(pk=follower.pk).update(following_count=F("following_count") + 1, window_epoch=Draw())
    FollowerCountChange.objects.create(user=followee, change=1)


@transaction.atomic
def show_reposts(*, follower: User, followee: User, reposts: bool) -> bool:
    """Show or hide a followee's reposts in the follower's home.

    See docs/decisions.md: Windows keep what may come back without an event.
    """
    others = Follow.objects.filter(follower=follower, followee=followee, reposts=not reposts)
    has_changed = bool(others.update(reposts=reposts))
    if has_changed and reposts:
        User.objects.advance_epoch_of(follower.pk)
    return has_changed


# --- Bells -----------------------------------------------------------------------------------------------
@transaction.atomic
def set_bell(*, follower: User, followee: User, rings: bool) -> bool:
    """Begin or end to notify a follower of each post of a followee. The end also holds for a request. Raises
    SelfRelationError, NotFollowedError, BellCapError.
    """
    _check_not_self(follower, followee)
    follows = Follow.objects.filter(follower=follower, followee=followee)
    if not rings:
        asked = FollowRequest.objects.filter(follower=follower, followee=followee)
        return any([_set_bell(follows, follower, rings=False), _set_bell(asked, follower, rings=False)])
    _lock_follower(follower)
    if not follows.exists():
        raise NotFollowedError
    return _set_bell(follows, follower, rings=True)


def _set_bell(rows: "QuerySet[Follow] | QuerySet[FollowRequest]", follower: User, *, rings: bool | None) -> bool:
    """Set the bell of a follow or request. None: unchanged. The follower's row is locked if it begins."""
    if not rings:
        return rings is False and bool(rows.filter(bell=True).update(bell=None))
    if rows.filter(bell=True).exists():
        return False
    bells = Follow.objects.filter(follower=follower, bell=True).values("pk")
    asked = FollowRequest.objects.filter(follower=follower, bell=True).values("pk")
    if bells.union(asked, all=True).count() >= BELL_CAP:
        raise BellCapError
    return bool(rows.update(bell=True))


@transaction.atomic
def unfollow(*, follower: User, followee: User) -> bool:
    """Stop following, or withdraw a request."""
    _lock_follower(follower)
    asked, _ = FollowRequest.objects.filter(follower=follower, followee=followee).delete()
    gone = Follow.objects.select_for_update().filter(follower=follower, followee=followee).first()
    if gone:
        gone.delete()
        User.objects.filter(pk=follower.pk).update(
            following_count=F("following_count") - 1,
            uncounted_followees=F("uncounted_followees") - int(gone.uncounted_followee or 0),
        )
        if not gone.uncounted_follower:
            FollowerCountChange.objects.create(user=followee, change=-1)
    return bool(gone or asked)


# --- Requests to follow ----------------------------------------------------------------------------------
def _request_follow(follower: User, followee: User, reposts: bool | None, *, waits: bool) -> bool:
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
    """Accept a follow request. If it raises RequesterCapError, the request stays."""
    following = _lock_follower(follower)
    request = FollowRequest.objects.filter(follower=follower, followee=followee).first()
    if request is None:
        return False
    request.delete()
    if not Follow.objects.filter(follower=follower, followee=followee).exists():
        _create_follow(
            follower, followee, following, reposts=request.reposts, bell=request.bell, full=RequesterCapError
        )
        signals.follow_accepted.send(sender=Follow, follower=follower, followee=followee)
    return True


def reject(*, followee: User, follower: User) -> bool:
    """Delete a follow request. The requester is not notified."""
    gone, _ = FollowRequest.objects.filter(follower=follower, followee=followee).delete()
    return bool(gone)


# --- Notes -----------------------------------------------------------------------------------------------
def write_note(*, owner: User, subject: User, text: str) -> None:
    """Note something about a user, for the owner alone. An empty text removes the note."""
    _check_not_self(owner, subject)
    if text.strip():
        AccountNote.objects.update_or_create(owner=owner, subject=subject, defaults={"text": text.strip()})
    else:
        AccountNote.objects.filter(owner=owner, subject=subject).delete()


# --- Blocks and mutes ------------------------------------------------------------------------------------
@transaction.atomic
def block(*, blocker: User, blocked: User) -> bool:
    """Hide two users from each other. Follows stay; requests are deleted."""
    _check_not_self(blocker, blocked)
    is_new = bool(fetch(BLOCK, [blocker.pk, blocked.pk]))
    between = Q(follower=blocker, followee=blocked) | Q(follower=blocked, followee=blocker)
    FollowRequest.objects.filter(between).delete()
    return is_new


@transaction.atomic
def unblock(*, blocker: User, blocked: User) -> bool:
    """Remove a block."""
    gone, _ = Block.objects.filter(blocker=blocker, blocked=blocked).delete()
    if gone:
        _lock_users([blocker, blocked])
        if not Block.objects.filter(blocker=blocked, blocked=blocker).exists():
            _advance_epochs([blocker, blocked], of=[blocker, blocked])
    return bool(gone)


def mute(*, muter: User, muted: User, lasts: timedelta | None = None, notifications: bool = True) -> bool:
    """Hide a sender from the muter's home, in place of an existing mute. True if there was none.

    Only `end_mutes` ends an expired one, because the end must change the muter's epoch.
    """
    _check_not_self(muter, muted)
    params = {"muter": muter.pk, "muted": muted.pk, "lasts": lasts, "notifications": notifications}
    return bool(fetch(MUTE, params)[0][0])


@transaction.atomic
def unmute(*, muter: User, muted: User) -> bool:
    """Remove a mute."""
    return _delete_mutes(Mute.objects.filter(muter=muter, muted=muted), muter.pk, muted.pk)


def _delete_mutes(mutes: QuerySet[Mute], muter_id: int, muted_id: int) -> bool:
    gone, _ = mutes.delete()
    if gone:
        muter, muted = User(pk=muter_id), User(pk=muted_id)
        _lock_users([muter])
        _advance_epochs([muter], of=[muted])
    return bool(gone)


def end_mutes() -> int:
    """Delete at most `ENDED` expired mutes, one per transaction."""
    ended = 0
    over = Mute.objects.filter(expires_at__lte=Now()).order_by("expires_at")
    for mute_id, muter_id, muted_id in list(over.values_list("pk", "muter_id", "muted_id")[:ENDED]):
        with transaction.atomic():
            ended += _delete_mutes(Mute.objects.filter(pk=mute_id, expires_at__lte=Now()), muter_id, muted_id)
    return ended


# --- Windows and counts ----------------------------------------------------------------------------------
def _lock_users(users: Sequence[User]) -> None:
    """Lock the users' rows in the order of ids, to avoid deadlocks."""
    rows = User.objects.filter(pk__in=[user.pk for user in users]).order_by("pk")
    list(rows.select_for_update(no_key=True).values_list("pk"))


def _advance_epochs(users: Sequence[User], *, of: Sequence[User]) -> None:
    """Change the epochs of those `users` who follow one of `of`. Their rows are locked, so a concurrent follow is seen
    here or changes the epoch itself.
    """
    follows = Follow.objects.filter(follower=OuterRef("pk"), followee__in=[user.pk for user in of])
    User.objects.get_queryset().filter(Exists(follows), pk__in=[user.pk for user in users]).advance_epoch()


def fold_follower_counts() -> list[int]:
    """Add the staged changes to `User.follower_count`, each exactly once. Returns changed users."""
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
    """The exact number of followers, 0 for unknown users."""
    rows = fetch(FOLLOWER_COUNT_OF, [user.pk])
    return int(rows[0][0]) if rows else 0
