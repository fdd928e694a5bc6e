"""The verbs that change accounts. Each is one transaction."""

import secrets
from collections.abc import Iterable
from datetime import timedelta
from functools import partial

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext_lazy
from oauth2_provider.models import AccessToken, Grant, set_token_value
from oauthlib.common import generate_token

from accounts import faces, profile_fields, review
from accounts.locale import zone_names
from accounts.models import Deletion, HeldName, Level, TokenOrigin, User
from accounts.names import folded_name
from accounts.naming import check_imitation
from accounts.review import Submission
from accounts.signals import levels_lowered
from accounts.signing_in import addresses
from accounts.signing_in.models import OWN_APP, ClientApp
from storage.draws import Draw
from storage.events import Revoked, announce
from storage.queue import enqueue

PASSWORD_LENGTH = 256
"""Characters; a password is hashed as a whole, so that its length must have an end."""
# Texts of Django's validator that Django's own Chinese catalogue lacks; here they get into the site's catalogue.
TOO_SHORT = ngettext_lazy(
    "This password is too short. It must contain at least %d character.",
    "This password is too short. It must contain at least %d characters.",
    8,
)
MODERATORS = "Moderators"
"""The group that the first migration of moderation makes."""
HELD_NAME_LIFE = timedelta(days=30)
SCRUBBED = [
    "username",
    "display_name",
    "folded_name",
    "bio",
    "profile_fields",
    "email",
    "language",
    "time_zone",
    "avatar",
    "banner",
    "password",
    "is_active",
    "is_staff",
    "is_superuser",
    "level",
    "last_seen_at",
    "last_login",
    "deleted_at",
    "session_epoch",
]
"""The fields that deleting an account writes; `password` is one that fits nothing."""


class LastSuperuserError(Exception):
    """Raised when the last active superuser would be removed."""


def _wrong_password() -> ValidationError:
    return ValidationError(_("That is not your password."), code="invalid")


def refused(author: User, text: str) -> ValidationError | None:
    """The error for words of a member that moderation would hold; None where it has nothing against them."""
    if text and review.reasons(Submission(author, text, is_new=False)):
        return ValidationError(_("This contains words or links that are not allowed here."), code="not_allowed")
    return None


def edit_profile(
    *,
    user: User,
    display_name: str | None = None,
    bio: str | None = None,
    fields: Iterable[profile_fields.Pair] | None = None,
    is_locked: bool | None = None,
) -> User:
    """Change how a user presents themself, and whether they decide on each follower; what is None stays. Raises
    ValidationError, a dict by field, also for a text that moderation would hold: a profile has nothing to show instead.

    Unlocking an account accepts none of the waiting requests: hundreds of unwanted followers could not be told apart.
    """
    texts = {"display_name": display_name, "bio": bio}
    changed = [field for field, value in texts.items() if value is not None]
    new = [field for field in changed if texts[field] != getattr(user, field)]
    for field in changed:
        setattr(user, field, texts[field])
    user.clean_fields(exclude={field.name for field in User._meta.fields} - set(changed))
    if errors := {field: error for field in new if (error := refused(user, texts[field] or ""))}:
        raise ValidationError(errors)
    if fields is not None:
        _take_fields(user, fields)
        changed.append("profile_fields")
    if "display_name" in new and not user.is_staff:
        try:
            check_imitation(user.display_name)
        except ValidationError as error:
            raise ValidationError({"display_name": error}) from error
    if is_locked is not None:
        user.is_locked = is_locked
        changed.append("is_locked")
    _save(user, changed)
    return user


def _take_fields(user: User, pairs: Iterable[profile_fields.Pair]) -> None:
    """Give a user the fields of their profile. Raises ValidationError."""
    try:
        taken = profile_fields.kept(pairs)
        words = "\n".join(f"{one['name']} {one['value']}" for one in taken if one not in user.profile_fields)
        if error := refused(user, words):
            raise error
    except ValidationError as error:
        raise ValidationError({"fields": error}) from error
    user.profile_fields = taken


def _save(user: User, fields: list[str]) -> None:
    """Write these fields, unless the account was deleted meanwhile: it shall hold nothing personal again."""
    if "display_name" in fields:
        user.folded_name = folded_name(user.username, user.display_name)
        fields = [*fields, "folded_name"]
    if fields:
        User.objects.filter(pk=user.pk, deleted_at=None).update(**{field: getattr(user, field) for field in fields})


def dismiss_announcement(*, user: User, mark: str) -> None:
    """Note that the user has read an announcement in an app (accounts.about.announcing.mark)."""
    User.objects.filter(pk=user.pk).update(dismissed_announcement=mark)


def edit_preferences(
    *,
    user: User,
    language: str | None = None,
    time_zone: str | None = None,
    keeps_history: bool | None = None,
    is_indexable: bool | None = None,
    quotable_by: str | None = None,
    takes_requests: bool | None = None,
) -> User:
    """Choose language and time zone ("" leaves it to the browser), whether what one opens is remembered, whether
    search engines may list what one says, who may quote what one publishes from now on, and whether strangers may write
    private mentions to one; None stays.

    Raises ValidationError, a dict by field.
    """
    if language and language not in dict(settings.LANGUAGES):
        raise ValidationError({"language": ValidationError(_("There is no such language here."), code="invalid")})
    if time_zone and time_zone not in zone_names():
        raise ValidationError({"time_zone": ValidationError(_("There is no such time zone."), code="invalid")})
    fields = {
        "language": language,
        "time_zone": time_zone,
        "keeps_history": keeps_history,
        "is_indexable": is_indexable,
        "quotable_by": quotable_by,
        "takes_requests": takes_requests,
    }
    changed = [field for field, value in fields.items() if value is not None]
    for field in changed:
        setattr(user, field, fields[field])
    _save(user, changed)
    return user


@transaction.atomic
def change_password(*, user: User, current: str, new: str, keep_token: int = 0) -> User:
    """Set another password. Every session and token ends, except the token with the id `keep_token`.

    The caller renews the session that asked (`update_session_auth_hash`). Raises ValidationError, a dict by field.
    """
    check_own_password(user=user, password=current, field="current_password")
    try:
        check_password_shape(new, user)
    except ValidationError as error:
        raise ValidationError({"new_password": error.error_list}) from error
    proven = user.password
    user.set_password(new)
    # Another change of the password meanwhile has made the given one worthless.
    changed = {"password": user.password, "session_generation": Draw()}
    if not User.objects.active().filter(pk=user.pk, password=proven).update(**changed):
        raise ValidationError({"current_password": _wrong_password()})
    end_tokens(user=user, keep_token=keep_token)
    addresses.tell(user, "password_changed")
    return user


def check_own_password(*, user: User, password: str, field: str) -> None:
    """Raise ValidationError for `field` unless `password` is the user's."""
    if len(password) > PASSWORD_LENGTH or not user.check_password(password):
        raise ValidationError({field: _wrong_password()})


def check_password_shape(password: str, user: User) -> None:
    """Raise ValidationError for a password that is too long, too short, too common, or too much like the user."""
    if len(password) > PASSWORD_LENGTH:
        raise ValidationError(_("At most %(count)d characters.") % {"count": PASSWORD_LENGTH}, code="max_length")
    validate_password(password, user)


@transaction.atomic
def log_out_everywhere(*, user: User, keep_token: int = 0) -> User:
    """End every session and token, except the token with the id `keep_token`.

    The caller renews the session that asked (`update_session_auth_hash`).
    """
    User.objects.filter(pk=user.pk).update(session_epoch=F("session_epoch") + 1, session_generation=Draw())
    user.refresh_from_db(fields=["session_epoch"])
    end_tokens(user=user, keep_token=keep_token)
    return user


@transaction.atomic
def delete_account(*, user: User) -> bool:
    """Make an account vanish at once and for good; False if it was deleted before. Raises LastSuperuserError.

    From the commit on all others no longer see the user or anything they published, and they cannot sign in. Personal
    data is gone with it; items, follows, likes and the like are taken away afterwards, by accounts.purge. The name is
    held for `HELD_NAME_LIFE`, so that no new user is taken for the one who left.

    The row stays, because threads hang on its items. A check constraint keeps it inactive. Of the name only keyed
    hashes are kept.
    """
    _keep_a_superuser(user)
    user = User.objects.select_for_update().get(pk=user.pk)
    if user.deleted_at is not None:
        return False
    now = timezone.now()
    for digest in HeldName.digests_of(user.username):
        HeldName.objects.update_or_create(digest=digest, defaults={"until": now + HELD_NAME_LIFE})
    user.username = f"deleted-{secrets.token_hex(10)}"
    user.display_name = user.bio = user.email = user.language = user.time_zone = ""
    user.profile_fields = []
    faces.forget_faces(user)
    user.is_active = user.is_staff = user.is_superuser = False
    user.level, user.last_seen_at, user.last_login = Level.DORMANT, None, None
    user.deleted_at = now
    user.set_unusable_password()
    user.session_epoch += 1
    user.save(update_fields=SCRUBBED)
    user.groups.clear()
    user.user_permissions.clear()
    end_tokens(user=user)
    forget_security(user)
    Deletion.objects.create(user=user)
    transaction.on_commit(partial(_after_deletion, user.pk))
    return True


def _keep_a_superuser(user: User) -> None:
    """Raise LastSuperuserError if the user is the last. They are locked in the order of ids: of the last two, one
    stays.
    """
    if user.is_superuser:
        superusers = User.objects.active().filter(is_superuser=True).order_by("pk").select_for_update()
        if not any(other.pk != user.pk for other in superusers):
            raise LastSuperuserError


@transaction.atomic
def promote(*, user: User, as_moderator: bool = False) -> bool:
    """Make an active user an administrator, or a moderator; True if they were not."""
    user = User.objects.active().select_for_update().get(pk=user.pk)
    group = Group.objects.get(name=MODERATORS)
    if user.is_staff and (user.groups.filter(pk=group.pk).exists() if as_moderator else user.is_superuser):
        return False
    user.is_staff = True
    if as_moderator:
        user.groups.add(group)
    else:
        user.is_superuser = True
    user.save(update_fields=["is_staff", "is_superuser"])
    return True


@transaction.atomic
def demote(*, user: User) -> bool:
    """Take every power from a user: they are a member like others; True if they had one. Raises LastSuperuserError."""
    _keep_a_superuser(user)
    user = User.objects.select_for_update().get(pk=user.pk)
    had = user.is_staff or user.is_superuser or user.groups.exists() or user.user_permissions.exists()
    user.is_staff = user.is_superuser = False
    user.save(update_fields=["is_staff", "is_superuser"])
    user.groups.clear()
    user.user_permissions.clear()
    return had


def forget_security(user: User) -> None:
    """Delete a deleted user's addresses, second factors and places. A deletion by a version before this leaves them to
    accounts.purge.
    """
    for model in (EmailAddress, Authenticator, UserSession):
        model.objects.filter(user=user).delete()


def _after_deletion(user_id: int) -> None:
    levels_lowered.send(sender=User, user_ids_by_level={int(Level.DORMANT): [user_id]})
    enqueue("accounts.purge", user_id)


def forget_held_names() -> int:
    """Let go of the names whose time is over; how many."""
    return HeldName.objects.filter(until__lt=Now()).delete()[0]


@transaction.atomic
def issue_token(*, user: User, user_agent: str = "", ip: str = "") -> str:
    """A new API token, which is a token of the built-in app. Its hash is kept, and where it was issued. Expired tokens
    go, and so does the oldest beyond `TOKEN_CAP`.
    """
    tokens = AccessToken.objects.filter(user=user, application=OWN_APP)
    tokens.filter(expires__lt=Now()).delete()
    kept = tokens.order_by("-pk").values_list("pk", flat=True)
    tokens.filter(pk__in=list(kept[settings.TOKEN_CAP - 1 :])).delete()
    token: str = generate_token()
    expires = timezone.now() + timedelta(days=settings.TOKEN_DAYS)
    row = AccessToken(user=user, application=ClientApp.objects.own(), expires=expires)
    set_token_value(row, token)
    row.save()
    if user_agent or ip:
        TokenOrigin.objects.create(token=row, user_agent=user_agent, ip=ip)
    return token


@transaction.atomic
def revoke_token(*, token_id: int) -> bool:
    """Delete a token of the API or of an app, and end the streams that it holds open. True if there was one."""
    token = AccessToken.objects.filter(pk=token_id)
    user_id = token.values_list("user_id", flat=True).first()
    _, gone = token.delete()
    if user_id is not None:
        end_streams(user_id=user_id)
    return bool(gone.get(AccessToken._meta.label))


def end_tokens(*, user: User, keep_token: int = 0) -> None:
    """Delete all tokens of a user, of the API and of apps, and codes that apps did not use yet, except the token with
    the id `keep_token`. The streams that they hold open end, and so do streams of sessions that have ended.
    """
    AccessToken.objects.filter(user=user).exclude(pk=keep_token).delete()
    Grant.objects.filter(user=user).delete()
    end_streams(user_id=user.pk)


@transaction.atomic
def delete_app(*, app_id: int) -> None:
    """Remove an app that registered itself, its tokens and the codes that it did not use yet, and end the streams that
    it holds open. Nothing happens for the built-in app.
    """
    apps = ClientApp.objects.registered().filter(pk=app_id)
    list(apps.select_for_update().values_list("pk"))  # a token that is issued meanwhile is seen below, or is refused
    held = AccessToken.objects.filter(application__in=apps, user__isnull=False)
    users = set(held.values_list("user_id", flat=True))
    apps.delete()
    for user_id in users:
        end_streams(user_id=user_id)


def end_streams(*, user_id: int) -> None:
    """Once it is committed, tell the stream processes to look at once whether the user's connections still stand."""
    transaction.on_commit(partial(announce, Revoked(user_id)))
